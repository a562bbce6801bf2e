/*
 * options.c - defaults and checks of struct dtw_options. The thread of dtw_open.
 */
#include "worker/lib/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/tuple.h"

#define SHORTEST_RETRY_MS 200 /* one try has its time */

void
dtw_options_init(struct dtw_options *options)
{
    struct dt_job_params p;

    dt_job_params_default(&p);
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
    options->workers = 1;
    options->consistency = "sync";
    options->locking = "slice";
    options->placement = "greedy";
    options->max_staleness = -1;
    options->reduce = "mean";
    options->on_loss = "shrink";
    options->lease_ms = p.lease_ms;
    options->start_timeout_ms = p.start_timeout_ms;
    options->round_timeout_ms = p.round_timeout_ms;
    options->max_bad = p.max_bad;
    options->retry_for_ms = 60000;
    options->waiting_ms = 10000;
    options->stop_fd = -1;
    options->kernel = "";
}

static int
choose(const char *word, const char *const *words, int n)
{
    int i;

    for (i = 0; i < n; i++) {
        if (word && !strcmp(word, words[i]))
            return i;
    }
    return -1;
}

static enum dtw_status
check_numbers(const struct dtw_options *o, struct dtw_error *err)
{
    if (!o->ps || o->n_ps < 1 || o->n_ps > DT_MAX_TASKS)
        return client_error(err, DTW_INVALID, "ps: 1 to %d endpoints are needed, not %u",
                            DT_MAX_TASKS, o->n_ps);
    if (!o->job || strlen(o->job) > DT_MAX_NAME || !dt_is_name(o->job))
        return client_error(err, DTW_INVALID,
                            "job: a name of 1 to %d characters of A-Z a-z 0-9 _ . / : - is needed",
                            DT_MAX_NAME);
    if (o->workers < 1 || o->workers > DT_MAX_RANKS)
        return client_error(err, DTW_INVALID, "workers: %u is not in 1..%d", o->workers,
                            DT_MAX_RANKS);
    if (o->rank >= DT_MAX_RANKS)
        return client_error(err, DTW_INVALID, "rank: %u is not in 0..%d", o->rank,
                            DT_MAX_RANKS - 1);
    if (o->lease_ms < 100 || o->lease_ms > 3600000)
        return client_error(err, DTW_INVALID, "lease: %lld ms is not in 100..3600000",
                            (long long)o->lease_ms);
    if (o->max_staleness < -1)
        return client_error(err, DTW_INVALID, "max_staleness: -1 (any) or a number of updates");
    if (o->staleness_bound < 0 || o->staleness_bound > DT_MAX_CLOCK)
        return client_error(err, DTW_INVALID, "staleness_bound: 0 or a number of steps");
    if (o->start_timeout_ms < 0 || o->round_timeout_ms < 0 || o->retry_for_ms < 0)
        return client_error(err, DTW_INVALID, "a time-out cannot be negative");
    return DTW_OK;
}

static enum dtw_status
fill_params(const struct dtw_options *o, struct dt_job_params *p, struct dtw_error *err)
{
    static const char *const reduces[] = {"mean", "count", "sum"};
    static const char *const losses[] = {"shrink", "fail"};
    static const char *const consistencies[] = {"sync", "async", "ssp"};
    static const char *const lockings[] = {"slice", "none", "variable"};
    int consistency = choose(o->consistency, consistencies, 3);
    int locking = choose(o->locking, lockings, 3);
    int reduce = choose(o->reduce, reduces, 3);
    int on_loss = choose(o->on_loss, losses, 2);

    if (reduce < 0)
        return client_error(err, DTW_INVALID, "reduce: %s is none of mean, count, sum",
                            o->reduce ? o->reduce : "(null)");
    if (on_loss < 0)
        return client_error(err, DTW_INVALID, "on_loss: %s is none of shrink, fail",
                            o->on_loss ? o->on_loss : "(null)");
    if (consistency < 0)
        return client_error(err, DTW_INVALID, "consistency: %s is none of sync, async, ssp",
                            o->consistency ? o->consistency : "(null)");
    if (locking < 0)
        return client_error(err, DTW_INVALID, "locking: %s is none of slice, none, variable",
                            o->locking ? o->locking : "(null)");
    dt_job_params_default(p);
    p->consistency = (uint32_t)consistency;
    p->locking = (uint32_t)locking;
    p->max_staleness = o->max_staleness;
    p->workers = o->workers;
    p->tasks = o->n_ps;
    p->aggregate = o->aggregate;
    p->reduce = (uint32_t)reduce;
    p->on_loss = (uint32_t)on_loss;
    p->lease_ms = o->lease_ms;
    p->start_timeout_ms = o->start_timeout_ms;
    p->round_timeout_ms = o->round_timeout_ms;
    p->max_bad = o->max_bad;
    p->staleness_bound = o->staleness_bound;
    p->deterministic = o->deterministic;
    if (o->kernel && strlen(o->kernel) >= sizeof(p->kernel))
        return client_error(err, DTW_INVALID, "kernel: a word of at most %zu bytes",
                            sizeof(p->kernel) - 1);
    snprintf(p->kernel, sizeof(p->kernel), "%s", o->kernel ? o->kernel : "");
    return DTW_OK;
}

static enum dtw_status
fill_placement(const struct dtw_options *o, struct placement *p, struct dtw_error *err)
{
    static const char *const policies[] = {"greedy", "round-robin"};
    int policy = choose(o->placement, policies, 2);

    if (policy < 0)
        return client_error(err, DTW_INVALID, "placement: %s is none of greedy, round-robin",
                            o->placement ? o->placement : "(null)");
    p->policy = (enum placement_policy)policy;
    return DTW_OK;
}

static bool
is_repeated(const struct dtw_options *o, uint32_t index)
{
    uint32_t i;

    for (i = 0; i < index; i++) {
        if (dt_endpoint_is_same(o->ps[i], o->ps[index]))
            return true;
    }
    return false;
}

static enum dtw_status
fill_tasks(const struct dtw_options *o, struct dtw_client *client, struct dtw_error *err)
{
    struct dt_error why;
    uint32_t i;

    client->tasks = calloc(o->n_ps, sizeof(*client->tasks));
    if (!client->tasks)
        return client_error(err, DTW_NO_MEMORY, "short of memory");
    client->n_tasks = o->n_ps;
    for (i = 0; i < o->n_ps; i++) {
        struct task *t = &client->tasks[i];

        if (!o->ps[i] || strlen(o->ps[i]) > DT_MAX_ENDPOINT)
            return client_error(err, DTW_INVALID,
                                "ps task %u: no endpoint, or one of more than %d bytes", i,
                                DT_MAX_ENDPOINT);
        if (dt_endpoint_check(o->ps[i], &why) != DT_OK ||
            dt_endpoint_resolve(o->ps[i], &why) != DT_OK)
            return client_error(err, DTW_RESOLVE, "ps task %u: %s", i, why.text);
        if (is_repeated(o, i))
            return client_error(err, DTW_INVALID,
                                "ps task %u: %s is another ps task already: each psd is one", i,
                                o->ps[i]);
        t->client = client;
        t->index = i;
        t->away_ms = t->taken_ms = -1;
        snprintf(t->endpoint, sizeof(t->endpoint), "%s", o->ps[i]);
    }
    return DTW_OK;
}

enum dtw_status
options_apply(const struct dtw_options *given, struct dtw_client *client, struct dtw_error *err)
{
    struct dtw_options o;
    enum dtw_status status;

    dtw_options_init(&o);
    if (!given || given->size < sizeof(size_t) || given->size > sizeof(o))
        return client_error(err, DTW_INVALID, "options: call dtw_options_init first");
    memcpy(&o, given, given->size);
    status = check_numbers(&o, err);
    if (status == DTW_OK)
        status = fill_params(&o, &client->params, err);
    if (status == DTW_OK)
        status = fill_placement(&o, &client->declared.placement, err);
    if (status == DTW_OK)
        status = fill_tasks(&o, client, err);
    if (status != DTW_OK)
        return status;
    snprintf(client->job, sizeof(client->job), "%s", o.job);
    client->rank = o.rank;
    client->fresh = o.fresh;
    client->retry_for_ms = o.retry_for_ms > SHORTEST_RETRY_MS ? o.retry_for_ms : SHORTEST_RETRY_MS;
    client->waiting_ms = o.waiting_ms > 0 ? o.waiting_ms : 10000;
    client->log = o.log;
    client->log_arg = o.log_arg;
    client->stop_fd = o.stop_fd;
    dt_job_params_encode(&client->params_body, &client->params);
    if (client->params_body.failed)
        return client_error(err, DTW_NO_MEMORY, "short of memory");
    return DTW_OK;
}
