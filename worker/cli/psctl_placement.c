/*
 * psctl_placement.c - asks for the placement of a job page by page, and shows it. One thread.
 *
 * The names of variables come from workers; psd takes only letters, digits and _ . / : - in them.
 */
#include "worker/cli/psctl_placement.h"

#include <string.h>

#include "proto/base/plural.h"
#include "proto/wire/placement.h"
#include "worker/cli/psctl_body.h"

static enum dt_status
fetch_page(struct psctl *c, const struct dt_placement *m, json_t **page, struct dt_error *err)
{
    struct dt_buffer body = {0};
    enum dt_status s = psctl_ask_placement(c, m, &body, err);

    if (s == DT_OK && !(*page = body_decode(&body)))
        s = dt_fail(err, DT_E_PROTOCOL, "%s: the answer cannot be read", c->endpoint);
    dt_buffer_deinit(&body);
    return s;
}

/* Append the page's variables to the job's. */
static enum dt_status
join_page(json_t *job, const json_t *page, struct dt_error *err)
{
    if (body_number(job, "job_id") != body_number(page, "job_id") ||
        body_number(job, "n_variables") != body_number(page, "n_variables"))
        return dt_fail(err, DT_E_TEMPORARY, "job %s was replaced while it was asked for: ask again",
                       body_text(job, "name"));
    json_array_extend(json_object_get(job, "variables"), json_object_get(page, "variables"));
    return DT_OK;
}

/* sums[i] += list[i]; as long as the longest list. */
static void
add_up(json_t *sums, const json_t *list)
{
    size_t i;
    json_t *v;

    json_array_foreach(list, i, v)
    {
        if (i == json_array_size(sums))
            json_array_append_new(sums, json_integer(0));
        json_integer_set(json_array_get(sums, i),
                         json_integer_value(json_array_get(sums, i)) + json_integer_value(v));
    }
}

static void
sum_up(json_t *job)
{
    json_t *slices = json_array(), *bytes = json_array(), *v;
    size_t i;

    json_array_foreach(json_object_get(job, "variables"), i, v)
    {
        add_up(slices, json_object_get(v, "shard_slices"));
        add_up(bytes, json_object_get(v, "shard_bytes"));
    }
    json_object_set_new(job, "shard_slices", slices);
    json_object_set_new(job, "shard_bytes", bytes);
    json_object_del(job, "next");
    json_object_del(job, "job_id");
    json_object_del(job, "n_variables");
}

/* The next page's first variable; false at the last page. A psd that does not go on is not followed. */
static bool
is_another(const json_t *page, struct dt_placement *m)
{
    json_int_t next = json_integer_value(json_object_get(page, "next"));

    if (next <= (json_int_t)m->first || next >= DT_MAX_VARIABLES)
        return false;
    m->first = (uint32_t)next;
    return true;
}

enum dt_status
placement_fetch(struct psctl *c, const char *job, json_t **out, struct dt_error *err)
{
    struct dt_placement m = {.first = 0};
    json_t *whole = NULL, *page = NULL;
    enum dt_status s;
    bool more;

    snprintf(m.job, sizeof(m.job), "%s", job);
    s = fetch_page(c, &m, &whole, err);
    more = s == DT_OK && is_another(whole, &m);
    while (s == DT_OK && more) {
        s = fetch_page(c, &m, &page, err);
        if (s != DT_OK)
            break;
        s = join_page(whole, page, err);
        more = is_another(page, &m);
        json_decref(page);
    }
    if (s != DT_OK) {
        json_decref(whole);
        return s;
    }
    sum_up(whole);
    *out = whole;
    return DT_OK;
}

static void
print_bytes(long long bytes, FILE *out)
{
    if (bytes < 1 << 10)
        fprintf(out, "%lld B", bytes);
    else if (bytes < 1 << 20)
        fprintf(out, "%.1f KiB", (double)bytes / (1 << 10));
    else
        fprintf(out, "%.1f MiB", (double)bytes / (1 << 20));
}

/* "12 slices: shard 0 4, shard 1 4, shard 2 4"; shards that hold none are left out. */
static void
print_slices(const json_t *slices, FILE *out)
{
    long long n = 0;
    const char *before = ": ";
    size_t i;
    json_t *v;

    json_array_foreach(slices, i, v) n += json_integer_value(v);
    fprintf(out, "%lld slice%s", n, dt_plural((uint64_t)n));
    json_array_foreach(slices, i, v)
    {
        if (json_integer_value(v) == 0)
            continue;
        fprintf(out, "%sshard %zu %lld", before, i, (long long)json_integer_value(v));
        before = ", ";
    }
}

static void
print_shape(const json_t *shape, FILE *out)
{
    size_t i;
    json_t *v;

    fputs(" [", out);
    json_array_foreach(shape, i, v)
        fprintf(out, "%s%lld", i ? ", " : "", (long long)json_integer_value(v));
    fputs("]", out);
}

/* "  0 dense/kernel [65, 10], 650 elements (2.5 KiB), sgd lr=0.1, ps task 0: 1 slice: shard 0 1" */
static void
print_variable(const json_t *variable, FILE *out)
{
    const json_t *slices = json_object_get(variable, "shard_slices");
    json_t *params = json_object_get(variable, "params"), *v;
    const char *key;

    fprintf(out, "  %lld %s", body_number(variable, "id"), body_text(variable, "name"));
    print_shape(json_object_get(variable, "shape"), out);
    fprintf(out, ", %lld element%s (", body_number(variable, "elements"),
            dt_plural((uint64_t)body_number(variable, "elements")));
    print_bytes(body_number(variable, "bytes"), out);
    fprintf(out, "), %s", body_text(variable, "optimizer"));
    json_object_foreach(params, key, v) fprintf(out, " %s=%g", key, json_number_value(v));
    fprintf(out, ", ps task %lld", body_number(variable, "ps_task"));
    if (json_array_size(slices) > 0) {
        fputs(": ", out);
        print_slices(slices, out);
    }
    fputc('\n', out);
}

static void
print_sums(const json_t *job, FILE *out)
{
    const json_t *slices = json_object_get(job, "shard_slices");
    const json_t *bytes = json_object_get(job, "shard_bytes");
    size_t i;
    json_t *v;

    if (json_array_size(slices) == 0)
        fputs("  this psd holds nothing of it\n", out);
    json_array_foreach(slices, i, v)
    {
        long long n = (long long)json_integer_value(v);

        fprintf(out, "  shard %zu serves %lld slice%s, ", i, n, n == 1 ? "" : "s");
        print_bytes((long long)json_integer_value(json_array_get(bytes, i)), out);
        fputc('\n', out);
    }
}

void
placement_print(const json_t *job, FILE *out)
{
    const json_t *variables = json_object_get(job, "variables");
    size_t i;
    json_t *v;

    fprintf(out, "job %s: ps task %lld of %lld, %lld shard%s, locking %s, %zu variable%s\n",
            body_text(job, "name"), body_number(job, "ps_task"), body_number(job, "ps_tasks"),
            body_number(job, "shards"), dt_plural((uint64_t)body_number(job, "shards")),
            body_text(job, "locking"), json_array_size(variables),
            dt_plural(json_array_size(variables)));
    json_array_foreach(variables, i, v) print_variable(v, out);
    if (json_array_size(variables) > 0)
        print_sums(job, out);
}
