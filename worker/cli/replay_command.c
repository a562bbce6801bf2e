/*
 * replay_command.c - dtworker replay: every rank of a recorded job as a loop in a thread of its own (replay.h).
 *
 * Invariant: what is not as it was recorded is said, and nothing is saved then. Threads: main, and one a rank; these
 * take turns.
 */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/parse.h"
#include "worker/cli/command.h"
#include "worker/cli/record_header.h"
#include "worker/cli/row.h"
#include "worker/cli/same_file.h"
#include "worker/cli/stop.h"
#include "worker/train/json_out.h"
#include "worker/train/replay.h"
#include "worker/train/safetensors.h"

struct player {            /* a rank */
    struct replay *replay; /* borrowed */
    unsigned index;
    struct record_header header;
    struct training t; /* its data are those of the first player */
    pthread_t thread;
};

struct playing {
    const struct settings *s;
    const char *dir;
    struct replay *replay;   /* owned */
    unsigned n;              /* ranks */
    uint32_t *ranks;         /* owned; in order */
    struct player **players; /* owned */
    double seconds;
};

static void
player_destroy(struct player *p)
{
    if (!p)
        return;
    loop_destroy(p->t.loop);
    model_destroy(p->t.model);
    if (p->index == 0)
        data_deinit(&p->t.data);
    record_header_deinit(&p->header);
    free(p);
}

static void
playing_deinit(struct playing *g)
{
    for (unsigned i = g->n; g->players && i-- > 0;)
        player_destroy(g->players[i]);
    free(g->players);
    free(g->ranks);
    replay_destroy(g->replay);
}

/* "rank-R.rec" */
static bool
is_record(const char *name, uint32_t *rank)
{
    char number[24];
    size_t n = strlen(name);
    uint64_t r;

    if (n < 10 || n > 20 || strncmp(name, "rank-", 5) != 0 || strcmp(name + n - 4, ".rec") != 0)
        return false;
    snprintf(number, sizeof(number), "%.*s", (int)(n - 9), name + 5);
    if (!dt_parse_u64(number, &r) || r >= SETTINGS_MAX_WORKERS)
        return false;
    *rank = (uint32_t)r;
    return true;
}

static int
by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static enum dt_status
find_ranks(struct playing *g, struct dt_error *err)
{
    DIR *d = opendir(g->dir);
    const struct dirent *e;
    uint32_t rank;

    g->ranks = calloc(SETTINGS_MAX_WORKERS, sizeof(*g->ranks));
    if (d && !g->ranks) {
        closedir(d);
        return dt_fail(err, DT_E_NO_MEMORY, "memory is short");
    }
    if (!d)
        return dt_fail(err, DT_E_NO_INPUT, "%s: %s", g->dir, strerror(errno));
    while ((e = readdir(d)) != NULL && g->n < SETTINGS_MAX_WORKERS) {
        if (is_record(e->d_name, &rank))
            g->ranks[g->n++] = rank;
    }
    closedir(d);
    qsort(g->ranks, g->n, sizeof(*g->ranks), by_number);
    if (g->n == 0)
        return dt_fail(err, DT_E_NO_INPUT, "%s holds no rank-R.rec: is it what --record named?",
                       g->dir);
    return DT_OK;
}

static enum dt_status
read_rank(struct playing *g, unsigned i, struct dt_error *err)
{
    struct player *p = calloc(1, sizeof(*p));
    char path[PATH_MAX];
    char *header = NULL;

    g->players[i] = p;
    if (!p)
        return dt_fail(err, DT_E_NO_MEMORY, "memory is short");
    p->index = i;
    p->replay = g->replay;
    if (!record_file_name(g->dir, g->ranks[i], path, sizeof(path)))
        return dt_fail(err, DT_E_USAGE, "the name of the directory is too long");
    enum dt_status r = replay_add(g->replay, path, g->ranks[i], &header, err);
    if (r == DT_OK)
        r = record_header_read(header, path, &p->header, err);
    free(header);
    if (r == DT_OK && p->header.rank != g->ranks[i])
        r = dt_fail(err, DT_E_DATA, "%s is the record of rank %llu", path,
                    (unsigned long long)p->header.rank);
    return r;
}

/* Ranks 0 to M-1 are there; the others may be as well. */
static enum dt_status
check_ranks(const struct playing *g, struct dt_error *err)
{
    uint64_t workers = g->players[0]->header.s.workers;

    for (uint32_t i = 0; i < workers; i++) {
        if (i >= g->n || g->ranks[i] != i)
            return dt_fail(err, DT_E_NO_INPUT, "%s has no record of rank %u of %llu", g->dir, i,
                           (unsigned long long)workers);
    }
    return DT_OK;
}

static enum dt_status
check_header(const struct playing *g, unsigned i, struct dt_error *err)
{
    const struct record_header *h = &g->players[i]->header, *first = &g->players[0]->header;
    struct algorithm row = settings_row(&h->s);

    if (record_check_options(&h->s, err) != DT_OK)
        return err->code = DT_E_DATA;
    if (row.locking == LOCKING_NONE || h->s.workers != first->s.workers)
        return dt_fail(err, DT_E_DATA, "%s: the options of rank %u are not those of rank 0", g->dir,
                       g->ranks[i]);
    if (strcmp(h->kernel, model_cpu_kernel()) != 0)
        return dt_fail(err, DT_E_DATA,
                       "rank %u computed with the BLAS kernels %s, this machine has %s: they give "
                       "other bits (OPENBLAS_CORETYPE=%s selects them)",
                       g->ranks[i], h->kernel, model_cpu_kernel(), h->kernel);
    return DT_OK;
}

static enum dt_status
read_records(struct playing *g, struct dt_error *err)
{
    enum dt_status r = find_ranks(g, err);

    if (r != DT_OK)
        return r;
    g->replay = replay_create();
    g->players = calloc(g->n, sizeof(struct player *));
    if (!g->replay || !g->players)
        return dt_fail(err, DT_E_NO_MEMORY, "memory is short");
    for (unsigned i = 0; r == DT_OK && i < g->n; i++)
        r = read_rank(g, i, err);
    if (r == DT_OK)
        r = check_ranks(g, err);
    for (unsigned i = 0; r == DT_OK && i < g->n; i++)
        r = check_header(g, i, err);
    return r;
}

static enum dt_status
load_data(struct playing *g, struct dt_error *err)
{
    struct player *first = g->players[0];
    const struct settings *s = &first->header.s;
    const char *path = g->s->data ? g->s->data : s->data;
    enum dt_status r = DT_OK;

    model_set_threads(1);
    if (s->data)
        r = data_load(&first->t.data, path, s->model, s, err);
    if (r != DT_OK)
        return dt_fail_prefix(err, "the data of the record");
    uint64_t found = record_data_fingerprint(&first->t.data);
    for (unsigned i = 0; i < g->n; i++) {
        if (g->players[i]->header.data != found)
            return dt_fail(err, DT_E_DATA,
                           "%s is not what rank %u was trained on: it has changed since, or the "
                           "data are elsewhere (--data PATH)",
                           path ? path : "no data", g->ranks[i]);
    }
    return DT_OK;
}

static enum dt_status
open_player(struct playing *g, unsigned i, struct dt_error *err)
{
    struct player *p = g->players[i];

    p->t.s = &p->header.s;
    p->t.data = g->players[0]->t.data;
    p->t.row = settings_row(p->t.s);
    enum dt_status r = training_open_model(&p->t, err);
    if (r != DT_OK)
        return r;
    struct loop_plan plan;
    r = training_plan(&p->t, &plan, err);
    if (r != DT_OK)
        return r;
    plan.link = replay_link(g->replay, i);
    plan.overlap = false;
    plan.step_delay_ms = 0;
    plan.final_values = p->header.final_values;
    replay_set_threads(g->replay, i, p->header.threads);
    return loop_create(&plan, &p->t.loop, err);
}

static void *
play(void *arg)
{
    struct player *p = arg;

    replay_enter(p->replay, p->index);
    loop_run(p->t.loop, &p->t.result);
    replay_leave(p->replay, p->index, loop_values(p->t.loop));
    return NULL;
}

static enum dt_status
play_all(struct playing *g, struct dt_error *err)
{
    double start = dt_now_seconds();
    unsigned started = 0;

    while (started < g->n &&
           pthread_create(&g->players[started]->thread, NULL, play, g->players[started]) == 0)
        started++;
    for (unsigned i = started; i < g->n; i++) { /* the others then see that it is missing */
        replay_enter(g->replay, i);
        replay_leave(g->replay, i, NULL);
    }
    for (unsigned i = 0; i < started; i++)
        pthread_join(g->players[i]->thread, NULL);
    g->seconds = dt_now_seconds() - start;
    if (started < g->n)
        return dt_fail(err, DT_E_INTERNAL, "a thread for each of %u ranks cannot be had", g->n);
    return replay_result(g->replay, err);
}

static enum dt_status
save(struct playing *g, struct dt_error *err)
{
    struct player *p = NULL;

    if (!g->s->save)
        return DT_OK;
    for (unsigned i = 0; i < g->n; i++) {
        if (g->ranks[i] == g->s->rank)
            p = g->players[i];
    }
    if (!p) /* check_save has seen it */
        return DT_OK;
    free(p->header.s.save);
    p->header.s.save = strdup(g->s->save);
    if (!p->header.s.save)
        return dt_fail(err, DT_E_NO_MEMORY, "memory is short");
    return training_save(&p->t, err);
}

static enum dt_status
report(const struct playing *g, struct dt_error *err)
{
    const struct record_header *h = &g->players[0]->header;
    struct replay_counts c;

    replay_count(g->replay, &c);
    if (!g->s->json) {
        printf("%s, %s: %u ranks, %llu exchanges, %llu updates of slices: every version and every "
               "bit is as recorded, in %.1f s\n",
               h->s.algorithm, h->s.model, g->n, (unsigned long long)c.exchanges,
               (unsigned long long)c.updates, g->seconds);
        return DT_OK;
    }
    json_t *o =
        json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:f}", "algorithm", h->s.algorithm, "model",
                  h->s.model, "ranks", (int)g->n, "exchanges", (json_int_t)c.exchanges, "pulls",
                  (json_int_t)c.pulls, "updates", (json_int_t)c.updates, "seconds", g->seconds);
    return json_put_line(o, stdout) ? DT_OK
                                    : dt_fail(err, DT_E_IO, "the result could not be written");
}

static enum dt_status
check_save(const struct playing *g, struct dt_error *err)
{
    unsigned i = 0;

    if (!g->s->save)
        return DT_OK;
    while (i < g->n && g->ranks[i] != g->s->rank)
        i++;
    if (i < g->n && !replay_has_final(g->replay, i))
        return dt_fail(err, DT_E_DATA,
                       "--save: rank %u was stopped within a window, so its final values cannot be "
                       "repeated; leave --save out, or save another --rank's",
                       g->ranks[i]);
    if (i == g->n)
        return dt_fail(err, DT_E_USAGE, "--rank %llu: there is no record of it in %s",
                       (unsigned long long)g->s->rank, g->dir);
    return model_file_probe(g->s->save, err);
}

int
replay_command(struct settings *s, char **positional)
{
    struct playing g = {.s = s, .dir = positional[0]};
    struct dt_error err = {DT_OK, ""};

    enum dt_status r = stop_open(&err);
    if (r == DT_OK)
        r = read_records(&g, &err);
    if (r == DT_OK)
        r = check_save(&g, &err);
    if (r == DT_OK)
        r = load_data(&g, &err);
    for (unsigned i = 0; r == DT_OK && i < g.n; i++)
        r = open_player(&g, i, &err);
    if (r == DT_OK)
        r = play_all(&g, &err);
    bool stopped = stop_signal() != 0;
    if (r == DT_OK && !stopped)
        r = save(&g, &err);
    if (r == DT_OK && !stopped)
        r = report(&g, &err);
    playing_deinit(&g);
    if (stopped)
        return stop_raise();
    return r == DT_OK ? 0 : command_fail(r, &err);
}
