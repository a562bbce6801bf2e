/*
 * pins.c - reads --place and hands its pins and --partition to the library.
 *
 * Invariant: what is checked does not depend on the data, so a wrong pin is said before anything is read or
 * connected. Threads: main alone.
 */
#include "worker/cli/pins.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/buffer.h"
#include "proto/base/parse.h"
#include "worker/lib/partition.h"
#include "worker/train/model.h"

struct pin {
    char name[sizeof(((struct model_variable *)NULL)->name)];
    uint64_t task;
};

/* "NAME=TASK" */
static bool
parse(const char *text, struct pin *p)
{
    const char *mark = strrchr(text, '=');
    size_t n = mark ? (size_t)(mark - text) : 0;

    if (n == 0 || n >= sizeof(p->name))
        return false;
    memcpy(p->name, text, n);
    p->name[n] = '\0';
    return dt_parse_u64(mark + 1, &p->task);
}

static bool
has_variable(const struct model *m, const char *name)
{
    for (uint32_t i = 0; i < model_n_variables(m); i++) {
        if (strcmp(model_variable(m, i)->name, name) == 0)
            return true;
    }
    return false;
}

static enum dt_status
unknown_variable(const struct model *m, const char *name, struct dt_error *err)
{
    struct dt_buffer known = {0};

    for (uint32_t i = 0; i < model_n_variables(m); i++)
        dt_buffer_printf(&known, "%s%s", i ? ", " : "", model_variable(m, i)->name);
    dt_fail(err, DT_E_USAGE, "--place: model %s has no variable '%s'; it has %.300s", model_spec(m),
            name, dt_buffer_str(&known));
    dt_buffer_deinit(&known);
    return DT_E_USAGE;
}

static bool
is_repeated(const struct settings *s, unsigned index, const char *name)
{
    struct pin other;

    for (unsigned i = 0; i < index; i++) {
        if (parse(s->place[i], &other) && strcmp(other.name, name) == 0)
            return true;
    }
    return false;
}

static enum dt_status
check_one(const struct settings *s, const struct model *m, unsigned index, unsigned n_ps,
          struct dt_error *err)
{
    struct pin p;

    if (!parse(s->place[index], &p))
        return dt_fail(err, DT_E_USAGE, "--place: '%.80s' is no NAME=TASK, as in dense1/kernel=0",
                       s->place[index]);
    if (!has_variable(m, p.name))
        return unknown_variable(m, p.name, err);
    if (p.task >= n_ps)
        return dt_fail(err, DT_E_USAGE, "--place %s: there is no ps task %llu, only 0 to %u",
                       s->place[index], (unsigned long long)p.task, n_ps - 1);
    if (is_repeated(s, index, p.name))
        return dt_fail(err, DT_E_USAGE, "--place names %s twice: pin it once", p.name);
    return DT_OK;
}

/* With one ps task there is nothing to choose. */
static enum dt_status
check_choice(const struct settings *s, const struct dt_option *table, unsigned n_ps,
             struct dt_error *err)
{
    const char *given = s->place                                  ? "place"
                        : dt_options_given(table, s, "placement") ? "placement"
                                                                  : NULL;

    if (n_ps == 1 && given)
        return dt_fail(err, DT_E_USAGE,
                       "--%s chooses between ps tasks, and there is one: leave it out, or have "
                       "several",
                       given);
    return DT_OK;
}

enum dt_status
pins_check(const struct settings *s, const struct dt_option *table, unsigned n_ps,
           struct dt_error *err)
{
    struct model *m = NULL;
    struct partition partition;
    struct dtw_error why;
    enum dt_status r;

    if (partition_parse(s->partition, &partition, &why) != DTW_OK)
        return dt_fail(err, DT_E_USAGE, "--%s", why.text);
    if (!s->place || n_ps == 0) /* without a psd: said elsewhere */
        return check_choice(s, table, n_ps, err);
    /* The names of its variables do not depend on the data: one feature, two classes. */
    r = model_create(s->model, 1, 2, 1, s->seed, &m, err);
    for (unsigned i = 0; r == DT_OK && s->place[i]; i++)
        r = check_one(s, m, i, n_ps, err);
    model_destroy(m);
    return r == DT_OK ? check_choice(s, table, n_ps, err) : r;
}

enum dtw_status
pins_apply(const struct settings *s, struct dtw_client *client, struct dtw_error *err)
{
    enum dtw_status status = dtw_partition(client, s->partition, err);
    struct pin p;

    for (unsigned i = 0; status == DTW_OK && s->place && s->place[i]; i++) {
        if (parse(s->place[i], &p))
            status = dtw_place(client, p.name, (unsigned)p.task, err);
    }
    return status;
}
