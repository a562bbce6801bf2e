/*
 * extras.c - the options of a training's extras. Threads: main alone.
 *
 * Invariant: whatever a rule refuses on psd is refused here with the same words, before the start.
 */
#include "worker/cli/extras.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/parse.h"
#include "worker/cli/row.h"

#define MAX_TEXT 512

/* The words of --lr-schedule and the parameters that they stand for. */
static const struct word {
    const char *kind, *word, *param;
    bool is_flag;
} words[] = {
    {"exponential", "rate", "exponential.rate", false},
    {"exponential", "steps", "exponential.steps", false},
    {"exponential", "staircase", "exponential.staircase", true},
    {"inverse-time", "rate", "inverse-time.rate", false},
    {"inverse-time", "steps", "inverse-time.steps", false},
    {"inverse-time", "staircase", "inverse-time.staircase", true},
    {"polynomial", "steps", "polynomial.steps", false},
    {"polynomial", "end", "polynomial.end", false},
    {"polynomial", "power", "polynomial.power", false},
    {"polynomial", "cycle", "polynomial.cycle", true},
    {"cosine", "steps", "cosine.steps", false},
    {"cosine", "alpha", "cosine.alpha", false},
};
#define N_WORDS (sizeof(words) / sizeof(words[0]))

static const char *const pieces[][2] = {
    {"piecewise.at1", "piecewise.lr1"}, {"piecewise.at2", "piecewise.lr2"},
    {"piecewise.at3", "piecewise.lr3"}, {"piecewise.at4", "piecewise.lr4"},
    {"piecewise.at5", "piecewise.lr5"}, {"piecewise.at6", "piecewise.lr6"},
    {"piecewise.at7", "piecewise.lr7"}, {"piecewise.at8", "piecewise.lr8"},
};
#define N_PIECES (sizeof(pieces) / sizeof(pieces[0]))

static void
add(struct train_extras *e, const char *name, double value)
{
    e->schedule[e->n_schedule++] = (struct optimizer_param){name, (float)value};
}

static enum dt_status
fail_number(const char *what, const char *text, struct dt_error *err)
{
    return dt_fail(err, DT_E_USAGE, "--lr-schedule: '%.64s' of %.64s is no number", text, what);
}

/* "1000=0.01": after step 1000 the rate is 0.01. */
static enum dt_status
take_piece(struct train_extras *e, char *text, struct dt_error *err)
{
    char *value = strchr(text, '=');
    unsigned n = e->n_schedule / 2;
    double at, lr;

    if (!value)
        return dt_fail(err, DT_E_USAGE,
                       "--lr-schedule: piecewise has pairs STEP=RATE, as in "
                       "piecewise:1000=0.01,2000=0.001; '%.64s' is none",
                       text);
    *value++ = '\0';
    if (n == N_PIECES)
        return dt_fail(err, DT_E_USAGE, "--lr-schedule: piecewise has at most %zu pairs", N_PIECES);
    if (!dt_parse_double(text, &at))
        return fail_number("piecewise", text, err);
    if (!dt_parse_double(value, &lr))
        return fail_number("piecewise", value, err);
    add(e, pieces[n][0], at);
    add(e, pieces[n][1], lr);
    return DT_OK;
}

static enum dt_status
take_word(struct train_extras *e, const char *kind, char *text, struct dt_error *err)
{
    char *value = strchr(text, '=');
    double number = 1;
    size_t i;

    if (value)
        *value++ = '\0';
    for (i = 0; i < N_WORDS; i++) {
        if (!strcmp(words[i].kind, kind) && !strcmp(words[i].word, text))
            break;
    }
    if (i == N_WORDS)
        return dt_fail(err, DT_E_USAGE, "--lr-schedule: %s has no '%.64s'", kind, text);
    if (words[i].is_flag == (value != NULL))
        return dt_fail(err, DT_E_USAGE, "--lr-schedule: %s of %s takes %s value", text, kind,
                       value ? "no" : "a");
    if (value && !dt_parse_double(value, &number))
        return fail_number(text, value, err);
    for (unsigned k = 0; k < e->n_schedule; k++) {
        if (e->schedule[k].name == words[i].param)
            return dt_fail(err, DT_E_USAGE, "--lr-schedule: %s is given twice", text);
    }
    add(e, words[i].param, number);
    return DT_OK;
}

static bool
is_kind(const char *kind)
{
    const char *name;

    for (int k = SCHEDULE_CONSTANT; (name = schedule_kind_name((enum schedule_kind)k)); k++) {
        if (!strcmp(name, kind))
            return true;
    }
    return false;
}

/* "KIND" or "KIND:WORD[=VALUE],..." */
static enum dt_status
take_schedule(struct train_extras *e, const char *given, struct dt_error *err)
{
    char text[MAX_TEXT], *rest, *part, *kind;
    enum dt_status r = DT_OK;

    if (strlen(given) >= sizeof(text))
        return dt_fail(err, DT_E_USAGE, "--lr-schedule: the text is too long");
    snprintf(text, sizeof(text), "%s", given);
    rest = text;
    kind = strsep(&rest, ":");
    if (!is_kind(kind))
        return dt_fail(err, DT_E_USAGE,
                       "--lr-schedule %.64s is unknown: use constant, exponential, inverse-time, "
                       "polynomial, cosine or piecewise",
                       kind);
    while (r == DT_OK && (part = strsep(&rest, ",")))
        r = strcmp(kind, "piecewise") ? take_word(e, kind, part, err) : take_piece(e, part, err);
    if (r == DT_OK && e->n_schedule == 0 && strcmp(kind, "constant") != 0)
        return dt_fail(err, DT_E_USAGE, "--lr-schedule %s has no numbers: as in %s", kind,
                       strcmp(kind, "piecewise") ? "exponential:rate=0.9,steps=1000"
                                                 : "piecewise:1000=0.01");
    return r;
}

enum dt_status
settings_extras(const struct settings *s, struct train_extras *out, struct dt_error *err)
{
    enum dt_status r = DT_OK;

    memset(out, 0, sizeof(*out));
    if (s->lr_schedule)
        r = take_schedule(out, s->lr_schedule, err);
    if (r == DT_OK && s->warmup > 0)
        add(out, "warmup", (double)s->warmup);
    out->clip_value = (float)s->clip_value;
    out->weight_decay = (float)s->weight_decay;
    out->clip_norm = (float)s->clip_norm;
    return r;
}

/* As the float32 that it becomes, too. */
static enum dt_status
check_size(const char *option, double given, float value, struct dt_error *err)
{
    if (given == 0 || value > 0)
        return DT_OK;
    return dt_fail(err, DT_E_USAGE, "--%s %g is too small for a float32: 0 is for none", option,
                   given);
}

static enum dt_status
check_sizes(const struct settings *s, const struct train_extras *e, struct dt_error *err)
{
    enum dt_status r = check_size("clip-value", s->clip_value, e->clip_value, err);

    if (r == DT_OK)
        r = check_size("clip-norm", s->clip_norm, e->clip_norm, err);
    return r == DT_OK ? check_size("weight-decay", s->weight_decay, e->weight_decay, err) : r;
}

/* What makes no sense where the rates are in the gradients. */
static enum dt_status
check_rank_rates(const struct settings *s, const struct train_extras *e, struct dt_error *err)
{
    const char *first = e->n_schedule > 0 ? e->schedule[0].name : "";

    if (s->clip_value > 0 || s->weight_decay > 0)
        return dt_fail(err, DT_E_USAGE,
                       "--%s: with %s psd sums lr_k * g_k, which is no gradient: leave it out%s",
                       s->clip_value > 0 ? "clip-value" : "weight-decay", s->algorithm,
                       s->clip_value > 0 ? ", or use --clip-norm" : "");
    if (!strncmp(first, "piecewise", 9) || !strncmp(first, "polynomial", 10))
        return dt_fail(err, DT_E_USAGE,
                       "--lr-schedule %s names a rate, and each worker of %s has its own: use "
                       "exponential, inverse-time or cosine",
                       s->lr_schedule, s->algorithm);
    return DT_OK;
}

/* As psd will, in the same words. */
static enum dt_status
check_rule(const struct settings *s, const struct train_extras *e, struct dt_error *err)
{
    struct algorithm row = settings_row(s);
    bool local = train_extras_are_local(&row);
    const char *rule = local ? row.local_optimizer : row.server_optimizer;
    struct optimizer_param params[TRAIN_MAX_PARAMS + 1];
    unsigned n = train_extras_params(e, true, false, params + 1);
    struct optimizer o;

    if (n == 0)
        return DT_OK;
    if (!rule)
        return dt_fail(err, DT_E_USAGE,
                       "--algorithm %s has no rule with a rate: leave --lr-schedule, --warmup, "
                       "--clip-value and --weight-decay out",
                       s->algorithm);
    params[0] = (struct optimizer_param){"lr", (float)settings_lr(s)};
    if (optimizer_init(&o, rule, params, n + 1, err) != DT_OK)
        return dt_fail_prefix(err, "--lr-schedule, --warmup, --clip-value or --weight-decay"),
               DT_E_USAGE;
    return DT_OK;
}

enum dt_status
extras_check(const struct settings *s, struct dt_error *err)
{
    struct train_extras e;
    enum dt_status r = settings_extras(s, &e, err);

    if (r == DT_OK)
        r = check_sizes(s, &e, err);
    if (r == DT_OK && settings_algorithm(s)->has_rank_rates)
        r = check_rank_rates(s, &e, err);
    if (r == DT_OK && s->clip_norm > 0 && s->overlap)
        r = dt_fail(err, DT_E_USAGE,
                    "--overlap sends a gradient before its norm is known: leave it or --clip-norm "
                    "out");
    return r == DT_OK ? check_rule(s, &e, err) : r;
}
