/*
 * stats.c - STATS: a job's counters, for its workers. Shard 0; the counters are shared atomics.
 */
#include "psd/serve/status_body.h"

#include "psd/serve/call.h"

void
status_counters(const struct job *job, struct dt_buffer *body)
{
    unsigned i;

    dt_write_map(body, JOB_N_COUNTERS + 1);
    dt_write_str(body, "rounds");
    dt_write_u64(body, atomic_load(&job->shared->step));
    for (i = 0; i < JOB_N_COUNTERS; i++) {
        dt_write_str(body, job_counter_names[i]);
        dt_write_u64(body, atomic_load(&job->shared->counters[i]));
    }
}

void
handle_stats(struct call *c)
{
    struct dt_buffer body = {0};

    status_counters(c->session->view->job, &body);
    reply_body(c->out, &c->to, &body, view_step(c->session->view));
}
