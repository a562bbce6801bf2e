/*
 * dtworker.h - libdtworker, the client library of psd: a parameter server for data-parallel training.
 *
 * A program opens a job, declares its variables in a fixed order, lets one worker give the initial
 * values, and then, step by step, pushes gradients and pulls fresh values. All arrays are float32; a
 * set of gradients or values is an array of pointers, one a variable in the order of declaration.
 *
 * Thread rule: a client may be used by several threads, but for dtw_open/dtw_close. A background
 * thread (all signals blocked) sends heartbeats while the application computes. No global state, no
 * signal handlers, no output: what there is to say goes to the log callback (called from whichever
 * thread drives the client; it must not call back into the client). After fork() every call of the
 * child fails with DTW_FORKED.
 *
 * Every call has a deadline or says how long it may block. Calls that fail return a status and,
 * where there is an `err`, one line of text.
 */
#ifndef DTWORKER_H
#define DTWORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DTW_VERSION "0.1.0"

#if defined(__GNUC__)
#define DTW_API __attribute__((visibility("default")))
#else
#define DTW_API
#endif

enum dtw_status {
    DTW_OK = 0,
    DTW_PENDING = 1, /* dtw_wait: not complete yet; the buffers are still lent */
    DTW_LOST =
        2, /* this worker's life ended (lease, kick) while the request was outstanding: dtw_join */
    DTW_CANCELLED = 3,
    DTW_INTERRUPTED = 4, /* dtw_interrupt was called */
    DTW_INVALID = 5,     /* an argument makes no sense */
    DTW_NO_MEMORY = 6,
    DTW_UNAVAILABLE = 7, /* a ps task did not answer for retry_for_ms; no file descriptor is left */
    DTW_RESOLVE = 8,     /* a host name that does not resolve, a malformed endpoint */
    DTW_MISMATCH = 9,    /* job parameters or declarations differ from the job's */
    DTW_RANK_TAKEN = 10, /* another live process has this rank */
    DTW_JOB_COMPLETE = 11, /* the job is complete and read-only */
    DTW_JOB_FAILED = 12,
    DTW_NO_JOB = 13,       /* psd came back without the job */
    DTW_NOT_FINITE = 14,   /* NaN or Inf in a gradient: nothing was changed */
    DTW_TOO_MANY_BAD = 15, /* max_bad refused pushes in a row: stop */
    DTW_REFUSED = 16,      /* psd refused the request for another reason (text says which) */
    DTW_PROTOCOL = 17,     /* psd answered something illegal */
    DTW_GOING_DOWN = 18,   /* psd is shutting down */
    DTW_CLOSED = 19,
    DTW_FORKED = 20,
    DTW_INTERNAL = 21,
};

struct dtw_error {
    enum dtw_status code;
    char text[512];
};

struct dtw_client; /* a worker of a job */
struct dtw_handle; /* an outstanding request */

enum dtw_log_level { DTW_LOG_WARNING = 4, DTW_LOG_NOTICE = 5, DTW_LOG_INFO = 6, DTW_LOG_DEBUG = 7 };
typedef void dtw_log_fn(void *arg, enum dtw_log_level level, const char *line);

/* Filled with defaults by dtw_options_init. Strings are copied by dtw_open. */
struct dtw_options {
    size_t size;           /* sizeof(struct dtw_options), set by dtw_options_init */
    const char *const *ps; /* endpoints of the ps tasks, in the job's order */
    unsigned n_ps;
    const char *job;
    unsigned rank;
    unsigned workers;        /* M: ranks 0..M-1 are expected */
    bool fresh;              /* replace a job of this name that is complete, failed or suspended */
    const char *consistency; /* "sync" (default), "async", "ssp" */
    const char
        *locking; /* async: "slice" (default): updates of a slice exclude each other; "variable":
                               * those of a variable do, and a pull brings it whole (64 MiB at most); "none"
                               * (Hogwild!): any thread of psd updates any slice, torn sets and lost
                               * updates of elements happen, versions are approximate */
    int64_t max_staleness;    /* async: refuse gradients that are more updates old; -1: any */
    unsigned aggregate;       /* N gradients close a round; 0, or above `workers`: all members */
    const char *reduce;       /* "mean" (default), "count", "sum" */
    const char *on_loss;      /* "shrink" (default), "fail" */
    int64_t lease_ms;         /* 10 000 */
    int64_t start_timeout_ms; /* 0: wait for missing workers for ever */
    int64_t round_timeout_ms; /* 0: off */
    unsigned max_bad;         /* 10 */
    int64_t retry_for_ms;     /* 60 000: give up when a ps task does not answer for so long */
    int64_t waiting_ms; /* 10 000: how often the log callback names the ranks that a parked request
                                 waits for; "waiting for ENDPOINT" comes each 5 s while psd is not there */
    const char *
        placement; /* of variables over ps tasks: "greedy" (default: fewest bytes), "round-robin" */
    dtw_log_fn *log; /* may be NULL */
    void *log_arg;
    int stop_fd; /* -1: none. A descriptor (borrowed): while it is readable every blocking call
                  * returns DTW_INTERRUPTED, dtw_open too; all but dtw_cancel, dtw_leave, dtw_close */
    int64_t
        staleness_bound; /* ssp: s. A pull after c pushes waits until every other worker has pushed c - s
                              * times (dtw_init and dtw_join say where a late one begins to count) */
    bool
        deterministic; /* sync: gradients are summed in rank order whenever they come; needs aggregate 0,
                         * on_loss "fail" and `kernel`. Late joiners are refused */
    const char
        *kernel; /* deterministic: what computes the gradients, a word that all workers say alike */
};

struct dtw_param { /* a parameter of an optimizer: {"beta1", 0.8f} */
    const char *name;
    float value;
};

/* A variable. Elements = product of the shape (1 for a scalar). Optimizers, with their further parameters:
 * sgd; momentum and nesterov (momentum .9); adagrad (initial_accumulator .1, eps 0); adam (beta1 .9, beta2 .999,
 * eps 1e-8); rmsprop and rmsprop-centered (rho .9, momentum 0, eps 1e-10; the latter not with locking none);
 * ftrl (l1 0, l2 0, initial_accumulator .1; initial values are forgotten at the first update); add (w += what
 * is pushed), add-damped (w += what is pushed / (its staleness + 1), not with locking none) and assign (w = what is
 * pushed), which have no lr. The equations are those of TensorFlow. Rules with an lr also take clip_value,
 * weight_decay, warmup and the parameters of one schedule ("cosine.steps", ...; libdtworker(3)). */
struct dtw_variable {
    const char *name;
    unsigned n_dims;
    const uint64_t *shape;
    const char *optimizer;          /* "sgd" (default) */
    float lr;                       /* its learning rate; < 0: the rule has none */
    const struct dtw_param *params; /* its further parameters; may be NULL */
    unsigned n_params;
    const char *init; /* a word for the kind of initial values; compared between workers */
    uint64_t seed;    /* compared between workers */
};

/* What became of a push and a pull. Counts are slices. */
struct dtw_result {
    uint64_t
        step; /* largest version among the pulled slices: the worker's step (pull, push_pull) */
    unsigned n_slices;
    unsigned accumulated; /* taken into the open round (or applied, in asynchronous jobs) */
    unsigned stale;
    unsigned duplicate;
    unsigned refused; /* not a member, ahead */
    uint64_t
        staleness; /* async: the most updates that a slice saw between this worker's pull and push */
    bool partial;  /* some slices were taken and some were not */
    bool approximate; /* locking none: step and staleness may be off by a few */
};

DTW_API void dtw_options_init(struct dtw_options *options);

/* Connect to all ps tasks and register. Blocks up to retry_for_ms for a psd that is not there yet,
 * and for a rank whose former process still has a lease. *client is NULL on error. */
DTW_API enum dtw_status dtw_open(const struct dtw_options *options, struct dtw_client **client,
                                 struct dtw_error *err);

/* Pin the variable that will be declared under `name` to ps task 0..n_ps-1, whatever options.placement says.
 * All workers pin alike, before dtw_declare of that name. */
DTW_API enum dtw_status dtw_place(struct dtw_client *client, const char *name, unsigned task,
                                  struct dtw_error *err);

/* Cut the variables that are declared from here on into parts along their first axis, so that one may lie on several
 * ps tasks: "fixed:N" (N parts), "axis-size:MAX_BYTES[:MAX_PARTS]", "min-max:MAX_PARTS[:MIN_BYTES]" (MIN_BYTES
 * 262144), as TensorFlow's partitioners count them, or "none". psd knows the parts as NAME/part_0, NAME/part_1, ...
 * and places each like a variable; a pin of NAME is of all its parts, one of NAME/part_K comes first. The
 * application still has one buffer a variable. A scalar stays whole. All workers partition alike, else
 * dtw_init is DTW_MISMATCH. */
DTW_API enum dtw_status dtw_partition(struct dtw_client *client, const char *how,
                                      struct dtw_error *err);

/* Declare the next variable; all workers declare the same ones in the same order, before dtw_init.
 * Does not talk to psd. *index (may be NULL) is 0, 1, ... */
DTW_API enum dtw_status dtw_declare(struct dtw_client *client, const struct dtw_variable *variable,
                                    unsigned *index, struct dtw_error *err);

/* Gives the initial values of variable `index`: fill values[0..n). Called in the thread of dtw_init; more than
 * once with the same outcome where parts of the variable lie on several ps tasks, or psd was restarted. */
typedef void dtw_init_fn(void *arg, unsigned index, float *values, uint64_t n);

/* Send the declarations and wait until the initial values are complete: psd grants one worker the
 * right to give them, `fill` is then called in that worker, the others wait (without limit while psd
 * answers; the log callback says for whom). Then become a member (JOIN) where needed. *first_step:
 * the step from which this worker counts; pull with want = *first_step. */
DTW_API enum dtw_status dtw_init(struct dtw_client *client, dtw_init_fn *fill, void *arg,
                                 uint64_t *first_step, struct dtw_error *err);

/* After DTW_LOST: register anew and become a member again; then pull with want = *first_step. Until
 * then every push and pull ends with DTW_LOST. Blocks up to retry_for_ms. */
DTW_API enum dtw_status dtw_join(struct dtw_client *client, uint64_t *first_step,
                                 struct dtw_error *err);

/* Start to pull all variables into values[i] when every slice has version >= want_step (ssp: when the bound allows
 * it, whatever want_step). Buffers are
 * lent until the handle is complete (dtw_wait != DTW_PENDING) or cancelled. */
DTW_API enum dtw_status dtw_pull(struct dtw_client *client, float *const *values,
                                 uint64_t want_step, struct dtw_handle **handle,
                                 struct dtw_error *err);

/* Start to push the mean gradient over `weight` rows out of `count` batches, computed at the values
 * of the last pull. weight = count = 0 with gradients = NULL abstains from the step. All gradients are
 * checked for NaN and Inf before anything is sent. Buffers are lent until the handle is complete. */
DTW_API enum dtw_status dtw_push(struct dtw_client *client, const float *const *gradients,
                                 uint64_t weight, unsigned count, struct dtw_handle **handle,
                                 struct dtw_error *err);
/* The same from a copy: the buffers are free at return. */
DTW_API enum dtw_status dtw_push_copy(struct dtw_client *client, const float *const *gradients,
                                      uint64_t weight, unsigned count, struct dtw_handle **handle,
                                      struct dtw_error *err);
/* Push, and pull the values of the next step. gradients and values may not overlap. */
DTW_API enum dtw_status dtw_push_pull(struct dtw_client *client, const float *const *gradients,
                                      float *const *values, uint64_t weight, unsigned count,
                                      struct dtw_handle **handle, struct dtw_error *err);
/* dtw_push_pull and wait without limit while psd answers: what nine of ten programs need. */
DTW_API enum dtw_status dtw_step(struct dtw_client *client, const float *const *gradients,
                                 float *const *values, uint64_t weight, unsigned count,
                                 struct dtw_result *result, struct dtw_error *err);

/* dtw_push_pull with gradients that come one variable at a time, in any order, so that what is computed first
 * is sent while the rest is being computed: begin with what the whole push weighs (rows >= 1, batches) and the
 * buffers of all values, give each variable's gradient once, then dtw_wait. A gradient that is not finite
 * (DTW_NOT_FINITE) is not sent; what was given before is. dtw_cancel gives up in between. Buffers are lent
 * until the handle is complete; one step is open at a time (else DTW_INVALID), and dtw_wait before the last
 * gradient is DTW_INVALID and ends nothing. When the handle has ended early (DTW_LOST, ...) so does dtw_step_gradient,
 * and dtw_wait still has to free it. */
DTW_API enum dtw_status dtw_step_begin(struct dtw_client *client, float *const *values,
                                       uint64_t weight, unsigned count, struct dtw_handle **handle,
                                       struct dtw_error *err);
DTW_API enum dtw_status dtw_step_gradient(struct dtw_handle *handle, unsigned index,
                                          const float *gradient, struct dtw_error *err);

/* Of a step that dtw_step_begin began: wait until the values of variable `index`, whose gradient was given, are
 * whole in their buffer, so that they can be used while others are on their way. What has not been sent yet goes by
 * index: the gradient of a smaller one overtakes, and its values come first. timeout_ms < 0: without limit;
 * DTW_PENDING when the time is over, DTW_INTERRUPTED by dtw_interrupt or the stop descriptor: the step goes on. Any
 * other status is that of the step, which has ended. The handle stays in any case: dtw_wait frees it, which no other
 * thread may do meanwhile. */
DTW_API enum dtw_status dtw_wait_variable(struct dtw_handle *handle, unsigned index,
                                          int64_t timeout_ms, struct dtw_error *err);

/* Wait for a request; timeout_ms < 0: without limit. DTW_PENDING when the time is over: the request
 * goes on and its buffers stay lent. Any other status ends the handle, which is then freed;
 * DTW_INTERRUPTED does so as dtw_cancel would. */
DTW_API enum dtw_status dtw_wait(struct dtw_handle *handle, int64_t timeout_ms,
                                 struct dtw_result *result, struct dtw_error *err);
/* Give up a request and get its buffers back; frees the handle. What was sent may still be applied.
 * Blocks until the transport lets go of the buffers: up to a few seconds. */
DTW_API void dtw_cancel(struct dtw_handle *handle);

/* Make waits of this client return DTW_INTERRUPTED, now and until dtw_interrupt_clear; all but those
 * of dtw_cancel, dtw_leave and dtw_close. Async-signal-safe. */
DTW_API void dtw_interrupt(struct dtw_client *client);
DTW_API void dtw_interrupt_clear(struct dtw_client *client);

/* The largest version of the last pull; the job's global step as last heard. Any thread. */
DTW_API uint64_t dtw_worker_step(const struct dtw_client *client);
DTW_API uint64_t dtw_global_step(const struct dtw_client *client);

#define DTW_NO_VERSION UINT64_MAX
struct
    dtw_slice { /* elements [start, start + n) of a variable: what psd updates and counts as one */
    unsigned variable;
    uint64_t start, n;
    uint64_t
        pulled; /* its version, updates since its initial values, at the last pull; DTW_NO_VERSION: none */
    uint64_t
        pushed; /* the version that the last push made, where it was applied at once: that before it is
                      * one less; DTW_NO_VERSION: it made none. Locking none: approximate */
};
/* The slices of all variables, in order of declaration, at most `max` of them into `slices` (may be NULL); *n is how
 * many there are. Not while a push or pull is outstanding. Does not block. */
DTW_API enum dtw_status dtw_slices(struct dtw_client *client, struct dtw_slice *slices,
                                   uint64_t max, uint64_t *n, struct dtw_error *err);

/* Asynchronous jobs: the global step counts the batches that all workers have pushed (`count` of each push).
 * Wait until it reaches `step`; blocks up to timeout_ms (< 0: while psd answers; then DTW_UNAVAILABLE). One
 * thread of a client at a time. DTW_OK comes earlier when it
 * cannot: the stop step is less, or nobody else is there, or expected, who takes steps. UINT64_MAX waits for just
 * that: the other workers have left, were lost, or wait as well; a pull then brings the job's final values. */
DTW_API enum dtw_status dtw_wait_step(struct dtw_client *client, uint64_t step, int64_t timeout_ms,
                                      struct dtw_error *err);
/* Set the global step at which all workers are to stop; the least one that was set counts. */
DTW_API enum dtw_status dtw_set_stop_step(struct dtw_client *client, uint64_t step,
                                          int64_t timeout_ms, struct dtw_error *err);
/* The stop step as last heard (it comes with the answer to each push); UINT64_MAX: none. Any thread. */
DTW_API uint64_t dtw_stop_step(const struct dtw_client *client);

/* A counter of the job on psd, by name ("rounds", "stale", ...; psd-protocol(7)), summed over the ps
 * tasks. Blocks up to timeout_ms. */
DTW_API enum dtw_status dtw_stats(struct dtw_client *client, const char *name, int64_t timeout_ms,
                                  uint64_t *value, struct dtw_error *err);

/* Leave the job: no open or later round waits for this worker. Outstanding requests are cancelled.
 * Blocks up to timeout_ms. When all pushes were acknowledged, a psd that does not answer is only
 * warned about and DTW_OK is returned. */
DTW_API enum dtw_status dtw_leave(struct dtw_client *client, int64_t timeout_ms,
                                  struct dtw_error *err);

/* Close connections and free everything; does not leave (the lease ends later). NULL-safe. */
DTW_API void dtw_close(struct dtw_client *client);

/* Zeroed float buffers in 2 MiB-aligned huge pages, the fastest kind to push from and pull into. */
DTW_API float *dtw_alloc(uint64_t n);
DTW_API void dtw_free(float *buffer, uint64_t n);

/* Sets glibc's malloc of this process to keep freed memory (up to 512 MiB) for the next frames: pulls of large
 * variables are several times faster. A decision of the program, so the library never takes it by itself: call it at
 * the start of main(), before threads. false: glibc refused, nothing else is affected. */
DTW_API bool dtw_tune_allocation(void);

DTW_API const char *dtw_strerror(enum dtw_status status);

#ifdef __cplusplus
}
#endif
#endif
