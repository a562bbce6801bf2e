/*
 * membership.c - which ranks a step counts. Pure data; runs on the owning shard's thread.
 */
#include "psd/store/membership.h"

#include <stdlib.h>
#include <string.h>

static bool
grow(struct membership *m, uint32_t n)
{
    struct member *ranks;

    if (n <= m->n)
        return true;
    ranks = realloc(m->ranks, n * sizeof(*ranks));
    if (!ranks)
        return false;
    memset(ranks + m->n, 0, (n - m->n) * sizeof(*ranks));
    m->ranks = ranks;
    m->n = n;
    return true;
}

bool
membership_init(struct membership *m, uint32_t workers)
{
    uint32_t r;

    memset(m, 0, sizeof(*m));
    if (!grow(m, workers))
        return false;
    for (r = 0; r < workers; r++) {
        m->ranks[r].counted = true;
        m->ranks[r].last = MEMBERSHIP_OPEN;
    }
    return true;
}

void
membership_deinit(struct membership *m)
{
    free(m->ranks);
    memset(m, 0, sizeof(*m));
}

bool
membership_join(struct membership *m, uint32_t rank, uint64_t first)
{
    if (!grow(m, rank + 1))
        return false;
    m->ranks[rank] = (struct member){.counted = true, .first = first, .last = MEMBERSHIP_OPEN};
    return true;
}

void
membership_leave(struct membership *m, uint32_t rank, uint64_t last)
{
    struct member *r;

    if (rank >= m->n || !m->ranks[rank].counted || m->ranks[rank].left)
        return;
    r = &m->ranks[rank];
    r->left = true;
    r->last = last;
    r->none = last == MEMBERSHIP_OPEN;
}

void
membership_strike(struct membership *m, uint32_t rank)
{
    if (rank < m->n)
        m->ranks[rank].counted = false;
}

bool
membership_counts(const struct membership *m, uint32_t rank, uint64_t step)
{
    const struct member *r;

    if (rank >= m->n)
        return false;
    r = &m->ranks[rank];
    return r->counted && !r->none && r->first <= step && step <= r->last;
}

bool
membership_is_active(const struct membership *m, uint32_t rank)
{
    return rank < m->n && m->ranks[rank].counted && !m->ranks[rank].left;
}

bool
membership_has_left(const struct membership *m, uint32_t rank)
{
    return rank < m->n && m->ranks[rank].left;
}

uint64_t
membership_next_after(const struct membership *m, uint64_t step)
{
    uint64_t next = MEMBERSHIP_OPEN;
    uint32_t i;

    for (i = 0; i < m->n; i++) {
        const struct member *r = &m->ranks[i];

        if (r->counted && !r->none && r->first > step && r->last >= r->first && r->first < next)
            next = r->first;
    }
    return next;
}
