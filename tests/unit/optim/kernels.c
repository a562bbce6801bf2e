/*
 * kernels.c - each kernel against double precision and, bit for bit, against its plain twin; all
 * sizes around the vector length, gradients at every alignment.
 */
#include "psd/optim/kernels.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/finite.h"
#include "psd/optim/kernels_ref.h"
#include "samples.h"

TestSuite(kernels, .timeout = 240);

struct inputs {
    size_t n;
    float *w; /* owned */
    float *g; /* owned: the gradient, aligned */
    const void *at;
    void *base; /* owned */
};

static void
each_case(void (*check)(const struct inputs *in))
{
    unsigned offset;
    size_t i;

    for (i = 0; i < N_SIZES; i++) {
        for (offset = 0; offset < 4; offset++) {
            struct inputs in = {.n = sample_sizes[i]};

            in.w = samples(1 + offset, in.n);
            in.g = samples(77 + offset, in.n);
            in.at = unaligned_copy(in.g, in.n, offset, &in.base);
            check(&in);
            free(in.w);
            free(in.g);
            free(in.base);
        }
    }
}

/* A copy of w with one more element, which no kernel may touch. */
static float *
copy_of(const struct inputs *in)
{
    float *x = malloc((in->n + 1) * sizeof(*x));

    memcpy(x, in->w, in->n * sizeof(*x));
    x[in->n] = 12345;
    return x;
}

static void
same_bits(const float *a, const float *b, size_t n)
{
    cr_assert_eq(memcmp(a, b, (n + 1) * sizeof(*a)), 0, "n = %zu", n);
    cr_assert_eq(a[n], 12345, "n = %zu: wrote beyond the end", n);
}

static void
check_scale(const struct inputs *in)
{
    float *a = copy_of(in), *b = copy_of(in);
    size_t i;

    kernel_scale(a, in->at, 0.3f, in->n);
    kernel_scale_ref(b, in->at, 0.3f, in->n);
    same_bits(a, b, in->n);
    for (i = 0; i < in->n; i++)
        cr_assert_eq(a[i], (float)((double)0.3f * (double)in->g[i]));
    free(a);
    free(b);
}

Test(kernels, scale)
{
    each_case(check_scale);
}

static void
check_clip_and_decay(const struct inputs *in)
{
    float *a = copy_of(in), *b = copy_of(in);
    size_t i;

    kernel_clip(a, in->at, 0.25f, in->n);
    kernel_clip_ref(b, in->at, 0.25f, in->n);
    same_bits(a, b, in->n);
    for (i = 0; i < in->n; i++)
        cr_assert_eq(a[i], in->g[i] > .25f ? .25f : in->g[i] < -.25f ? -.25f : in->g[i]);
    kernel_decay(a, in->at, in->w, 0.3f, in->n);
    kernel_decay_ref(b, in->at, in->w, 0.3f, in->n);
    same_bits(a, b, in->n);
    for (i = 0; i < in->n; i++)
        cr_assert_float_eq(a[i], (double)in->g[i] + (double)0.3f * (double)in->w[i],
                           1e-6 * (fabs((double)in->g[i]) + fabs((double)in->w[i])));
    free(a);
    free(b);
}

Test(kernels, clip_and_decay)
{
    each_case(check_clip_and_decay);
}

static void
check_square_sum(const struct inputs *in)
{
    double got = kernel_square_sum(in->at, in->n), want = 0;
    size_t i;

    for (i = 0; i < in->n; i++)
        want += (double)in->g[i] * (double)in->g[i];
    cr_assert_eq(got, kernel_square_sum_ref(in->at, in->n));
    cr_assert_float_eq(got, want, 1e-12 * want);
}

Test(kernels, square_sum)
{
    each_case(check_square_sum);
}

static void
check_axpy(const struct inputs *in)
{
    float *a = copy_of(in), *b = copy_of(in);
    size_t i;

    kernel_axpy(a, in->at, -1.7f, in->n);
    kernel_axpy_ref(b, in->at, -1.7f, in->n);
    same_bits(a, b, in->n);
    for (i = 0; i < in->n; i++) {
        double step = (double)-1.7f * (double)in->g[i], want = (double)in->w[i] + step;

        cr_assert_leq(fabs(a[i] - want), 1e-6 * fmax(fabs((double)in->w[i]), fabs(step)));
    }
    free(a);
    free(b);
}

Test(kernels, axpy)
{
    each_case(check_axpy);
}

static void
check_divide(const struct inputs *in)
{
    float *a = copy_of(in), *b = copy_of(in);
    size_t i;

    kernel_divide(a, 3, in->n);
    kernel_divide_ref(b, 3, in->n);
    same_bits(a, b, in->n);
    for (i = 0; i < in->n; i++)
        cr_assert_eq(a[i], (float)((double)in->w[i] / 3), "a division, not a product with 1/3");
    free(a);
    free(b);
}

Test(kernels, divide)
{
    each_case(check_divide);
}

static void
check_sgd(const struct inputs *in)
{
    float *a = copy_of(in), *b = copy_of(in), *in_place = copy_of(in);
    size_t i;

    kernel_sgd(a, in->w, in->at, 0.1f, in->n);
    kernel_sgd_ref(b, in->w, in->at, 0.1f, in->n);
    kernel_sgd(in_place, in_place, in->at, 0.1f, in->n);
    same_bits(a, b, in->n);
    same_bits(a, in_place, in->n);
    for (i = 0; i < in->n; i++) {
        double step = (double)0.1f * (double)in->g[i], want = (double)in->w[i] - step;

        cr_assert_leq(fabs(a[i] - want), 1e-6 * fmax(fabs((double)in->w[i]), fabs(step)));
    }
    free(a);
    free(b);
    free(in_place);
}

Test(kernels, sgd)
{
    each_case(check_sgd);
}

/* Two slots that a run could have left: m of g's sign, so that nothing cancels; v not negative. */
static float *
slot_of(const struct inputs *in, bool is_mean)
{
    float *x = samples(13, in->n);
    size_t i;

    for (i = 0; i < in->n; i++)
        x[i] = is_mean ? copysignf(x[i], in->g[i]) : fabsf(x[i]) + 1e-3f;
    x[in->n] = 12345;
    return x;
}

static void
close_to(float got, double want, double scale)
{
    cr_assert_leq(fabs((double)got - want), 1e-6 * fabs(scale), "%.9g, not %.9g", (double)got,
                  want);
}

static void
check_adagrad(const struct inputs *in)
{
    float *a = slot_of(in, false), *a_ref = slot_of(in, false), *a_old = slot_of(in, false);
    float *w = copy_of(in), *w_ref = copy_of(in);
    size_t i;

    kernel_adagrad(w, w, a, in->at, .1f, 1e-7f, in->n);
    kernel_adagrad_ref(w_ref, in->w, a_ref, in->at, .1f, 1e-7f, in->n);
    same_bits(w, w_ref, in->n);
    same_bits(a, a_ref, in->n);
    for (i = 0; i < in->n; i++) {
        double g = (double)in->g[i], sum = (double)a_old[i] + g * g;
        double step = (double).1f * g / (sqrt(sum) + (double)1e-7f);

        close_to(a[i], sum, sum);
        close_to(w[i], (double)in->w[i] - step, fmax(fabs((double)in->w[i]), fabs(step)));
    }
    free(a);
    free(a_ref);
    free(a_old);
    free(w);
    free(w_ref);
}

Test(kernels, adagrad)
{
    each_case(check_adagrad);
}

static void
agrees_with_adam(const struct inputs *in, struct kernel_adam_step s, const float *w, const float *m,
                 const float *v)
{
    float *m_old = slot_of(in, true), *v_old = slot_of(in, false);
    size_t i;

    for (i = 0; i < in->n; i++) {
        double g = (double)in->g[i], m0 = (double)m_old[i], v0 = (double)v_old[i];
        double mean = m0 + (g - m0) * (double)s.m_share;
        double square = v0 + (g * g - v0) * (double)s.v_share;
        double step = (double)s.alpha * mean / (sqrt(square) + (double)s.eps);

        close_to(m[i], mean, mean);
        close_to(v[i], square, square);
        close_to(w[i], (double)in->w[i] - step, fmax(fabs((double)in->w[i]), fabs(step)));
    }
    free(m_old);
    free(v_old);
}

static void
check_adam(const struct inputs *in)
{
    const struct kernel_adam_step step = {.1f, 1 - .9f, 1 - .999f, 1e-8f};
    float *m = slot_of(in, true), *m_ref = slot_of(in, true);
    float *v = slot_of(in, false), *v_ref = slot_of(in, false);
    float *w = copy_of(in), *w_ref = copy_of(in);

    kernel_adam(w, w, m, v, in->at, step, in->n);
    kernel_adam_ref(w_ref, in->w, m_ref, v_ref, in->at, step, in->n);
    same_bits(w, w_ref, in->n);
    same_bits(m, m_ref, in->n);
    same_bits(v, v_ref, in->n);
    agrees_with_adam(in, step, w, m, v);
    free(m);
    free(m_ref);
    free(v);
    free(v_ref);
    free(w);
    free(w_ref);
}

Test(kernels, adam)
{
    each_case(check_adam);
}

static void
check_add_and_assign(const struct inputs *in)
{
    float *a = copy_of(in), *b = copy_of(in);
    size_t i;

    kernel_add(a, a, in->at, in->n);
    kernel_add_ref(b, in->w, in->at, in->n);
    same_bits(a, b, in->n);
    for (i = 0; i < in->n; i++)
        cr_assert_eq(a[i], in->w[i] + in->g[i]);
    kernel_add_damped(a, a, in->at, 3, in->n);
    kernel_add_damped_ref(b, b, in->at, 3, in->n);
    same_bits(a, b, in->n);
    for (i = 0; i < in->n; i++)
        cr_assert_eq(a[i], (float)(in->w[i] + in->g[i]) + in->g[i] / 3);
    kernel_assign(a, in->at, in->n);
    kernel_assign_ref(b, in->at, in->n);
    same_bits(a, b, in->n);
    cr_assert_eq(memcmp(a, in->g, in->n * sizeof(*a)), 0);
    free(a);
    free(b);
}

Test(kernels, add_and_assign)
{
    each_case(check_add_and_assign);
}

/* The keras form with eps 0 is tf1's: sqrt(a) + 0 has the bits of sqrt(a). */
Test(kernels, adagrad_without_eps)
{
    float *a = samples(1, 1000), *g = samples(2, 1000), *w = samples(3, 1000);
    float *out = samples(3, 1000);
    size_t i;

    for (i = 0; i < 1000; i++)
        a[i] = fabsf(a[i]) + 1e-30f;
    kernel_adagrad(out, w, a, g, .1f, 0, 1000);
    for (i = 0; i < 1000; i++) {
        volatile float step = .1f * g[i];

        cr_assert_eq(out[i], w[i] - step / sqrtf(a[i]));
    }
    free(a);
    free(g);
    free(w);
    free(out);
}

/* A place where w - lr*g with one rounding differs from two: FMA contraction would be seen. */
Test(kernels, the_product_is_rounded_before_it_is_subtracted)
{
    enum { N = 64 };
    float w[N], g[N], out[N];
    int i;

    for (i = 0; i < N; i++) {
        g[i] = 1.0f + FLT_EPSILON;
        w[i] = 1.0f + 2 * FLT_EPSILON; /* g * g, rounded */
    }
    kernel_sgd(out, w, g, 1.0f + FLT_EPSILON, N);
    for (i = 0; i < N; i++)
        cr_assert_eq(out[i], 0);
    kernel_axpy(w, g, -(1.0f + FLT_EPSILON), N);
    for (i = 0; i < N; i++)
        cr_assert_eq(w[i], 0);
}

static void
check_finite(const struct inputs *in)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    char *at = (char *)in->base + ((const char *)in->at - (const char *)in->base);
    size_t step = in->n > 1000 ? in->n / 7 : 1, i, k;

    cr_assert(dt_is_finite(in->at, in->n));
    cr_assert(kernel_is_finite_ref(in->at, in->n));
    for (i = 0; i < in->n; i += step) {
        size_t place = i + step < in->n ? i : in->n - 1; /* the last one, too */

        for (k = 0; k < 4; k++) {
            memcpy(at + place * sizeof(float), &bad[k], sizeof(float));
            cr_assert_not(dt_is_finite(in->at, in->n), "n %zu, place %zu", in->n, place);
            cr_assert_not(kernel_is_finite_ref(in->at, in->n));
        }
        memcpy(at + place * sizeof(float), &in->g[place], sizeof(float));
    }
}

Test(kernels, is_finite_finds_one_in_any_place)
{
    each_case(check_finite);
}

Test(kernels, the_largest_and_smallest_numbers_are_finite)
{
    const float x[] = {FLT_MAX, -FLT_MAX, FLT_MIN, 1e-45f, -1e-45f, 0, -0.0f, 1};

    cr_assert(dt_is_finite(x, sizeof(x) / sizeof(x[0])));
    cr_assert_eq(dt_largest(x, 8), FLT_MAX);
    cr_assert_eq(dt_largest(x + 3, 4), 1e-45f);
    cr_assert_eq(dt_largest(x, 0), 0);
}

Test(kernels, nothing_to_do_needs_no_memory)
{
    kernel_scale(NULL, NULL, 1, 0);
    kernel_axpy(NULL, NULL, 1, 0);
    kernel_divide(NULL, 1, 0);
    kernel_sgd(NULL, NULL, NULL, 1, 0);
    kernel_adagrad(NULL, NULL, NULL, NULL, 1, 0, 0);
    kernel_adam(NULL, NULL, NULL, NULL, NULL, (struct kernel_adam_step){1, 1, 1, 1}, 0);
    kernel_add(NULL, NULL, NULL, 0);
    kernel_add_damped(NULL, NULL, NULL, 1, 0);
    kernel_assign(NULL, NULL, 0);
    cr_assert(dt_is_finite(NULL, 0));
}
