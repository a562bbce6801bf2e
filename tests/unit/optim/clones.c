/*
 * clones.c - every clone of a kernel gives the bits of its plain twin, not only the one that the
 * loader chose. Clones are local symbols ("kernel_sgd.avx2"): they are looked up in our own ELF file.
 * Sanitized builds have no clones; there the tests are skipped.
 */
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/finite.h"
#include "psd/optim/kernels_ref.h"
#include "samples.h"

TestSuite(clones, .timeout = 240);

#define MAX_CLONES 3

union kernel {
    void *address;
    void (*axpy)(float *acc, const void *g, float scale, size_t n);
    void (*divide)(float *g, float divisor, size_t n);
    void (*clip)(float *out, const void *g, float limit, size_t n);
    void (*decay)(float *out, const void *g, const float *w, float l2, size_t n);
    double (*square_sum)(const void *g, size_t n);
    void (*sgd)(float *out, const float *w, const void *g, float lr, size_t n);
    void (*adagrad)(float *out, const float *w, float *a, const void *g, float lr, float eps,
                    size_t n);
    void (*adam)(float *out, const float *w, float *m, float *v, const void *g,
                 struct kernel_adam_step step, size_t n);
    void (*momentum)(float *out, const float *w, float *a, const void *g, float lr, float mu,
                     size_t n);
    void (*rmsprop)(float *out, const float *w, float *ms, float *mom, const void *g,
                    struct kernel_rmsprop_step step, size_t n);
    void (*rmsprop_centered)(float *out, const float *w, float *ms, float *mom, float *mg,
                             const void *g, struct kernel_rmsprop_step step, size_t n);
    void (*ftrl)(float *out, const float *w, float *sq, float *z, const void *g,
                 struct kernel_ftrl_step step, size_t n);
    void (*add)(float *out, const float *w, const void *g, size_t n);
    void (*add_damped)(float *out, const float *w, const void *g, float divisor, size_t n);
    void (*assign)(float *out, const void *g, size_t n);
    float (*largest)(const void *g, size_t n);
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

Test(clones, clip)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_clip", k);

    COMPARE(k, n_clones, k[c].clip(got, g, 0.1f, n), kernel_clip_ref(want, g, 0.1f, n))
}

Test(clones, decay)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_decay", k);

    COMPARE(k, n_clones, k[c].decay(got, g, got, 0.3f, n), kernel_decay_ref(want, g, want, 0.3f, n))
}

Test(clones, square_sum)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_square_sum", k);

    COMPARE(k, n_clones, cr_assert(k[c].square_sum(g, n) == kernel_square_sum_ref(g, n)), (void)g)
}

Test(clones, sgd)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_sgd", k);

    COMPARE(k, n_clones, k[c].sgd(got, got, g, 0.1f, n), kernel_sgd_ref(want, want, g, 0.1f, n))
}

Test(clones, add)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_add", k);

    COMPARE(k, n_clones, k[c].add(got, got, g, n), kernel_add_ref(want, want, g, n))
}

Test(clones, add_damped)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_add_damped", k);

    COMPARE(k, n_clones, k[c].add_damped(got, got, g, 3, n),
            kernel_add_damped_ref(want, want, g, 3, n))
}

Test(clones, assign)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("kernel_assign", k);

    COMPARE(k, n_clones, k[c].assign(got, g, n), kernel_assign_ref(want, g, n))
}

/* Values and three slots of n elements in a row; no slot is negative. */
static float *
samples_with_slots(size_t n)
{
    float *x = samples(6, 4 * n);
    size_t i;

    for (i = n; i < 4 * n; i++)
        x[i] = fabsf(x[i]) + 1e-6f;
    return x;
}

/* `run` makes three steps; without a clone by the plain twin. */
static void
compare_with_slots(const char *kernel,
                   void (*run)(const union kernel *clone, float *x, const void *g, size_t n))
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones(kernel, k), c;
    size_t i;

    for (i = 0; i < N_SIZES; i++) {
        size_t n = sample_sizes[i];
        float *want = samples_with_slots(n), *gradient = samples(7, n);
        void *base;
        const void *g = unaligned_copy(gradient, n, 1, &base);

        run(NULL, want, g, n);
        for (c = 0; c < n_clones; c++) {
            float *got = samples_with_slots(n);

            run(&k[c], got, g, n);
            cr_assert_eq(memcmp(got, want, 4 * n * sizeof(*got)), 0, "clone %u, n = %zu", c, n);
            free(got);
        }
        free(want);
        free(gradient);
        free(base);
    }
}

static void
run_adagrad(const union kernel *clone, float *x, const void *g, size_t n)
{
    int step;

    for (step = 0; step < 3; step++)
        (clone ? clone->adagrad : kernel_adagrad_ref)(x, x, x + n, g, .1f, 0, n);
}

Test(clones, adagrad)
{
    compare_with_slots("kernel_adagrad", run_adagrad);
}

static void
run_adam(const union kernel *clone, float *x, const void *g, size_t n)
{
    const struct kernel_adam_step s = {.3f, 1 - .9f, 1 - .999f, 1e-8f};
    int step;

    for (step = 0; step < 3; step++)
        (clone ? clone->adam : kernel_adam_ref)(x, x, x + n, x + 2 * n, g, s, n);
}

Test(clones, adam)
{
    compare_with_slots("kernel_adam", run_adam);
}

static void
run_momentum(const union kernel *clone, float *x, const void *g, size_t n)
{
    int step;

    for (step = 0; step < 3; step++)
        (clone ? clone->momentum : kernel_momentum_ref)(x, x, x + n, g, .1f, .9f, n);
}

Test(clones, momentum)
{
    compare_with_slots("kernel_momentum", run_momentum);
}

static void
run_nesterov(const union kernel *clone, float *x, const void *g, size_t n)
{
    int step;

    for (step = 0; step < 3; step++)
        (clone ? clone->momentum : kernel_nesterov_ref)(x, x, x + n, g, .1f, .9f, n);
}

Test(clones, nesterov)
{
    compare_with_slots("kernel_nesterov", run_nesterov);
}

static const struct kernel_rmsprop_step rmsprop = {.1f, 1 - .9f, .5f, 1e-10f};

static void
run_rmsprop(const union kernel *clone, float *x, const void *g, size_t n)
{
    int step;

    for (step = 0; step < 3; step++)
        (clone ? clone->rmsprop : kernel_rmsprop_ref)(x, x, x + n, x + 2 * n, g, rmsprop, n);
}

Test(clones, rmsprop)
{
    compare_with_slots("kernel_rmsprop", run_rmsprop);
}

static void
run_centered(const union kernel *clone, float *x, const void *g, size_t n)
{
    int step;

    for (step = 0; step < 3; step++)
        (clone ? clone->rmsprop_centered : kernel_rmsprop_centered_ref)(x, x, x + n, x + 2 * n,
                                                                        x + 3 * n, g, rmsprop, n);
}

Test(clones, rmsprop_centered)
{
    compare_with_slots("kernel_rmsprop_centered", run_centered);
}

static void
run_ftrl(const union kernel *clone, float *x, const void *g, size_t n)
{
    const struct kernel_ftrl_step s = {.5f, .01f, .1f};
    int step;

    for (step = 0; step < 3; step++)
        (clone ? clone->ftrl : kernel_ftrl_ref)(x, x, x + n, x + 2 * n, g, s, n);
}

Test(clones, ftrl)
{
    compare_with_slots("kernel_ftrl", run_ftrl);
}

Test(clones, largest)
{
    union kernel k[MAX_CLONES];
    unsigned n_clones = find_clones("dt_largest", k), c;
    float *x = samples(5, 1003);
    size_t i;

    for (c = 0; c < n_clones; c++) {
        cr_assert_eq(k[c].largest(x, 1003), dt_largest(x, 1003));
        for (i = 0; i < 1003; i++) {
            float kept = x[i];

            memset(&x[i], 0xff, sizeof(x[i])); /* a NaN */
            cr_assert(isnan(k[c].largest(x, 1003)), "clone %u, place %zu", c, i);
            x[i] = -1e30f;
            cr_assert_eq(k[c].largest(x, 1003), 1e30f, "clone %u, place %zu", c, i);
            x[i] = kept;
        }
    }
    free(x);
}
