/*
 * stages.c - where a shard's time goes. Runs on the shard's thread.
 *
 * Invariants: the sum of turn_ns is the time from stages_init to the last stages_turn; a message is divided only in
 * the turn's STAGE_RECEIVE; sample_ns[STAGE_IDLE] is 0.
 */
#include "psd/serve/stages.h"

#include <string.h>

#include "proto/wire/writer.h"

static const char *const stage_names[N_STAGES] = {
    [STAGE_IDLE] = "idle",     [STAGE_OTHER] = "other", [STAGE_RECEIVE] = "receive",
    [STAGE_DECODE] = "decode", [STAGE_APPLY] = "apply", [STAGE_REPLY] = "reply",
};

void
stages_init(struct stages *s, stage_clock_fn *clock, uint32_t sample)
{
    memset(s, 0, sizeof(*s));
    s->clock = clock;
    s->sample = sample ? sample : 1;
    s->left = 1; /* the first message is: a split is known from then on */
    s->turn = STAGE_OTHER;
    s->turn_since_ns = clock ? clock() : 0;
}

static void
end_message(struct stages *s, uint64_t now)
{
    if (!s->divided)
        return;
    s->totals.sample_ns[s->stage] += now - s->stage_since_ns;
    s->divided = false;
}

uint64_t
stages_turn(struct stages *s, enum stage part)
{
    uint64_t now;

    if (!s->clock)
        return 0;
    now = s->clock();
    end_message(s, now);
    s->totals.turn_ns[s->turn] += now - s->turn_since_ns;
    s->turn = part;
    s->turn_since_ns = now;
    return now;
}

/* At random: every 16th would always meet the same one where traffic repeats itself. */
static uint32_t
draw(struct stages *s)
{
    s->random = s->random * 1664525u + 1013904223u;
    return 1 + (s->random >> 8) % (2 * s->sample - 1);
}

void
stages_message(struct stages *s)
{
    bool next;
    uint64_t now;

    if (!s->clock)
        return;
    next = --s->left == 0;
    if (next)
        s->left = draw(s);
    if (!next && !s->divided)
        return;
    now = s->clock();
    end_message(s, now);
    s->divided = next;
    s->stage = STAGE_RECEIVE;
    s->stage_since_ns = now;
}

void
stages_divide(struct stages *s, enum stage stage)
{
    uint64_t now = s->clock();

    s->totals.sample_ns[s->stage] += now - s->stage_since_ns;
    s->stage = stage;
    s->stage_since_ns = now;
}

uint64_t
stages_parked(const struct stages *s)
{
    return s->clock ? s->clock() : 0;
}

void
stages_woken(struct stages *s, uint64_t parked_ns)
{
    if (!s->clock)
        return;
    s->totals.n_parked++;
    s->totals.parked_ns += s->clock() - parked_ns;
}

static uint64_t
sum(const uint64_t ns[N_STAGES])
{
    uint64_t all = 0;
    unsigned i;

    for (i = 0; i < N_STAGES; i++)
        all += ns[i];
    return all;
}

void
stages_tick(struct stages *s)
{
    if (sum(s->totals.turn_ns) - sum(s->past[1].turn_ns) < STAGES_RECENT_NS)
        return;
    s->past[0] = s->past[1];
    s->past[1] = s->totals;
}

void
stages_spread(const struct stage_totals *t, double ns[N_STAGES])
{
    double all = (double)sum(t->sample_ns), work = (double)t->turn_ns[STAGE_RECEIVE];
    unsigned i;

    for (i = 0; i < N_STAGES; i++) {
        double share = all > 0 ? (double)t->sample_ns[i] / all : i == STAGE_RECEIVE;

        ns[i] = work * share + (i == STAGE_RECEIVE ? 0 : (double)t->turn_ns[i]);
    }
}

void
stages_recent(const struct stages *s, struct stage_totals *recent)
{
    const struct stage_totals *now = &s->totals, *then = &s->past[0];
    unsigned i;

    for (i = 0; i < N_STAGES; i++) {
        recent->turn_ns[i] = now->turn_ns[i] - then->turn_ns[i];
        recent->sample_ns[i] = now->sample_ns[i] - then->sample_ns[i];
    }
    recent->n_received = now->n_received - then->n_received;
    recent->received_bytes = now->received_bytes - then->received_bytes;
    recent->n_sent = now->n_sent - then->n_sent;
    recent->sent_bytes = now->sent_bytes - then->sent_bytes;
    recent->n_parked = now->n_parked - then->n_parked;
    recent->parked_ns = now->parked_ns - then->parked_ns;
}

static void
write_count(struct dt_buffer *b, const char *key, uint64_t n)
{
    dt_write_str(b, key);
    dt_write_u64(b, n);
}

static void
write_totals(const struct stage_totals *t, struct dt_buffer *b)
{
    double ns[N_STAGES];
    unsigned i;

    stages_spread(t, ns);
    dt_write_map(b, 7);
    dt_write_str(b, "seconds");
    dt_write_map(b, N_STAGES);
    for (i = 0; i < N_STAGES; i++) {
        dt_write_str(b, stage_names[i]);
        dt_write_double(b, ns[i] * 1e-9);
    }
    write_count(b, "received", t->n_received);
    write_count(b, "received_bytes", t->received_bytes);
    write_count(b, "sent", t->n_sent);
    write_count(b, "sent_bytes", t->sent_bytes);
    write_count(b, "parked", t->n_parked);
    dt_write_str(b, "parked_seconds");
    dt_write_double(b, (double)t->parked_ns * 1e-9);
}

void
stages_write(const struct stages *s, uint32_t shard, struct dt_buffer *b)
{
    struct stage_totals recent;

    stages_recent(s, &recent);
    dt_write_map(b, 3);
    dt_write_str(b, "shard");
    dt_write_u64(b, shard);
    dt_write_str(b, "total");
    write_totals(&s->totals, b);
    dt_write_str(b, "recent");
    write_totals(&recent, b);
}
