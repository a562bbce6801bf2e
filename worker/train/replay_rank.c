/*
 * replay_rank.c - a rank of a replay: its record, read twice: where it is, and two pulls ahead.
 *
 * Invariant: of a record that is older than the current exchange nothing is kept, of what comes two pulls. Threads:
 * whoever has the turn.
 */
#include <stdlib.h>
#include <string.h>

#include "worker/train/replay_private.h"

/* Is all there, and is everything known? *pushes are counted; *end: the last frame. */
static enum dt_status
scan(const char *path, uint32_t rank, char **header, uint64_t *pushes, struct record *end,
     struct dt_error *err)
{
    struct record_reader *r = NULL;
    struct record rec = {.kind = RECORD_HEADER};

    enum dt_status s = record_open(path, &r, err);
    while (s == DT_OK && rec.kind != RECORD_END) {
        s = record_next(r, &rec, err);
        if (s == DT_OK && rec.kind == RECORD_HEADER && !*header)
            *header = strndup(rec.text, rec.text_bytes);
        *pushes += s == DT_OK && record_has_push(&rec);
    }
    if (s == DT_OK && rec.end == RECORD_LOST)
        s = dt_fail(err, DT_E_DATA,
                    "%s: rank %u lost its life while it was recorded: what psd made of its last "
                    "push is unknown, so this job cannot be replayed",
                    path, rank);
    if (s == DT_OK && rec.end == RECORD_GIVEN_UP)
        s = dt_fail(err, DT_E_DATA,
                    "%s: rank %u was stopped within an exchange: what psd made of it is unknown, "
                    "so this job cannot be replayed",
                    path, rank);
    if (s == DT_OK && !*header)
        s = dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", path);
    *end = rec;
    record_free(r);
    return s;
}

/* Past HEADER and SLICES, or to the END of one that never began. */
static enum dt_status
open_at_slices(const char *path, struct record_reader **out, struct dt_error *err)
{
    struct record rec;

    enum dt_status s = record_open(path, out, err);
    for (int i = 0; s == DT_OK && i < 2; i++)
        s = record_next(*out, &rec, err);
    if (s == DT_OK && record_n_slices(*out) == 0)
        s = dt_fail(err, DT_E_DATA, "%s: the worker ended before it had values", path);
    return s;
}

static bool
allocate(struct replay_rank *k)
{
    uint64_t n = record_n_slices(k->now);

    k->at = calloc(n, sizeof(*k->at));
    k->pushing = calloc(n, sizeof(*k->pushing));
    k->pulling = calloc(n, sizeof(*k->pulling));
    k->pulled = calloc(n, sizeof(*k->pulled));
    k->need = calloc(n, sizeof(*k->need));
    k->need_next = calloc(n, sizeof(*k->need_next));
    return k->at && k->pushing && k->pulling && k->pulled && k->need && k->need_next;
}

/* The next pull of the record into `need`; behind the last one: REPLAY_NEVER. */
static enum dt_status
look_ahead(struct replay_rank *k, uint64_t *need, struct dt_error *err)
{
    struct record rec = {.kind = RECORD_PUSH};
    uint64_t n = record_n_slices(k->ahead);
    enum dt_status s = DT_OK;

    if (k->need_next[0] == REPLAY_NEVER) /* the end was there */
        rec.kind = RECORD_END;
    while (s == DT_OK && !record_has_pull(&rec) && rec.kind != RECORD_END)
        s = record_next(k->ahead, &rec, err);
    for (uint64_t i = 0; s == DT_OK && i < n; i++)
        need[i] = record_has_pull(&rec) ? rec.held[i] : REPLAY_NEVER;
    return s;
}

enum dt_status
replay_rank_create(struct replay *replay, const char *path, uint32_t rank, char **header,
                   struct replay_rank **out, struct dt_error *err)
{
    struct replay_rank *k = calloc(1, sizeof(*k));

    *out = k;
    *header = NULL;
    if (!k)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", path);
    k->replay = replay;
    k->rank = rank;
    enum dt_status s = scan(path, rank, header, &k->n_pushes, &k->end, err);
    if (s == DT_OK)
        s = open_at_slices(path, &k->now, err);
    if (s == DT_OK)
        s = open_at_slices(path, &k->ahead, err);
    if (s == DT_OK && !allocate(k))
        s = dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", path);
    if (s == DT_OK)
        s = record_next(k->now, &k->record, err);
    if (s == DT_OK)
        s = look_ahead(k, k->need, err);
    if (s == DT_OK) {
        if (k->need[0] == REPLAY_NEVER)
            k->need_next[0] = REPLAY_NEVER;
        s = look_ahead(k, k->need_next, err);
    }
    return s;
}

void
replay_rank_destroy(struct replay_rank *k)
{
    if (!k)
        return;
    record_free(k->now);
    record_free(k->ahead);
    free(k->at);
    free(k->pushing);
    free(k->pulling);
    free(k->pulled);
    free(k->need);
    free(k->need_next);
    free(k);
}

bool
replay_rank_next(struct replay_rank *k)
{
    struct dt_error err;

    if (record_next(k->now, &k->record, &err) == DT_OK)
        return true;
    replay_fail(k->replay, "%s", err.text);
    return false;
}

uint64_t
replay_rank_needs(const struct replay_rank *k, uint64_t i)
{
    return k->pulled[i] ? k->need_next[i] : k->need[i];
}

bool
replay_rank_took(struct replay_rank *k, uint64_t i)
{
    uint64_t n = record_n_slices(k->now);
    struct dt_error err;
    uint64_t *done;

    k->pulled[i] = true;
    if (++k->n_pulled < n)
        return true;
    k->n_pulled = 0;
    memset(k->pulled, 0, n * sizeof(*k->pulled));
    done = k->need;
    k->need = k->need_next;
    k->need_next = done;
    if (k->need[0] == REPLAY_NEVER)
        k->need_next[0] = REPLAY_NEVER;
    if (look_ahead(k, k->need_next, &err) == DT_OK)
        return true;
    replay_fail(k->replay, "%s", err.text);
    return false;
}
