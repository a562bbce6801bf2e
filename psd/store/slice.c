/*
 * slice.c - rounds of one slice: fate of a push, quorum, update. Runs on the home shard alone.
 *
 * The rules are DESIGN.md section 4 (sync) and 5 (membership).
 */
#include "psd/store/slice.h"

#include <stdlib.h>
#include <string.h>

#include "psd/store/job.h"
#include "psd/store/variable.h"

struct slice *
slice_create(struct variable *variable, uint32_t index, uint32_t n, struct dt_pool *pool)
{
    struct slice *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->variable = variable;
    s->index = index;
    s->n = n;
    s->values = dt_block_create(pool, n * sizeof(float));
    if (!s->values || !declared_make_slots(&variable->optimizer, n, pool, s->slots)) {
        slice_destroy(s);
        return NULL;
    }
    return s;
}

struct slice *
slice_create_shared(struct variable *variable, uint32_t index, uint32_t n,
                    struct shared_slice *shared)
{
    struct slice *s = calloc(1, sizeof(*s));
    unsigned i;

    if (!s)
        return NULL;
    s->variable = variable;
    s->index = index;
    s->n = n;
    s->shared = shared;
    s->values = dt_block_ref(shared->values);
    for (i = 0; i < optimizer_n_slots(&variable->optimizer); i++)
        s->slots[i] = dt_block_ref(shared->slots[i]);
    return s;
}

void
slice_destroy(struct slice *s)
{
    unsigned i;

    if (!s)
        return;
    accumulator_reset(&s->round);
    dt_block_unref(s->values);
    for (i = 0; i < OPTIMIZER_MAX_SLOTS; i++)
        dt_block_unref(s->slots[i]);
    free(s->rows);
    free(s);
}

/* A block that may be written: the live one when nobody else reads it, else a fresh one. */
static struct dt_block *
writable(struct slice *s, struct dt_pool *pool)
{
    if (dt_block_is_exclusive(s->values))
        return s->values;
    return dt_block_create(pool, s->n * sizeof(float));
}

/* What is taken and given back is there for the next who asks: writable(), soon. */
bool
slice_reserve(struct slice *const *slices, uint32_t n, struct dt_pool *pool)
{
    struct dt_block *blocks[DT_MAX_ITEMS];
    uint32_t i, n_blocks = 0;
    bool enough = true;

    for (i = 0; i < n && enough; i++) {
        if (dt_block_is_exclusive(slices[i]->values))
            continue;
        blocks[n_blocks] = dt_block_create(pool, slices[i]->n * sizeof(float));
        enough = blocks[n_blocks] != NULL;
        n_blocks += enough;
    }
    for (i = 0; i < n_blocks; i++)
        dt_block_unref(blocks[i]);
    return enough;
}

static void
replace_values(struct slice *s, struct dt_block *b)
{
    if (b == s->values)
        return;
    dt_block_unref(s->values);
    s->values = b;
}

/* Nobody pulls or pushes before the initial values count. */
bool
slice_set(struct slice *s, struct dt_pool *pool, const void *values, bool *first)
{
    struct dt_block *b = s->shared ? s->values : writable(s, pool);

    if (!b)
        return false;
    memcpy(b->data, values, s->n * sizeof(float));
    replace_values(s, b);
    *first = !(s->shared ? atomic_exchange(&s->shared->has_values, true) : s->own_has_values);
    s->own_has_values = true;
    return true;
}

bool
slice_forget(struct slice *s)
{
    bool had = s->shared ? atomic_exchange(&s->shared->has_values, false) : s->own_has_values;

    s->own_has_values = false;
    return had;
}

struct push_row *
slice_require_row(struct slice *s, uint32_t rank)
{
    if (rank >= s->n_rows) {
        uint32_t n = rank + 1;
        struct push_row *rows = realloc(s->rows, n * sizeof(*rows));

        if (!rows)
            return NULL;
        memset(rows + s->n_rows, 0, (n - s->n_rows) * sizeof(*rows));
        s->rows = rows;
        s->n_rows = n;
    }
    return &s->rows[rank];
}

static bool
is_in_round(const struct slice *s, uint32_t rank)
{
    return rank < s->n_rows && s->rows[rank].in_step == slice_version(s) + 1;
}

static enum dt_fate
store_fate(struct push_row *row, const struct push *p, enum dt_fate fate, uint64_t version)
{
    row->counter = p->counter;
    row->fate = (uint8_t)fate;
    row->version = version;
    return fate;
}

/* The lowest rank that the open round waits for; UINT32_MAX: all are in. */
static uint32_t
lowest_missing(const struct slice *s, const struct job *job)
{
    uint32_t rank;

    return slice_missing(s, job, &rank, 1) > 0 ? rank : UINT32_MAX;
}

/* In rank order: held while a lower rank is missing. */
static bool
add_in_order(struct slice *s, struct job *job, const struct push *p, int64_t now_ms)
{
    enum dt_reduce reduce = (enum dt_reduce)job->params.reduce;

    if (lowest_missing(s, job) < p->rank)
        return accumulator_hold(&s->round, job->pool, reduce, p->rank, p->gradient, s->n, p->weight,
                                p->count, now_ms);
    accumulator_release(&s->round, s->n, p->rank);
    return accumulator_add(&s->round, job->pool, reduce, p->gradient, s->n, p->weight, p->count,
                           now_ms);
}

static bool
add(struct slice *s, struct job *job, const struct push *p, int64_t now_ms)
{
    if (job->params.deterministic)
        return add_in_order(s, job, p, now_ms);
    return accumulator_add(&s->round, job->pool, (enum dt_reduce)job->params.reduce, p->gradient,
                           s->n, p->weight, p->count, now_ms);
}

static enum dt_fate
take(struct slice *s, struct job *job, struct push_row *row, const struct push *p, int64_t now_ms,
     bool *failed)
{
    if (!add(s, job, p, now_ms)) {
        *failed = true;
        return DT_FATE_NONE;
    }
    row->in_step = p->version + 1;
    nonfinite_push(&s->nonfinite, p->rank, p->largest);
    if (job->params.deterministic)
        accumulator_release(&s->round, s->n, lowest_missing(s, job));
    return store_fate(row, p, DT_FATE_ACCUMULATED, slice_version(s));
}

static void
slot_data(const struct slice *s, float **slots)
{
    unsigned i;

    for (i = 0; i < optimizer_n_slots(&s->variable->optimizer); i++)
        slots[i] = s->slots[i]->data;
}

/* The step by which the operator's changes count: an asynchronous job goes by its global one. */
static uint64_t
setting_step(const struct slice *s, const struct job *job)
{
    if (job->params.consistency == DT_SYNC)
        return slice_version(s);
    return atomic_load_explicit(&job->shared->step, memory_order_relaxed);
}

/* The variable's optimizer, with the rate that the operator has set. `changed` is where it is made. */
static const struct optimizer *
optimizer_now(const struct slice *s, const struct job *job, struct optimizer *changed)
{
    const struct variable *v = s->variable;
    double lr;

    if (v->lr.n == 0 || !setting_at(&v->lr, setting_step(s, job), &lr))
        return &v->optimizer;
    *changed = v->optimizer;
    optimizer_set_rate(changed, (float)lr);
    return changed;
}

/* One update by the variable's optimizer; `b` comes from writable() and becomes the values. `staleness`: updates
 * since the pull behind the gradient. */
static void
update(struct slice *s, struct job *job, struct dt_block *b, const void *gradient,
       uint64_t staleness)
{
    struct optimizer changed;
    const struct optimizer *o = optimizer_now(s, job, &changed);
    float *slots[OPTIMIZER_MAX_SLOTS] = {NULL};

    slot_data(s, slots);
    if (optimizer_is_damped(o))
        optimizer_apply_damped(o, b->data, s->values->data, gradient, s->n, staleness);
    else
        optimizer_apply(o, b->data, s->values->data, slots, gradient, s->n, slice_version(s));
    replace_values(s, b);
    nonfinite_update(s, job, slice_version(s) + 1, setting_step(s, job));
}

/* Locking none: in place, while other shards do the same. Returns the version that it made. */
static uint64_t
update_racy(struct slice *s, struct job *job, const void *gradient)
{
    struct optimizer changed;
    float *slots[OPTIMIZER_MAX_SLOTS] = {NULL};
    uint64_t version;

    slot_data(s, slots);
    optimizer_apply_racy(optimizer_now(s, job, &changed), s->values->data, slots, gradient, s->n,
                         slice_version(s));
    version = atomic_fetch_add_explicit(&s->shared->version, 1, memory_order_relaxed) + 1;
    nonfinite_update(s, job, version, setting_step(s, job));
    return version;
}

/* Synchronous: any past version. Asynchronous: one that is more than max_staleness updates old. */
static bool
is_stale(const struct slice *s, const struct job *job, uint64_t version)
{
    int64_t bound = job->params.max_staleness;
    double set;

    if (version >= slice_version(s))
        return false;
    if (job->params.consistency == DT_SYNC)
        return true;
    if (setting_at(&job->max_staleness, setting_step(s, job), &set))
        bound = (int64_t)set;
    return bound >= 0 && slice_version(s) - version > (uint64_t)bound;
}

/* Asynchronous: an update of its own, at arrival. An abstention changes nothing. */
static enum dt_fate
apply_at_once(struct slice *s, struct job *job, struct push_row *row, const struct push *p,
              uint64_t *version, bool *failed)
{
    struct dt_block *b;

    if (p->gradient)
        nonfinite_push(&s->nonfinite, p->rank, p->largest);
    if (p->gradient && s->shared) {
        *version = update_racy(s, job, p->gradient);
    } else if (p->gradient) {
        b = writable(s, job->pool);
        if (!b) {
            *failed = true;
            return DT_FATE_NONE;
        }
        update(s, job, b, p->gradient, slice_version(s) - p->version);
        *version = ++s->own_version;
    }
    return store_fate(row, p, DT_FATE_APPLIED, *version);
}

bool
slice_has_push(const struct slice *s, const struct push *p)
{
    return p->rank < s->n_rows && s->rows[p->rank].life == p->life &&
           s->rows[p->rank].counter == p->counter;
}

enum dt_fate
slice_push(struct slice *s, struct job *job, const struct push *p, int64_t now_ms,
           uint64_t *version, bool *failed)
{
    struct push_row *row = slice_require_row(s, p->rank);

    *failed = !row;
    *version = slice_version(s);
    if (!row)
        return DT_FATE_NONE;
    if (row->life != p->life) { /* a new life starts with an empty table */
        row->life = p->life;
        row->counter = 0;
    }
    if (slice_has_push(s, p)) {
        *version = row->version;
        return (enum dt_fate)row->fate;
    }
    if (p->counter < row->counter)
        return DT_FATE_DUPLICATE;
    if (is_stale(s, job, p->version))
        return store_fate(row, p, DT_FATE_STALE, slice_version(s));
    if (p->version > slice_version(s))
        return DT_FATE_AHEAD;
    if (job->params.consistency != DT_SYNC)
        return apply_at_once(s, job, row, p, version, failed);
    if (!membership_counts(&job->membership, p->rank, p->version) ||
        membership_has_left(&job->membership, p->rank))
        return DT_FATE_REFUSED;
    if (row->in_step == p->version + 1)
        return store_fate(row, p, DT_FATE_DUPLICATE, slice_version(s));
    return take(s, job, row, p, now_ms, failed);
}

struct tally {
    uint32_t members;
    uint32_t done; /* members whose push is in, or who have left */
};

static struct tally
count_members(const struct slice *s, const struct job *job)
{
    struct tally t = {0, 0};
    uint32_t r;

    for (r = 0; r < job->membership.n; r++) {
        if (!membership_counts(&job->membership, r, slice_version(s)))
            continue;
        t.members++;
        if (is_in_round(s, r) || membership_has_left(&job->membership, r))
            t.done++;
    }
    return t;
}

static bool
is_due(const struct slice *s, const struct job *job, struct tally t)
{
    uint32_t quorum = t.members;

    /* above `workers` each of them is waited for: it brings the batches of several */
    if (job->params.aggregate && job->params.aggregate <= job->params.workers &&
        job->params.aggregate < quorum)
        quorum = job->params.aggregate;
    if (t.done < quorum)
        return false;
    return s->round.weight > 0 || t.done == t.members;
}

static bool
has_divisor(const struct slice *s, const struct job *job)
{
    if (!s->round.sum)
        return false;
    return (job->params.reduce == DT_REDUCE_MEAN ? s->round.weight : s->round.count) > 0;
}

/* False when memory is short: the round stays as it is. */
static bool
apply_round(struct slice *s, struct job *job)
{
    struct dt_block *b = writable(s, job->pool);

    if (!b)
        return false;
    accumulator_reduce(&s->round, (enum dt_reduce)job->params.reduce, s->n);
    update(s, job, b, s->round.sum->data, 0);
    return true;
}

static void
advance(struct slice *s, struct job *job, uint64_t version)
{
    accumulator_reset(&s->round);
    s->own_version = version;
    job_shared_raise_step(job->shared, version);
}

bool
slice_close_round(struct slice *s, struct job *job)
{
    struct tally t;
    uint64_t next;

    if (!job->initialised || job->params.consistency != DT_SYNC || slice_version(s) >= job->hold)
        return false;
    t = count_members(s, job);
    if (t.members == 0) {
        next = membership_next_after(&job->membership, slice_version(s));
        if (next == MEMBERSHIP_OPEN)
            return false;
        job_count(job, JOB_DROPPED, s->round.sum ? s->round.n_pushed : 0);
        advance(s, job, next);
        return true;
    }
    if (!is_due(s, job, t))
        return false;
    accumulator_release(&s->round, s->n, UINT32_MAX);
    if (has_divisor(s, job) && !apply_round(s, job))
        return false;
    advance(s, job, slice_version(s) + 1);
    return true;
}

uint32_t
slice_missing(const struct slice *s, const struct job *job, uint32_t *ranks, uint32_t max)
{
    uint32_t r, n = 0;

    for (r = 0; r < job->membership.n; r++) {
        if (!membership_counts(&job->membership, r, slice_version(s)) || is_in_round(s, r) ||
            membership_has_left(&job->membership, r))
            continue;
        if (n < max)
            ranks[n] = r;
        n++;
    }
    return n;
}
