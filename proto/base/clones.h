/*
 * clones.h - one clone of a function for each instruction set of x86-64; the loader picks the best one.
 */
#ifndef DT_BASE_CLONES_H
#define DT_BASE_CLONES_H

/* Clones need ifunc, which runs before the sanitizers are ready. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(PSD_NO_CLONES)
#define DT_CLONED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DT_CLONED
#endif

#endif
