/*
 * mailbox.c - rings between shard threads.
 *
 * Invariants: a ring's head is written by the receiver alone, its tail by the sender alone; a mail
 * never overtakes another of the same pair (while one waits in the sender's list, later ones queue
 * behind it). Runs on the shard threads.
 */
#include "psd/daemon/mailbox.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CACHE_LINE 64

struct ring {
    _Alignas(CACHE_LINE) atomic_uint head; /* next to take; receiver */
    _Alignas(CACHE_LINE) atomic_uint tail; /* next to fill; sender */
    struct mail **slots;                   /* owned */
    struct mail *waiting, *waiting_last;   /* owned; sender's list of what did not fit */
};

struct mailboxes {
    uint32_t n;
    uint32_t mask;
    struct ring *rings; /* owned: [from * n + to] */
    int *fds;           /* owned, one a receiver */
    uint32_t *turn;     /* owned: where the receiver looks first */
};

static struct ring *
ring_of(const struct mailboxes *b, uint32_t from, uint32_t to)
{
    return &b->rings[(size_t)from * b->n + to];
}

static bool
ring_push(const struct mailboxes *b, struct ring *r, struct mail *mail)
{
    unsigned tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    unsigned head = atomic_load_explicit(&r->head, memory_order_acquire);

    if (tail - head > b->mask)
        return false;
    r->slots[tail & b->mask] = mail;
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
    return true;
}

static struct mail *
ring_pop(const struct mailboxes *b, struct ring *r)
{
    unsigned head = atomic_load_explicit(&r->head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    struct mail *mail;

    if (head == tail)
        return NULL;
    mail = r->slots[head & b->mask];
    atomic_store_explicit(&r->head, head + 1, memory_order_release);
    return mail;
}

static bool
allocate(struct mailboxes *b, uint32_t slots)
{
    size_t i, n_rings = (size_t)b->n * b->n;

    b->rings = aligned_alloc(CACHE_LINE, n_rings * sizeof(*b->rings));
    b->fds = malloc(b->n * sizeof(*b->fds));
    b->turn = calloc(b->n, sizeof(*b->turn));
    for (i = 0; b->rings && i < n_rings; i++)
        b->rings[i] = (struct ring){0};
    for (i = 0; b->fds && i < b->n; i++)
        b->fds[i] = -1;
    if (!b->rings || !b->fds || !b->turn)
        return false;
    for (i = 0; i < n_rings; i++) {
        b->rings[i].slots = calloc(slots, sizeof(*b->rings[i].slots));
        if (!b->rings[i].slots)
            return false;
    }
    for (i = 0; i < b->n; i++) {
        b->fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (b->fds[i] < 0)
            return false;
    }
    return true;
}

struct mailboxes *
mailboxes_create(uint32_t n_shards, uint32_t slots)
{
    struct mailboxes *b = calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->n = n_shards;
    b->mask = slots - 1;
    if (!allocate(b, slots)) {
        mailboxes_destroy(b);
        return NULL;
    }
    return b;
}

static void
ring_deinit(struct mailboxes *b, struct ring *r)
{
    struct mail *m;

    while (r->slots && (m = ring_pop(b, r)))
        mail_destroy(m);
    while ((m = r->waiting)) {
        r->waiting = *mail_next(m);
        mail_destroy(m);
    }
    free(r->slots);
}

void
mailboxes_destroy(struct mailboxes *b)
{
    size_t i;

    if (!b)
        return;
    for (i = 0; b->rings && i < (size_t)b->n * b->n; i++)
        ring_deinit(b, &b->rings[i]);
    for (i = 0; b->fds && i < b->n; i++) {
        if (b->fds[i] >= 0)
            close(b->fds[i]);
    }
    free(b->rings);
    free(b->fds);
    free(b->turn);
    free(b);
}

static void
wake(const struct mailboxes *b, uint32_t to)
{
    uint64_t one = 1;

    /* EAGAIN: the counter is full, so the receiver is awake already. */
    (void)!write(b->fds[to], &one, sizeof(one));
}

void
mailbox_post(struct mailboxes *b, uint32_t from, struct mail *mail)
{
    uint32_t to = mail_target(mail);
    struct ring *r = ring_of(b, from, to);

    *mail_next(mail) = NULL;
    if (r->waiting) {
        *mail_next(r->waiting_last) = mail;
        r->waiting_last = mail;
    } else if (ring_push(b, r, mail)) {
        wake(b, to);
    } else {
        r->waiting = r->waiting_last = mail;
    }
}

/* Returns whether mails still wait. */
static bool
retry_ring(struct mailboxes *b, struct ring *r, uint32_t to)
{
    bool moved = false;

    while (r->waiting) {
        /* Once pushed, the mail is the receiver's: read its link before. */
        struct mail *next = *mail_next(r->waiting);

        if (!ring_push(b, r, r->waiting))
            break;
        r->waiting = next;
        moved = true;
    }
    if (moved)
        wake(b, to);
    return r->waiting != NULL;
}

bool
mailbox_retry(struct mailboxes *b, uint32_t from)
{
    bool waits = false;
    uint32_t to;

    for (to = 0; to < b->n; to++) {
        struct ring *r = ring_of(b, from, to);

        if (r->waiting)
            waits |= retry_ring(b, r, to);
    }
    return waits;
}

int
mailbox_fd(const struct mailboxes *b, uint32_t to)
{
    return b->fds[to];
}

void
mailbox_clear(struct mailboxes *b, uint32_t to)
{
    uint64_t count;

    (void)!read(b->fds[to], &count, sizeof(count));
}

struct mail *
mailbox_take(struct mailboxes *b, uint32_t to)
{
    uint32_t i;

    for (i = 0; i < b->n; i++) {
        uint32_t from = (b->turn[to] + i) % b->n;
        struct mail *mail = ring_pop(b, ring_of(b, from, to));

        if (mail) {
            b->turn[to] = (from + 1) % b->n;
            return mail;
        }
    }
    return NULL;
}
