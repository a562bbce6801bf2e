/*
 * replay.c - the ranks of a replay, and the link by which their loops exchange. Threads: replay.h.
 */
#include "worker/train/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/train/replay_private.h"

struct replay *
replay_create(void)
{
    struct replay *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    pthread_mutex_init(&r->turn, NULL);
    pthread_cond_init(&r->moved, NULL);
    return r;
}

void
replay_destroy(struct replay *r)
{
    if (!r)
        return;
    replay_store_deinit(&r->store);
    for (unsigned i = 0; i < r->n_ranks; i++)
        replay_rank_destroy(r->ranks[i]);
    free(r->ranks);
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->turn);
    free(r);
}

static bool
same_slices(const struct record_reader *a, const struct record_reader *b)
{
    uint64_t n = record_n_slices(a);

    if (n != record_n_slices(b))
        return false;
    for (uint64_t i = 0; i < n; i++) {
        const struct record_slice *x = &record_slices(a)[i], *y = &record_slices(b)[i];
        if (x->variable != y->variable || x->start != y->start || x->n != y->n)
            return false;
    }
    return true;
}

enum dt_status
replay_add(struct replay *r, const char *path, uint32_t rank, char **header, struct dt_error *err)
{
    struct replay_rank **bigger =
        realloc(r->ranks, (r->n_ranks + 1) * sizeof(struct replay_rank *));
    struct replay_rank *k;

    *header = NULL;
    if (!bigger)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", path);
    r->ranks = bigger;
    enum dt_status s = replay_rank_create(r, path, rank, header, &k, err);
    if (s == DT_OK && r->n_ranks > 0 && !same_slices(r->ranks[0]->now, k->now))
        s = dt_fail(err, DT_E_DATA, "%s has other slices than %s: these are records of two runs",
                    path, record_path(r->ranks[0]->now));
    if (s != DT_OK) {
        replay_rank_destroy(k);
        free(*header);
        *header = NULL;
        return s;
    }
    r->ranks[r->n_ranks++] = k;
    r->n_running = r->n_ranks;
    return DT_OK;
}

unsigned
replay_n_ranks(const struct replay *r)
{
    return r->n_ranks;
}

void
replay_set_threads(struct replay *r, unsigned index, int threads)
{
    r->ranks[index]->threads = threads;
}

enum dt_status
replay_result(const struct replay *r, struct dt_error *err)
{
    return r->failed ? dt_fail(err, DT_E_DATA, "%s", r->text) : DT_OK;
}

void
replay_count(const struct replay *r, struct replay_counts *out)
{
    *out = r->counts;
}

static enum dtw_status
told(struct dtw_error *err, enum dtw_status code, const char *text)
{
    if (err) {
        err->code = code;
        snprintf(err->text, sizeof(err->text), "%s", text);
    }
    return code;
}

/* All ranks declare the same; the first one counts. */
static enum dtw_status
declare(void *self, const struct dtw_variable *v, struct dtw_error *err)
{
    struct replay_rank *k = self;

    if (!k->replay->declares)
        k->replay->declares = k;
    if (k != k->replay->declares)
        return DTW_OK;
    return replay_store_declare(&k->replay->store, v, err);
}

static enum dtw_status
init(void *self, dtw_init_fn *fill, void *arg, uint64_t *first_step, struct dtw_error *err)
{
    struct replay_rank *k = self;
    struct replay *r = k->replay;

    if (first_step)
        *first_step = record_first_step(k->now);
    if (r->is_initialised)
        return DTW_OK;
    enum dtw_status s = replay_store_init(&r->store, record_slices(k->now), record_n_slices(k->now),
                                          fill, arg, err);
    if (s != DTW_OK)
        replay_fail(r, "%s", err->text);
    r->is_initialised = s == DTW_OK;
    return s;
}

static enum dtw_status
join(void *self, uint64_t *first_step, struct dtw_error *err)
{
    (void)self;
    (void)first_step;
    return told(err, DTW_INVALID, "a replay has no lives to lose");
}

static enum dtw_status
exchange(struct replay_rank *k, enum record_kind kind, const struct replay_exchange *x,
         struct dtw_error *err)
{
    struct replay *r = k->replay;

    if (!r->failed && k->record.kind == RECORD_END)
        return told(err, DTW_INTERRUPTED, "the record ends here");
    if (!r->failed && k->record.kind != kind)
        replay_fail(r,
                    "rank %u, exchange %llu is of another kind than the training makes: was it "
                    "recorded by another version of dtworker?",
                    k->rank, (unsigned long long)k->record.number - 1);
    if (r->failed || !replay_exchange(k, x))
        return told(err, DTW_INVALID, r->text);
    return DTW_OK;
}

/* What psd told of the push that `made` versions out of the held ones. */
static void
tell_result(const struct replay_rank *k, const struct replay_exchange *x, struct dtw_result *out)
{
    const struct record *rec = &k->record;

    *out = (struct dtw_result){.n_slices = (unsigned)k->replay->store.n_slices};
    for (uint64_t i = 0; i < k->replay->store.n_slices; i++) {
        bool made = record_has_push(rec) && rec->made[i] != DTW_NO_VERSION;
        out->accumulated += made || (record_has_push(rec) && !x->gradients);
        out->stale += record_has_push(rec) && x->gradients && !made;
        if (made && rec->made[i] - 1 - k->at[i] > out->staleness)
            out->staleness = rec->made[i] - 1 - k->at[i];
        if (record_has_pull(rec) && rec->held[i] > out->step)
            out->step = rec->held[i];
    }
    out->partial = out->accumulated > 0 && out->stale > 0;
}

static enum dtw_status
run(struct replay_rank *k, enum record_kind kind, const struct replay_exchange *x,
    struct dtw_result *out, struct dtw_error *err)
{
    struct dtw_result result = {0};

    if (k->record.kind == kind)
        tell_result(k, x, &result);
    enum dtw_status s = exchange(k, kind, x, err);
    if (s == DTW_OK && out)
        *out = result;
    return s;
}

static enum dtw_status
pull(void *self, float *const *values, uint64_t want, struct dtw_result *r, struct dtw_error *err)
{
    const struct replay_exchange x = {NULL, values, 0, 0};

    (void)want;
    return run(self, RECORD_PULL, &x, r, err);
}

static enum dtw_status
push(void *self, const float *const *gradients, uint64_t weight, unsigned count,
     struct dtw_result *r, struct dtw_error *err)
{
    const struct replay_exchange x = {gradients, NULL, weight, count};

    return run(self, RECORD_PUSH, &x, r, err);
}

static enum dtw_status
step(void *self, const float *const *gradients, float *const *values, uint64_t weight,
     unsigned count, struct dtw_result *r, struct dtw_error *err)
{
    const struct replay_exchange x = {gradients, values, weight, count};

    return run(self, RECORD_STEP, &x, r, err);
}

static enum dtw_status
finish(void *self, struct dtw_handle *h, const float *const *gradients, float *const *values,
       struct dtw_result *r, struct dtw_error *err)
{
    (void)self;
    (void)h;
    (void)gradients;
    (void)values;
    (void)r;
    return told(err, DTW_INVALID, "a replay does not overlap");
}

/* The order of the record has waited. */
static enum dtw_status
wait_step(void *self, uint64_t step_wanted, struct dtw_error *err)
{
    (void)self;
    (void)step_wanted;
    (void)err;
    return DTW_OK;
}

static void
stop_all(void *self)
{
    (void)self;
}

/* After its last push, where that was what ended it. */
static bool
is_stopped(void *self)
{
    const struct replay_rank *k = self;

    return k->end.stopped && k->n_pushes == 0;
}

static uint64_t
worker_step(void *self)
{
    const struct replay_rank *k = self;
    uint64_t step_held = 0;

    for (uint64_t i = 0; i < k->replay->store.n_slices; i++) {
        if (k->at[i] > step_held)
            step_held = k->at[i];
    }
    return step_held;
}

bool
replay_has_final(const struct replay *r, unsigned index)
{
    return r->ranks[index]->end.final != 0;
}

struct link
replay_link(struct replay *r, unsigned index)
{
    static const struct link_ops ops = {declare, init,      join,     pull,       push,       step,
                                        finish,  wait_step, stop_all, is_stopped, worker_step};

    return (struct link){&ops, r->ranks[index]};
}
