/*
 * view.c - jobs as one shard holds them: replica, lives, sessions. Runs on the shard's thread.
 */
#include <stdlib.h>
#include <string.h>

#include "psd/serve/parked.h"
#include "psd/serve/session.h"
#include "psd/serve/shard.h"

struct view *
view_create(struct shard *shard, const struct mail *open)
{
    struct view *v = calloc(1, sizeof(*v));

    if (!v)
        return NULL;
    v->id = open->job_id;
    v->grant_rank = DT_NO_RANK;
    v->job = job_create(open->job_id, open->text, &open->params, open->shared, shard->pool);
    if (!v->job) {
        free(v);
        return NULL;
    }
    HASH_ADD(hh, shard->views, id, sizeof(v->id), v);
    return v;
}

void
view_destroy(struct shard *shard, struct view *v)
{
    while (v->sessions)
        session_end(shard, v->sessions);
    HASH_DEL(shard->views, v);
    job_destroy(v->job);
    free(v->ranks);
    free(v);
}

struct view *
view_find(const struct shard *shard, uint64_t id)
{
    struct view *v;

    HASH_FIND(hh, shard->views, &id, sizeof(id), v);
    return v;
}

struct view *
view_find_name(const struct shard *shard, const char *name)
{
    struct view *v, *found = NULL;

    for (v = shard->views; v; v = v->hh.next) {
        if (!strcmp(v->job->name, name) && (!found || v->id > found->id))
            found = v;
    }
    return found;
}

struct attached *
view_require_rank(struct view *v, uint32_t rank)
{
    struct attached *ranks;

    if (rank < v->n_ranks)
        return &v->ranks[rank];
    ranks = realloc(v->ranks, (rank + 1) * sizeof(*ranks));
    if (!ranks)
        return NULL;
    memset(ranks + v->n_ranks, 0, (rank + 1 - v->n_ranks) * sizeof(*ranks));
    v->ranks = ranks;
    v->n_ranks = rank + 1;
    return &ranks[rank];
}

uint64_t
view_step(const struct view *v)
{
    return atomic_load_explicit(&v->job->shared->step, memory_order_relaxed);
}

static void
settle_slice(struct shard *shard, struct view *v, struct slice *s, struct outbox *out)
{
    while (slice_close_round(s, v->job))
        ;
    if (s->waiters)
        parked_wake(shard, s, v->job, out);
}

void
view_settle(struct shard *shard, struct view *v, struct outbox *out)
{
    uint32_t i, k;

    if (v->job->state != JOB_OPEN)
        return;
    for (i = 0; i < v->job->n_variables; i++) {
        struct variable *var = &v->job->variables[i];

        for (k = 0; k < var->n_slices; k++) {
            if (var->slices[k])
                settle_slice(shard, v, var->slices[k], out);
        }
    }
}
