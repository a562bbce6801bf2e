/*
 * cluster_report.c - one report over all workers of a private cluster, and what each of them did.
 * Threads: main alone.
 */
#include <math.h>

#include "worker/cli/cluster.h"
#include "worker/train/order.h"
#include "worker/train/phases_json.h"
#include "worker/train/staleness_json.h"

/* Rows of a rank in the steps [from, to). */
static uint64_t
rows_between(const struct cluster *c, uint64_t rows, unsigned rank, uint64_t from, uint64_t to)
{
    uint32_t replicas = (uint32_t)c->s->replicas;
    struct order o = {c->s->seed, rows, settings_parts(c->s), (uint32_t)c->s->batch};
    struct order_share share = order_share((uint32_t)c->s->aggregate, c->n_workers, rank);
    uint64_t sum = 0;

    for (uint64_t step = from; step < to; step++) {
        for (uint32_t k = 0; k < share.n * replicas; k++)
            sum += order_count(&o, step, share.first * replicas + k);
    }
    return sum;
}

/* A worker's final report; of one that has sent none what was heard last. */
static const struct staleness *
staleness_of(const struct cluster_worker *w)
{
    if (w->has_report)
        return w->report.has_staleness ? &w->report.staleness : NULL;
    return w->has_staleness ? &w->staleness : NULL;
}

/* Loss and accuracy are those of the worker that left last, by what psd had counted then: in asynchronous jobs
 * the values of the others lack its updates. On ties the first rank's. */
static void
take_score(struct report *all, const struct report *r)
{
    if (!isfinite(r->train_loss) || (isfinite(all->train_loss) && r->rounds <= all->rounds))
        return;
    all->train_loss = r->train_loss;
    all->test_loss = r->test_loss;
    all->test_accuracy = r->test_accuracy;
}

static void
add_worker(struct report *all, const struct cluster_worker *w)
{
    const struct report *r = &w->report;

    if (staleness_of(w)) {
        staleness_merge(&all->staleness, staleness_of(w));
        all->has_staleness = true;
    }
    if (!w->has_report) {
        all->samples += w->samples;
        return;
    }
    take_score(all, r);
    all->samples += r->samples;
    all->stale_dropped += r->stale_dropped;
    all->partial += r->partial;
    all->unseen_rows += r->unseen_rows;
    all->lives_lost += r->lives_lost;
    all->seconds = fmax(all->seconds, r->seconds);
    for (unsigned i = 0; i < N_PHASES; i++)
        all->phases[i] += r->phases[i];
    all->steps = r->steps > all->steps ? r->steps : all->steps;
    all->rows = r->rows > all->rows ? r->rows : all->rows;
    all->counted = all->counted || r->counted;
    all->rounds = r->rounds > all->rounds ? r->rounds : all->rounds;
    all->ps_stale = r->ps_stale > all->ps_stale ? r->ps_stale : all->ps_stale;
    all->ps_partial = r->ps_partial > all->ps_partial ? r->ps_partial : all->ps_partial;
    all->pushed_bytes = r->pushed_bytes > all->pushed_bytes ? r->pushed_bytes : all->pushed_bytes;
    all->pulled_bytes = r->pulled_bytes > all->pulled_bytes ? r->pulled_bytes : all->pulled_bytes;
}

bool
cluster_report(const struct cluster *c, struct report *out)
{
    bool any = false;

    *out = (struct report){.algorithm = c->s->algorithm,
                           .model = c->s->model,
                           .workers = c->n_workers,
                           .ps_tasks = c->n_ps,
                           .rank = -1,
                           .batch = c->s->batch,
                           .replicas = c->s->replicas,
                           .train_loss = NAN,
                           .test_loss = NAN,
                           .test_accuracy = NAN};
    for (unsigned i = 0; i < c->n_workers; i++) {
        add_worker(out, &c->workers[i]);
        any = any || c->workers[i].has_report;
    }
    for (unsigned i = 0; i < c->n_workers; i++) { /* what those did not see who ended early */
        const struct cluster_worker *w = &c->workers[i];
        uint64_t from = w->has_report ? w->report.steps : 0;
        uint64_t due = rows_between(c, out->rows, i, from, out->steps);
        uint64_t seen = w->has_report ? 0 : w->samples;
        out->unseen_rows += due > seen ? due - seen : 0;
    }
    return any;
}

/* What only a final report tells; null without one. */
static json_t *
reported(const struct cluster_worker *w, uint64_t n)
{
    return w->has_report ? json_integer((json_int_t)n) : json_null();
}

static json_t *
detail_of(const struct cluster_worker *w, unsigned rank)
{
    const struct report *r = &w->report;
    uint64_t steps = w->has_report ? r->steps : w->step;
    uint64_t samples = w->has_report ? r->samples : w->samples;
    bool timed = w->has_report && r->seconds > 0;

    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rank", (json_int_t)rank,
                     "steps", (json_int_t)steps, "samples", (json_int_t)samples, "seconds",
                     timed ? json_real(r->seconds) : json_null(), "samples_per_second",
                     timed ? json_real((double)samples / r->seconds) : json_null(), "time",
                     timed ? phases_json(r->phases) : json_null(), "stale_dropped",
                     reported(w, r->stale_dropped), "partial", reported(w, r->partial),
                     "lives_lost", reported(w, r->lives_lost), "staleness",
                     staleness_json(staleness_of(w)));
}

json_t *
cluster_detail(const struct cluster *c)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < c->n_workers; i++)
        json_array_append_new(list, detail_of(&c->workers[i], i));
    return list;
}
