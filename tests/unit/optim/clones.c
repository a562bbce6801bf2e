/*
 * clones.c - every clone of a kernel gives the bits of its plain twin, not only the one that the
 * loader chose. Clones are local symbols ("kernel_sgd.avx2"): they are looked up in our own ELF file.
 * Sanitized builds have no clones; there the tests are skipped.
 */
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "psd/optim/kernels_ref.h"
#include "samples.h"

TestSuite(clones, .timeout = 60);

#define MAX_CLONES 3

union kernel {
    void *address;
    void (*axpy)(float *acc, const void *g, float scale, size_t n);
    void (*divide)(float *g, float divisor, size_t n);
    void (*sgd)(float *out, const float *w, const void *g, float lr, size_t n);
    bool (*is_finite)(const void *g, size_t n);
};

static bool
can_run(const char *target)
{
#if defined(__x86_64__)
    if (strncmp(target, "avx512f", 7) == 0)
        return __builtin_cpu_supports("avx512f");
    if (strncmp(target, "avx2", 4) == 0)
        return __builtin_cpu_supports("avx2");
#endif
    return strncmp(target, "default", 7) == 0;
}

/* The program itself is the first object of the list. */
static int
take_base(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

static unsigned
scan(const char *elf, const char *kernel, union kernel *out)
{
    const Elf64_Ehdr *head = (const void *)elf;
    const Elf64_Shdr *sections = (const void *)(elf + head->e_shoff);
    size_t len = strlen(kernel), i, k;
    unsigned n = 0;
    uintptr_t base = 0;

    dl_iterate_phdr(take_base, &base);
    for (i = 0; i < head->e_shnum; i++) {
        const Elf64_Sym *symbols = (const void *)(elf + sections[i].sh_offset);

        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        for (k = 0; k < sections[i].sh_size / sizeof(*symbols); k++) {
            const char *name = elf + sections[sections[i].sh_link].sh_offset + symbols[k].st_name;

            if (strncmp(name, kernel, len) == 0 && name[len] == '.' && can_run(name + len + 1) &&
                n < MAX_CLONES)
                out[n++].address = (void *)(base + symbols[k].st_value);
        }
    }
    return n;
}

/* The clones of `kernel` that this processor can run. */
static unsigned
find_clones(const char *kernel, union kernel *out)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat st;
    unsigned n;
    char *elf;

    cr_assert(fd >= 0 && fstat(fd, &st) == 0);
    elf = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    cr_assert_neq(elf, MAP_FAILED);
    close(fd);
    n = scan(elf, kernel, out);
    munmap(elf, (size_t)st.st_size);
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&                \
    !defined(__SANITIZE_THREAD__)
    cr_assert_geq(n, 1, "no clone of %s in the program", kernel);
#else
    if (n == 0)
        cr_skip_test("built without clones");
#endif
    return n;
}

static float *
copy_of(const float *x, size_t n)
{
    float *copy = malloc((n + 1) * sizeof(*copy));

    memcpy(copy, x, n * sizeof(*copy));
    return copy;
}

/* One kernel of the accumulate kind: `fast` and `plain` change their first argument. */
#define COMPARE(clones, n_clones, fast, plain)                                                     \
    for (size_t i_ = 0; i_ < N_SIZES; i_++) {                                                      \
        size_t n = sample_sizes[i_];                                                               \
        float *w = samples(3, n), *x = samples(4, n), *want = copy_of(w, n);                       \
        void *base_;                                                                               \
        const void *g = unaligned_copy(x, n, 1, &base_);                                           \
                                                                                                   \
        plain;                                                                                     \
        for (unsigned c = 0; c < (n_clones); c++) {                                                \
            float *got = copy_of(w, n);                                                            \
                                                                                                   \
            fast;                                                                                  \
            cr_assert_eq(memcmp(got, want, n * sizeof(*got)), 0, "clone %u, n = %zu", c, n);       \
            free(got);                                                                             \
        }                                                                                          \
        free(w);                                                                                   \
        free(x);                                                                                   \
        free(want);                                                                                \
        free(base_);                                                                               \
    }

Test(clones, scale)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_scale", k);

    COMPARE(k, n_clones, k[c].axpy(got, g, 0.7f, n), kernel_scale_ref(want, g, 0.7f, n))
}

Test(clones, axpy)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_axpy", k);

    COMPARE(k, n_clones, k[c].axpy(got, g, 0.7f, n), kernel_axpy_ref(want, g, 0.7f, n))
}

Test(clones, divide)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_divide", k);

    COMPARE(k, n_clones, ((void)g, k[c].divide(got, 7, n)), kernel_divide_ref(want, 7, n))
}

Test(clones, sgd)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_sgd", k);

    COMPARE(k, n_clones, k[c].sgd(got, got, g, 0.1f, n), kernel_sgd_ref(want, want, g, 0.1f, n))
}

Test(clones, is_finite)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_is_finite", k), c;
    float *x = samples(5, 1003);
    size_t i;

    for (c = 0; c < n_clones; c++) {
        cr_assert(k[c].is_finite(x, 1003));
        for (i = 0; i < 1003; i++) {
            float kept = x[i];

            memset(&x[i], 0xff, sizeof(x[i])); /* a NaN */
            cr_assert_not(k[c].is_finite(x, 1003), "clone %u, place %zu", c, i);
            x[i] = kept;
        }
    }
    free(x);
}
