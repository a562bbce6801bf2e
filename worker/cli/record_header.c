/*
 * record_header.c - the options of a training to JSON and back.
 *
 * Invariant: an option that changes what is computed goes into the record because it is one of `train`, without being
 * named here. Threads: main alone.
 */
#include "worker/cli/record_header.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cli/row.h"
#include "worker/cli/unused.h"
#include "worker/train/fingerprint.h"

#define MAX_OPTIONS 128

/* Where it goes, what comes out, and how fast: nothing that a replay would do. */
static const char *const not_recorded[] = {
    "ps",   "save",    "metrics",    "json",    "log-level", "report-fd", "record", "data",
    "help", "overlap", "step-delay", "threads", "cpus",      "retry-for", "lease",  NULL};
static const struct settings_route to_record = {settings_train, settings_train, not_recorded};

enum dt_status
record_check_options(const struct settings *s, struct dt_error *err)
{
    const struct algorithm *a = settings_algorithm(s);

    if (!s->record)
        return DT_OK;
    if (!algorithm_needs_ps(a))
        return dt_fail(
            err, DT_E_USAGE,
            "--record: --algorithm %s repeats itself with the same options: leave it out", a->name);
    if (a->consistency == CONSISTENCY_SYNC)
        return dt_fail(err, DT_E_USAGE,
                       "--record: the rounds of --algorithm %s do not depend on who is faster; "
                       "--record is for asynchronous ones",
                       a->name);
    if (settings_row(s).locking == LOCKING_NONE)
        return dt_fail(
            err, DT_E_USAGE,
            "--record: updates of --algorithm %s do not exclude each other, so they have "
            "no order that could be recorded",
            a->name);
    return DT_OK;
}

static json_t *
options(const struct settings *s)
{
    char *argv[MAX_OPTIONS];
    json_t *list = json_array();
    unsigned n = 0;

    if (!settings_forward(s, &to_record, argv, &n, MAX_OPTIONS)) {
        json_decref(list);
        list = NULL;
    }
    for (unsigned i = 0; i < n; i++) {
        if (list && json_array_append_new(list, json_string(argv[i])) != 0) {
            json_decref(list);
            list = NULL;
        }
        free(argv[i]);
    }
    return list;
}

/* The path of the data from everywhere; it stays as it is where it has no such name. */
static void
add_data(json_t *list, const char *path)
{
    char *full = path ? realpath(path, NULL) : NULL;
    char *text = NULL;

    if (path && asprintf(&text, "--data=%s", full ? full : path) >= 0)
        json_array_append_new(list, json_string(text));
    free(text);
    free(full);
}

uint64_t
record_data_fingerprint(const struct data *d)
{
    uint64_t train = d->loaded ? fingerprint_data(&d->train) : 0;

    return d->loaded ? train + 31 * fingerprint_data(&d->test) : 0;
}

char *
record_header_text(const struct training *t)
{
    const struct settings *s = t->s;
    json_t *list = options(s);
    char data[32] = "";
    char *text = NULL;

    if (!list)
        return NULL;
    add_data(list, s->data);
    snprintf(data, sizeof(data), "%016llx", (unsigned long long)record_data_fingerprint(&t->data));
    json_t *o =
        json_pack("{s:s, s:I, s:o, s:i, s:s, s:s, s:b}", "version", PSD_VERSION, "rank",
                  (json_int_t)s->rank, "options", list, "threads", model_threads(), "kernel",
                  model_cpu_kernel(), "data", data, "final_values", s->save != NULL);
    if (o)
        text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return text;
}

/* --name=value texts into settings. */
static enum dt_status
read_options(const json_t *list, struct record_header *h, struct dt_error *err)
{
    const char *argv[MAX_OPTIONS + 1] = {"train"};
    size_t n = json_array_size(list);

    if (n == 0 || n > MAX_OPTIONS)
        return dt_fail(err, DT_E_DATA, "its options make no sense");
    for (size_t i = 0; i < n; i++) {
        argv[i + 1] = json_string_value(json_array_get(list, i));
        if (!argv[i + 1])
            return dt_fail(err, DT_E_DATA, "its options make no sense");
    }
    return dt_options_parse(settings_train, &h->s, (int)n + 1, (char **)argv, NULL, err);
}

/* What `train` would have said. */
static enum dt_status
check_settings(const struct record_header *h, struct dt_error *err)
{
    const struct settings *s = &h->s;

    if (!settings_algorithm(s))
        return dt_fail(err, DT_E_DATA, "--algorithm %.64s is unknown", s->algorithm);
    enum dt_status r = model_check_spec(s->model, err);
    if (r == DT_OK)
        r = unused_check(s, settings_train, err);
    if (r == DT_OK)
        r = row_check(s, err);
    if (r == DT_OK && h->rank != s->rank)
        r = dt_fail(err, DT_E_DATA, "its ranks differ");
    if (r == DT_OK && h->threads < 1)
        r = dt_fail(err, DT_E_DATA, "its number of threads makes no sense");
    return r;
}

static enum dt_status
read_object(json_t *o, struct record_header *h, struct dt_error *err)
{
    const char *version = "", *kernel = "", *data = "";
    json_t *list = NULL;
    json_int_t rank = 0;
    int final = 0;

    if (json_unpack(o, "{s:s, s:I, s:o, s:i, s:s, s:s, s:b}", "version", &version, "rank", &rank,
                    "options", &list, "threads", &h->threads, "kernel", &kernel, "data", &data,
                    "final_values", &final) != 0)
        return dt_fail(err, DT_E_DATA, "its header makes no sense");
    if (strcmp(version, PSD_VERSION) != 0)
        return dt_fail(err, DT_E_DATA,
                       "recorded by dtworker %.32s, this is %s: they may compute "
                       "other bits",
                       version, PSD_VERSION);
    h->rank = (uint64_t)rank;
    h->data = strtoull(data, NULL, 16);
    h->final_values = final != 0;
    snprintf(h->kernel, sizeof(h->kernel), "%s", kernel);
    enum dt_status r = read_options(list, h, err);
    return r == DT_OK ? check_settings(h, err) : r;
}

enum dt_status
record_header_read(const char *text, const char *path, struct record_header *h,
                   struct dt_error *err)
{
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    enum dt_status r = dt_options_init(settings_train, &h->s, err);

    if (r == DT_OK)
        r = o ? read_object(o, h, err) : dt_fail(err, DT_E_DATA, "its header is no JSON");
    json_decref(o);
    if (r == DT_E_USAGE)
        r = err->code = DT_E_DATA;
    return r == DT_OK ? r : dt_fail_prefix(err, "%s", path);
}

void
record_header_deinit(struct record_header *h)
{
    dt_options_deinit(settings_train, &h->s);
}
