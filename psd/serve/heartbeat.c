/*
 * heartbeat.c - HEARTBEAT and GOODBYE: small signs of life. Any shard.
 */
#include <string.h>

#include "psd/serve/call.h"
#include "psd/serve/control.h"
#include "psd/serve/parked.h"

static bool
waits_for_init(const struct call *c, struct dt_waiting *w)
{
    const struct control_job *job;

    if (c->shard->index != 0 || c->session->rank == DT_NO_RANK)
        return false;
    job = control_find(c->shard, c->session->view->id);
    if (!job || !job->workers[c->session->rank].init_waits)
        return false;
    w->reason = DT_WAIT_INIT;
    if (job->grant_rank != DT_NO_RANK)
        w->ranks[w->n_ranks++] = job->grant_rank;
    return true;
}

void
handle_heartbeat(struct call *c)
{
    struct dt_waiting w;

    memset(&w, 0, sizeof(w));
    if (!waits_for_init(c, &w) && c->session->parked)
        parked_waiting(c->session->parked, &w);
    reply_waiting(c->out, &c->to, DT_OK, view_step(c->session->view), &w);
}

void
handle_goodbye(struct call *c)
{
    c->session->acknowledged = true;
}
