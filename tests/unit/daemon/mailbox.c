/*
 * mailbox.c - order, overflow and waking between two threads.
 */
#include "psd/daemon/mailbox.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "psd/serve/mail.h"

/* Criterion's children end without the leak check of AddressSanitizer: ask for it. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static void
finish(struct mailboxes *b)
{
    mailboxes_destroy(b);
    if (__lsan_do_recoverable_leak_check)
        cr_assert_eq(__lsan_do_recoverable_leak_check(), 0);
}

TestSuite(mailbox, .timeout = 120);

static struct mail *
numbered(uint32_t from, uint32_t to, uint64_t step)
{
    struct mail *m = mail_create(MAIL_BARRIER, 1);

    cr_assert_not_null(m);
    m->from = from;
    m->to = to;
    m->step = step;
    return m;
}

static void
expect_step(struct mailboxes *b, uint32_t to, uint64_t step)
{
    struct mail *m = mailbox_take(b, to);

    cr_assert_not_null(m);
    cr_assert_eq(m->step, step);
    mail_destroy(m);
}

static bool
is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

Test(mailbox, delivers_in_order_and_wakes_the_receiver)
{
    struct mailboxes *b = mailboxes_create(2, 4);

    cr_assert_not(is_readable(mailbox_fd(b, 1)));
    mailbox_post(b, 0, numbered(0, 1, 1));
    mailbox_post(b, 0, numbered(0, 1, 2));
    cr_assert(is_readable(mailbox_fd(b, 1)));
    cr_assert_not(is_readable(mailbox_fd(b, 0)));
    mailbox_clear(b, 1);
    cr_assert_not(is_readable(mailbox_fd(b, 1)));
    expect_step(b, 1, 1);
    expect_step(b, 1, 2);
    cr_assert_null(mailbox_take(b, 1));
    cr_assert_null(mailbox_take(b, 0));
    finish(b);
}

Test(mailbox, what_does_not_fit_waits_and_keeps_its_place)
{
    struct mailboxes *b = mailboxes_create(2, 4);
    uint64_t i;

    for (i = 0; i < 10; i++)
        mailbox_post(b, 0, numbered(0, 1, i));
    cr_assert(mailbox_retry(b, 0), "six wait");
    mailbox_clear(b, 1);
    expect_step(b, 1, 0);
    mailbox_post(b, 0, numbered(0, 1, 10)); /* there is room, but others are first */
    cr_assert(mailbox_retry(b, 0));
    cr_assert(is_readable(mailbox_fd(b, 1)), "retry wakes");
    for (i = 1; i < 11; i++) {
        expect_step(b, 1, i);
        mailbox_retry(b, 0);
    }
    cr_assert_null(mailbox_take(b, 1));
    cr_assert_not(mailbox_retry(b, 0));
    finish(b);
}

Test(mailbox, senders_take_turns)
{
    struct mailboxes *b = mailboxes_create(3, 8);
    uint32_t seen[3] = {0};
    struct mail *m;
    uint64_t i;

    for (i = 0; i < 4; i++)
        mailbox_post(b, 1, numbered(1, 0, i));
    for (i = 0; i < 4; i++)
        mailbox_post(b, 2, numbered(2, 0, i));
    for (i = 0; i < 4; i++) {
        m = mailbox_take(b, 0);
        seen[m->from]++;
        mail_destroy(m);
    }
    cr_assert_eq(seen[1], 2);
    cr_assert_eq(seen[2], 2);
    finish(b); /* with four mails in it */
}

Test(mailbox, destroys_what_waits)
{
    struct mailboxes *b = mailboxes_create(1, 2);
    uint64_t i;

    for (i = 0; i < 9; i++)
        mailbox_post(b, 0, numbered(0, 0, i));
    finish(b);
}

#define N_MAILS 20000

struct side {
    struct mailboxes *boxes;
    uint32_t self;
    bool in_order;
};

static void
take_all(struct side *s, uint64_t *expected)
{
    struct mail *m;

    while ((m = mailbox_take(s->boxes, s->self))) {
        s->in_order &= m->step == *expected;
        ++*expected;
        mail_destroy(m);
    }
}

/* Sends N_MAILS to the other side while it takes as many from there. */
static void *
exchange(void *arg)
{
    struct side *s = arg;
    struct pollfd p = {.fd = mailbox_fd(s->boxes, s->self), .events = POLLIN};
    uint64_t sent = 0, expected = 0;
    bool waits = false;

    s->in_order = true;
    while (expected < N_MAILS || waits || sent < N_MAILS) {
        unsigned burst;

        for (burst = 0; burst < 50 && sent < N_MAILS; burst++)
            mailbox_post(s->boxes, s->self, numbered(s->self, 1 - s->self, sent++));
        waits = mailbox_retry(s->boxes, s->self);
        poll(&p, 1, sent < N_MAILS ? 0 : waits ? 1 : 1000);
        mailbox_clear(s->boxes, s->self);
        take_all(s, &expected);
    }
    return NULL;
}

Test(mailbox, two_threads_exchange_all_in_order)
{
    struct mailboxes *b = mailboxes_create(2, 16);
    struct side sides[2] = {{.boxes = b, .self = 0}, {.boxes = b, .self = 1}};
    pthread_t threads[2];
    int i;

    for (i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, exchange, &sides[i]), 0);
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    cr_assert(sides[0].in_order);
    cr_assert(sides[1].in_order);
    cr_assert_null(mailbox_take(b, 0));
    cr_assert_null(mailbox_take(b, 1));
    finish(b);
}
