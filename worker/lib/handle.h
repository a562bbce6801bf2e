/*
 * handle.h - a request of the application: many messages, one outcome. Private.
 *
 * `holds` counts the frames that libzmq still reads plus one while the outcome is open; a handle is
 * done when it is 0. The release callback runs on an I/O thread: it decrements, and writes the wake
 * descriptor only when it was the last. Nothing is sent after the outcome is known, so 0 is final.
 */
#ifndef WORKER_LIB_HANDLE_H
#define WORKER_LIB_HANDLE_H

#include "worker/lib/message.h"
#include "worker/lib/stepwise.h"

struct control_reply { /* to a control message, one a ps task */
    uint64_t value;
    struct dt_buffer body;
};

struct dtw_handle {
    struct dtw_handle *prev, *next;
    struct dtw_client *client; /* borrowed */
    struct message *messages;  /* list, owned until handle_submit */
    uint32_t n_unanswered;
    atomic_long holds;
    int wake_fd;
    bool is_push;
    bool is_pull;
    bool is_leave;
    bool finished; /* the outcome is known */
    bool done;     /* and the buffers are free */
    int64_t finished_ms;
    enum dtw_status status;
    enum dt_status raw; /* psd's status */
    char text[DT_MAX_TEXT + 1];
    struct dtw_result result;
    float *copy;                   /* owned: dtw_push_copy */
    struct stepwise *stepwise;     /* owned: dtw_step_begin */
    uint64_t *touched;             /* owned: one bit a shard, one word a ps task */
    struct control_reply *control; /* owned: one a ps task */
};

struct dtw_handle *handle_create(struct dtw_client *client); /* NULL: short of memory */
void handle_destroy(struct dtw_handle *h);                   /* not submitted, or done */
void handle_add(struct dtw_handle *h, struct message *m);
void handle_submit(struct dtw_handle *h, bool alone); /* as driver_wake */
void handle_add_sent(struct dtw_handle *h);           /* messages added since then go as well */
void handle_release(void *arg);                       /* dt_release_fn */

void handle_answered(struct dtw_handle *h, int64_t now); /* one of its messages */
/* The end, unless it was before: outstanding messages are given up. */
void handle_finish(struct dtw_handle *h, enum dtw_status status, enum dt_status raw,
                   const char *text);
void handle_finish_all(struct dtw_client *client, enum dtw_status status, const char *text);
/* Those whose buffers came back are done; DEALERs that do not let go are made anew. */
int64_t handle_settle(struct dtw_client *client, int64_t now);

/* Lock held. WAIT_OVER: done. */
enum wait_end handle_wait(struct dtw_handle *h, int64_t deadline_ms, bool interruptible);
/* Give up and wait until the buffers are back; frees it. Lock held. */
void handle_cancel(struct dtw_handle *h);
/* Status, result and text of a done handle; frees it. */
enum dtw_status handle_collect(struct dtw_handle *h, struct dtw_result *result,
                               struct dtw_error *err);
/* Submit and wait. A handle that is done is left to the caller in *keep (may be NULL: freed); after a
 * time-out (DTW_UNAVAILABLE) or an interruption it is cancelled and *keep is NULL. */
enum dtw_status handle_run(struct dtw_handle *h, struct dtw_handle **keep, int64_t deadline_ms,
                           bool interruptible, struct dtw_error *err);

#endif
