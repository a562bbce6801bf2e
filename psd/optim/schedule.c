/*
 * schedule.c - schedules: their parameters and their equations. No state; any thread.
 */
#include "psd/optim/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_PARAMS 4
#define STEPS                                                                                      \
    {                                                                                              \
        .name = "steps", .required = true, .min = 1, .max = SCHEDULE_MAX_STEPS, .whole = true      \
    }
#define FLAG_OF(word)                                                                              \
    {                                                                                              \
        .name = word, .max = 1, .whole = true                                                      \
    }

struct schedule_param {
    const char *name;
    bool required;
    float def, min, max; /* min <= value <= max */
    bool above;          /* min < value */
    bool whole;
};

/* Indices into values; steps is the first of all kinds but piecewise. */
enum { AT_STEPS, AT_RATE, AT_STAIRCASE };
enum { AT_END = 1, AT_POWER, AT_CYCLE };
enum { AT_ALPHA = 1 };

static const struct schedule_kind_row {
    const char *name;
    unsigned n;
    struct schedule_param params[MAX_PARAMS];
} kinds[SCHEDULE_N_KINDS] = {
    [SCHEDULE_CONSTANT] = {.name = "constant"},
    [SCHEDULE_EXPONENTIAL] = {"exponential",
                              3,
                              {STEPS,
                               {.name = "rate", .required = true, .above = true, .max = 1},
                               FLAG_OF("staircase")}},
    [SCHEDULE_INVERSE_TIME] = {"inverse-time",
                               3,
                               {STEPS,
                                {.name = "rate", .required = true, .max = 1e6f},
                                FLAG_OF("staircase")}},
    [SCHEDULE_POLYNOMIAL] = {"polynomial",
                             4,
                             {STEPS,
                              {.name = "end", .def = 1e-4f, .max = 1e6f},
                              {.name = "power", .def = 1, .above = true, .max = 100},
                              FLAG_OF("cycle")}},
    [SCHEDULE_COSINE] = {"cosine", 2, {STEPS, {.name = "alpha", .max = 1}}},
    [SCHEDULE_PIECEWISE] = {.name = "piecewise"},
};

static const struct schedule_param piece[2] = {
    {.name = "at", .max = SCHEDULE_MAX_STEPS, .whole = true},
    {.name = "lr", .max = 1e6f},
};
static const struct schedule_param warmup = {
    .name = "warmup", .min = 1, .max = SCHEDULE_MAX_STEPS, .whole = true};

const char *
schedule_kind_name(enum schedule_kind kind)
{
    return kind < SCHEDULE_N_KINDS ? kinds[kind].name : NULL;
}

static enum dt_status
check_range(const char *name, const struct schedule_param *p, float value, struct dt_error *err)
{
    if (value >= p->min && value <= p->max && !(p->above && value <= p->min) &&
        !(p->whole && value != floorf(value)))
        return DT_OK;
    return dt_fail(err, DT_R_BAD_VALUE, "%s is %g, must be %s%s %.8g and at most %.8g", name,
                   (double)value, p->whole ? "a whole number, " : "",
                   p->above ? "above" : "at least", (double)p->min, (double)p->max);
}

/* `length` bytes of a name before its point. */
static enum schedule_kind
find_kind(const char *name, size_t length)
{
    enum schedule_kind k;

    for (k = SCHEDULE_EXPONENTIAL; k < SCHEDULE_N_KINDS; k++) {
        if (strlen(kinds[k].name) == length && !memcmp(kinds[k].name, name, length))
            break;
    }
    return k;
}

/* "at3" -> 4, "lr3" -> 5; -1: neither. */
static int
find_piece(const char *word, const struct schedule_param **p)
{
    int which = strncmp(word, "lr", 2) == 0;

    if ((!which && strncmp(word, "at", 2) != 0) || word[2] < '1' ||
        word[2] > '0' + SCHEDULE_MAX_PIECES || word[3])
        return -1;
    *p = &piece[which];
    return 2 * (word[2] - '1') + which;
}

static int
find_param(enum schedule_kind kind, const char *word, const struct schedule_param **p)
{
    unsigned i;

    if (kind == SCHEDULE_PIECEWISE)
        return find_piece(word, p);
    for (i = 0; i < kinds[kind].n; i++) {
        *p = &kinds[kind].params[i];
        if (!strcmp((*p)->name, word))
            return (int)i;
    }
    return -1;
}

static enum dt_status
take_warmup(struct schedule *s, float value, struct dt_error *err)
{
    if (s->warmup > 0)
        return dt_fail(err, DT_R_BAD_VALUE, "warmup is given twice");
    s->warmup = value;
    return check_range("warmup", &warmup, value, err);
}

static enum dt_status
take(struct schedule *s, enum schedule_kind kind, const char *name, float value,
     struct dt_error *err)
{
    const struct schedule_param *p = NULL;
    int at = find_param(kind, strchr(name, '.') + 1, &p);

    if (at < 0)
        return dt_fail(err, DT_R_BAD_VALUE, "the schedule %s has no '%.64s'", kinds[kind].name,
                       name);
    if (s->kind != SCHEDULE_CONSTANT && s->kind != kind)
        return dt_fail(err, DT_R_BAD_VALUE, "%s and %s: a rate has one schedule",
                       kinds[s->kind].name, kinds[kind].name);
    if (s->seen >> at & 1)
        return dt_fail(err, DT_R_BAD_VALUE, "%.64s is given twice", name);
    s->kind = kind;
    s->seen |= 1u << at;
    s->values[at] = value;
    return check_range(name, p, value, err);
}

bool
schedule_take(struct schedule *s, const char *name, float value, enum dt_status *status,
              struct dt_error *err)
{
    const char *point = strchr(name, '.');
    enum schedule_kind kind;

    if (!strcmp(name, warmup.name)) {
        *status = take_warmup(s, value, err);
        return true;
    }
    kind = point ? find_kind(name, (size_t)(point - name)) : SCHEDULE_N_KINDS;
    if (kind == SCHEDULE_N_KINDS)
        return false;
    *status = take(s, kind, name, value, err);
    return true;
}

static unsigned
n_pieces(const struct schedule *s)
{
    unsigned n = 0;

    while (n < SCHEDULE_MAX_PIECES && (s->seen >> 2 * n & 3) == 3)
        n++;
    return n;
}

static enum dt_status
finish_pieces(const struct schedule *s, struct dt_error *err)
{
    unsigned n = n_pieces(s), i;

    if (s->seen != (uint32_t)((UINT64_C(1) << 2 * n) - 1))
        return dt_fail(err, DT_R_BAD_VALUE,
                       "piecewise: each at has its lr, and they are numbered from 1 on");
    for (i = 1; i < n; i++) {
        if (s->values[2 * i] <= s->values[2 * (i - 1)])
            return dt_fail(err, DT_R_BAD_VALUE, "piecewise: at%u is %.8g, must be above at%u, %.8g",
                           i + 1, (double)s->values[2 * i], i, (double)s->values[2 * (i - 1)]);
    }
    return DT_OK;
}

enum dt_status
schedule_finish(struct schedule *s, struct dt_error *err)
{
    const struct schedule_kind_row *row = &kinds[s->kind];
    unsigned i;

    if (s->kind == SCHEDULE_PIECEWISE)
        return finish_pieces(s, err);
    for (i = 0; i < row->n; i++) {
        if (s->seen >> i & 1)
            continue;
        if (row->params[i].required)
            return dt_fail(err, DT_R_BAD_VALUE, "%s.%s is missing", row->name, row->params[i].name);
        s->values[i] = row->params[i].def;
    }
    return DT_OK;
}

bool
schedule_comes_to_zero(const struct schedule *s)
{
    unsigned i, n = n_pieces(s);

    if (s->kind == SCHEDULE_POLYNOMIAL)
        return s->values[AT_END] == 0;
    if (s->kind == SCHEDULE_COSINE)
        return s->values[AT_ALPHA] == 0;
    for (i = 0; s->kind == SCHEDULE_PIECEWISE && i < n; i++) {
        if (s->values[2 * i + 1] == 0)
            return true;
    }
    return false;
}

/* log(x) for x > 0: x = m * 2^e with m about 1; log m = 2 * atanh((m - 1) / (m + 1)). */
static double
plain_log(double x)
{
    int e, k;
    double m = frexp(x, &e), r, power, sum = 0;

    if (m < M_SQRT1_2) {
        m *= 2;
        e--;
    }
    power = r = (m - 1) / (m + 1);
    for (k = 1; k < 26; k += 2) {
        sum += power / k;
        power *= r * r;
    }
    return 2 * sum + e * M_LN2;
}

/* exp(x) for x <= 0, by its series on what is left of a power of two. */
static double
plain_exp(double x)
{
    double n = floor(x / M_LN2 + 0.5), r = x - n * M_LN2, term = 1, sum = 1;
    int k;

    if (n < -1000)
        return 0;
    for (k = 1; k < 18; k++) {
        term *= r / k;
        sum += term;
    }
    return ldexp(sum, (int)n);
}

/* base^power for 0 <= base <= 1, power >= 0 */
static double
plain_power(double base, double power)
{
    if (power == 0 || base == 1)
        return 1;
    if (power == 1 || base == 0)
        return base;
    return plain_exp(power * plain_log(base));
}

/* cos(pi * x) for 0 <= x <= 1, by its series on 0..pi/2 */
static double
plain_cos_pi(double x)
{
    double a = M_PI * (x > 0.5 ? 1 - x : x), term = 1, sum = 1;
    int k;

    for (k = 2; k < 24; k += 2) {
        term *= -a * a / (k * (k - 1));
        sum += term;
    }
    return x > 0.5 ? -sum : sum;
}

/* Steps gone, in units of `steps`; whole ones in a staircase. */
static double
gone(const struct schedule *s, double step)
{
    double share = step / (double)s->values[AT_STEPS];

    return s->values[AT_STAIRCASE] != 0 ? floor(share) : share;
}

/* tf.train.polynomial_decay: (lr - end) * (1 - step / steps)^power + end, with step = min(step, steps); cycle:
 * steps *= ceil(step / steps) instead. */
static double
polynomial(const float *v, double lr, double step)
{
    double steps = (double)v[AT_STEPS], end = (double)v[AT_END];

    if (v[AT_CYCLE] != 0 && step > steps)
        steps *= ceil(step / steps);
    if (step > steps)
        step = steps;
    return (lr - end) * plain_power(1 - step / steps, (double)v[AT_POWER]) + end;
}

/* tf.train.cosine_decay: lr * ((1 - alpha) * (1 + cos(pi * step / steps)) / 2 + alpha), step = min(step, steps) */
static double
cosine(const float *v, double lr, double step)
{
    double steps = (double)v[AT_STEPS], alpha = (double)v[AT_ALPHA];

    if (step > steps)
        step = steps;
    return lr * ((1 - alpha) * (1 + plain_cos_pi(step / steps)) / 2 + alpha);
}

/* tf.train.piecewise_constant: lr up to and with at1, lr1 above it up to and with at2, ... */
static double
piecewise(const struct schedule *s, double lr, double step)
{
    unsigned i, n = n_pieces(s);

    for (i = 0; i < n && step > (double)s->values[2 * i]; i++)
        lr = (double)s->values[2 * i + 1];
    return lr;
}

static double
scheduled(const struct schedule *s, double lr, double step)
{
    switch (s->kind) {
    case SCHEDULE_EXPONENTIAL: /* tf.train.exponential_decay: lr * rate^(step / steps) */
        return lr * plain_power((double)s->values[AT_RATE], gone(s, step));
    case SCHEDULE_INVERSE_TIME: /* tf.train.inverse_time_decay: lr / (1 + rate * step / steps) */
        return lr / (1 + (double)s->values[AT_RATE] * gone(s, step));
    case SCHEDULE_POLYNOMIAL:
        return polynomial(s->values, lr, step);
    case SCHEDULE_COSINE:
        return cosine(s->values, lr, step);
    case SCHEDULE_PIECEWISE:
        return piecewise(s, lr, step);
    default:
        return lr;
    }
}

/* Warm-up: the scheduled rate * (step + 1) / warmup while step < warmup (Goyal et al. 2017, section 2.2: from
 * a small rate by equal amounts to the whole one), so that the first update does move. */
float
schedule_rate(const struct schedule *s, float lr, uint64_t step)
{
    double rate, now = (double)step;

    if (s->kind == SCHEDULE_CONSTANT && s->warmup == 0)
        return lr;
    rate = scheduled(s, (double)lr, now);
    if (now < (double)s->warmup)
        rate *= (now + 1) / (double)s->warmup;
    return (float)rate;
}
