/*
 * curve.c - see curve.h. Threads: main alone.
 */
#include "worker/cli/curve.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Room for one more element; its place, or NULL. */
static void *
grow(void *array, unsigned n, size_t bytes)
{
    bool full = (n & (n - 1)) == 0; /* at 0, 1, 2, 4, ... */

    return full ? realloc(array, (n ? 2 * (size_t)n : 1) * bytes) : array;
}

static struct curve_worker *
find_worker(struct curve *c, unsigned rank)
{
    while (c->n_workers <= rank) {
        struct curve_worker *more = grow(c->workers, c->n_workers, sizeof(*more));
        if (!more) {
            c->failed = true;
            return NULL;
        }
        c->workers = more;
        c->workers[c->n_workers++] = (struct curve_worker){0, NAN};
    }
    return &c->workers[rank];
}

static double
get(const json_t *line, const char *key)
{
    const json_t *v = json_object_get(line, key);

    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static void
add_record(struct curve *c, double accuracy)
{
    struct curve_record *more;

    if (!isfinite(accuracy) ||
        (c->n_records > 0 && c->records[c->n_records - 1].accuracy >= accuracy))
        return;
    more = grow(c->records, c->n_records, sizeof(*more));
    if (!more) {
        c->failed = true;
        return;
    }
    c->records = more;
    c->records[c->n_records++] = (struct curve_record){c->seconds, accuracy};
}

static void
thin_out(struct curve *c)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < c->n_points; i += 2)
        c->points[kept++] = c->points[i];
    c->n_points = kept;
    c->stride *= 2;
}

static struct curve_point
point_now(const struct curve *c)
{
    struct curve_point p = {.seconds = c->seconds};
    unsigned n = 0;

    for (unsigned i = 0; i < c->n_workers; i++) {
        p.samples += c->workers[i].samples;
        if (isfinite(c->workers[i].loss)) {
            p.loss += c->workers[i].loss;
            n++;
        }
    }
    p.loss = n > 0 ? p.loss / n : (double)NAN;
    return p;
}

static void
add_point(struct curve *c)
{
    struct curve_point p = point_now(c);

    if (c->stride == 0) {
        c->stride = 1;
        c->points = malloc(CURVE_MAX_POINTS * sizeof(*c->points));
        c->failed |= !c->points;
    }
    if (!c->points || !isfinite(p.loss) || c->n_seen++ % c->stride != 0)
        return;
    if (c->n_points == CURVE_MAX_POINTS)
        thin_out(c);
    c->points[c->n_points++] = p;
}

void
curve_add(struct curve *c, unsigned rank, const json_t *line)
{
    struct curve_worker *w = find_worker(c, rank);
    double seconds = get(line, "seconds");

    if (!w || !isfinite(seconds))
        return;
    c->seconds = fmax(c->seconds, seconds);
    w->samples = fmax(w->samples, get(line, "samples"));
    if (isfinite(get(line, "mean_loss")))
        w->loss = get(line, "mean_loss");
    add_record(c, get(line, "accuracy"));
    add_point(c);
}

void
curve_end(struct curve *c, double seconds, double accuracy)
{
    c->seconds = fmax(c->seconds, seconds);
    add_record(c, accuracy);
}

double
curve_seconds_to(const struct curve *c, double target)
{
    for (unsigned i = 0; i < c->n_records; i++) {
        if (c->records[i].accuracy >= target)
            return c->records[i].seconds;
    }
    return NAN;
}

json_t *
curve_json(const struct curve *c)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < c->n_points; i++) {
        const struct curve_point *p = &c->points[i];
        json_array_append_new(list, json_pack("[f, f, f]", p->seconds, p->samples, p->loss));
    }
    return list;
}

void
curve_deinit(struct curve *c)
{
    free(c->points);
    free(c->records);
    free(c->workers);
    *c = (struct curve){0};
}
