/*
 * replay_turn.c - who goes on: a rank's exchange, slice by slice, in an order that the versions allow.
 *
 * A push that made version v of a slice waits until the slice is at v - 1 and nobody will pull v - 1 any more; a pull of
 * version v waits until the slice is at v. That is the order in which psd did it, so the first of them in time can
 * always go on: nothing but the present values is kept, and where nobody can go on the records do not fit together.
 *
 * Invariants: one thread has the turn; n_waiting counts the ranks that have looked in vain since anything moved. Threads:
 * one a rank.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "worker/train/fingerprint.h"
#include "worker/train/replay_private.h"

void
replay_fail(struct replay *r, const char *fmt, ...)
{
    va_list ap;

    if (r->failed)
        return;
    va_start(ap, fmt);
    vsnprintf(r->text, sizeof(r->text), fmt, ap);
    va_end(ap);
    r->failed = true;
    pthread_cond_broadcast(&r->moved);
}

static void
something_moved(struct replay *r)
{
    r->generation++;
    r->n_waiting = 0;
    pthread_cond_broadcast(&r->moved);
}

void
replay_enter(struct replay *r, unsigned index)
{
    pthread_mutex_lock(&r->turn);
    model_set_threads(r->ranks[index]->threads);
}

/* A loop that ended before its record, or with other values. */
static void
check_end(struct replay_rank *k, const float *const *values)
{
    struct replay *r = k->replay;
    uint64_t final = fingerprint_values(values, r->store.elements, r->store.n_variables);

    if (k->record.kind != RECORD_END)
        replay_fail(r, "rank %u ends before exchange %llu of its record", k->rank,
                    (unsigned long long)k->record.number - 1);
    else if (k->end.final != 0 && final != k->end.final)
        replay_fail(r, "rank %u ends with other values than those of its record", k->rank);
}

void
replay_leave(struct replay *r, unsigned index, const float *const *values)
{
    if (!r->failed)
        check_end(r->ranks[index], values);
    r->n_running--;
    something_moved(r);
    pthread_mutex_unlock(&r->turn);
}

/* May the push that makes the next version of slice i come now? */
static bool
is_pulled_by_all(const struct replay *r, uint64_t i, uint64_t version)
{
    for (unsigned k = 0; k < r->n_ranks; k++) {
        if (replay_rank_needs(r->ranks[k], i) <= version)
            return false;
    }
    return true;
}

static bool
push_slice(struct replay_rank *k, const struct replay_exchange *x, uint64_t i)
{
    struct replay *r = k->replay;
    const struct record_slice *at = &r->store.slices[i];
    struct slice *s = replay_store_slice(&r->store, i);
    struct push push = {
        .rank = k->rank,
        .life = 1,
        .counter = k->counter,
        .version = k->at[i],
        .weight = x->weight,
        .count = x->count,
        .gradient = x->gradients[at->variable] + at->start,
    };
    uint64_t version = 0;
    bool failed = false;

    enum dt_fate fate = slice_push(s, r->store.job, &push, 0, &version, &failed);
    if (failed || fate != DT_FATE_APPLIED || version != k->record.made[i])
        replay_fail(r, "rank %u, exchange %llu: %s: %s", k->rank,
                    (unsigned long long)k->record.number - 1, replay_store_name(&r->store, i),
                    failed ? "memory is short" : "the push is not applied as it was recorded");
    r->counts.updates++;
    return !r->failed;
}

static bool
pull_slice(struct replay_rank *k, const struct replay_exchange *x, uint64_t i)
{
    const struct record_slice *at = &k->replay->store.slices[i];
    const struct slice *s = replay_store_slice(&k->replay->store, i);

    memcpy(x->values[at->variable] + at->start, s->values->data, at->n * sizeof(float));
    k->at[i] = slice_version(s);
    k->replay->counts.pulls++;
    return replay_rank_took(k, i);
}

/* One slice as far as it goes; *left: it is not done. False: replay_fail. */
static bool
advance_slice(struct replay_rank *k, const struct replay_exchange *x, uint64_t i, bool *moved,
              bool *left)
{
    struct replay *r = k->replay;
    uint64_t version = slice_version(replay_store_slice(&r->store, i));

    if (k->pushing[i]) {
        uint64_t made = k->record.made[i];
        if (version + 1 == made && is_pulled_by_all(r, i, version)) {
            k->pushing[i] = false;
            *moved = true;
            if (!push_slice(k, x, i))
                return false;
            version = made;
        } else if (version >= made) {
            replay_fail(r,
                        "rank %u, exchange %llu: version %llu of %s was made twice: are these "
                        "records of one run?",
                        k->rank, (unsigned long long)k->record.number - 1, (unsigned long long)made,
                        replay_store_name(&r->store, i));
            return false;
        }
    }
    if (k->pulling[i] && !k->pushing[i] && version == k->record.held[i]) {
        k->pulling[i] = false;
        *moved = true;
        if (!pull_slice(k, x, i))
            return false;
    }
    *left = *left || k->pushing[i] || k->pulling[i];
    return true;
}

static void
tell_stuck(struct replay_rank *k)
{
    struct replay *r = k->replay;

    for (uint64_t i = 0; i < r->store.n_slices; i++) {
        uint64_t version = slice_version(replay_store_slice(&r->store, i));
        uint64_t wanted = k->pushing[i] ? k->record.made[i] - 1 : k->record.held[i];

        if ((k->pushing[i] || k->pulling[i]) && version != wanted) {
            replay_fail(r,
                        "rank %u, exchange %llu waits for version %llu of %s, which is at %llu "
                        "and goes no further: is the record of a rank missing, or of another run?",
                        k->rank, (unsigned long long)k->record.number - 1,
                        (unsigned long long)wanted, replay_store_name(&r->store, i),
                        (unsigned long long)version);
            return;
        }
    }
    replay_fail(r, "rank %u, exchange %llu: the records do not fit together", k->rank,
                (unsigned long long)k->record.number - 1);
}

/* Nothing to do here before another rank has moved. */
static void
wait_turn(struct replay_rank *k)
{
    struct replay *r = k->replay;
    uint64_t seen = r->generation;

    if (++r->n_waiting == r->n_running) {
        tell_stuck(k);
        return;
    }
    while (r->generation == seen && !r->failed)
        pthread_cond_wait(&r->moved, &r->turn);
    model_set_threads(k->threads);
}

static bool
is_gradient_recorded(struct replay_rank *k, const struct replay_exchange *x)
{
    struct replay *r = k->replay;

    if (!record_has_push(&k->record) ||
        fingerprint_values(x->gradients, r->store.elements, r->store.n_variables) ==
            k->record.pushed)
        return true;
    replay_fail(r,
                "rank %u, exchange %llu: what it pushes has other bits than what was recorded, "
                "although the values that it comes from are the same",
                k->rank, (unsigned long long)k->record.number - 1);
    return false;
}

static bool
are_values_recorded(struct replay_rank *k, const struct replay_exchange *x)
{
    struct replay *r = k->replay;

    if (!record_has_pull(&k->record) ||
        fingerprint_values((const float *const *)x->values, r->store.elements,
                           r->store.n_variables) == k->record.pulled)
        return true;
    replay_fail(r,
                "rank %u, exchange %llu: the values pulled have other bits than what was "
                "recorded, although their versions are the same: was a rate changed by psctl "
                "meanwhile?",
                k->rank, (unsigned long long)k->record.number - 1);
    return false;
}

bool
replay_exchange(struct replay_rank *k, const struct replay_exchange *x)
{
    struct replay *r = k->replay;
    uint64_t n = r->store.n_slices;
    bool left = true;

    if (r->failed || !is_gradient_recorded(k, x))
        return false;
    k->counter++;
    for (uint64_t i = 0; i < n; i++) {
        k->pushing[i] = record_has_push(&k->record) && k->record.made[i] != DTW_NO_VERSION;
        k->pulling[i] = record_has_pull(&k->record);
    }
    while (left && !r->failed) {
        bool moved = false;
        left = false;
        for (uint64_t i = 0; i < n; i++) {
            if (!advance_slice(k, x, i, &moved, &left))
                return false;
        }
        if (moved)
            something_moved(r);
        else if (left)
            wait_turn(k);
    }
    if (r->failed || !are_values_recorded(k, x))
        return false;
    k->n_pushes -= record_has_push(&k->record);
    r->counts.exchanges++;
    return replay_rank_next(k);
}
