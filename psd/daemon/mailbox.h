/*
 * mailbox.h - mail between shards: one single-producer single-consumer ring for each pair of shards
 * and one eventfd for each receiver.
 *
 * Posting never blocks: what does not fit waits in the sender's own list and is tried again by
 * mailbox_retry. Mails of one pair arrive in the order in which they were posted.
 *
 * Thread rule: functions with `from` belong to that shard's thread, those with `to` to the receiver's.
 */
#ifndef PSD_DAEMON_MAILBOX_H
#define PSD_DAEMON_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "psd/serve/serve.h"

struct mailboxes;

/* `slots` of each ring: a power of two. NULL when memory or descriptors are short. */
struct mailboxes *mailboxes_create(uint32_t n_shards, uint32_t slots);
void mailboxes_destroy(struct mailboxes *boxes); /* with what is still in them; no thread may run */

void mailbox_post(struct mailboxes *boxes, uint32_t from, struct mail *mail); /* takes the mail */
bool mailbox_retry(struct mailboxes *boxes, uint32_t from); /* true while mails still wait */

int mailbox_fd(const struct mailboxes *boxes,
               uint32_t to);                              /* readable: mails have come; borrowed */
void mailbox_clear(struct mailboxes *boxes, uint32_t to); /* before taking: resets the eventfd */
struct mail *mailbox_take(struct mailboxes *boxes, uint32_t to); /* owned by the caller, or NULL */

#endif
