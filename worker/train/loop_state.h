/*
 * loop_state.h - private to the loop files: what a loop holds, and the ways of an exchange.
 */
#ifndef TRAIN_LOOP_STATE_H
#define TRAIN_LOOP_STATE_H

#include "worker/train/loop.h"
#include "worker/train/overlap.h"
#include "worker/train/batches.h"
#include "worker/train/window.h"

struct loop_batch {     /* what a worker brings to an exchange */
    uint64_t n_rows;    /* the weight; 0: abstain */
    unsigned n_batches; /* the count */
    uint64_t n_steps;   /* gone through, with rows or without */
};

/* How values come and gradients go; chosen by the row's consistency. DTW_INTERRUPTED ends the loop. */
struct loop_exchange {
    enum dtw_status (*begin)(struct loop *l);
    /* Returns with the values of a later step in l->values and l->step set, or at an error. */
    enum dtw_status (*step)(struct loop *l, const struct loop_batch *batch);
    void (*stop_all)(
        struct loop *l); /* the target is reached: tell the others; NULL: they see it as well */
    /* All steps are done; NULL: the values are final. */
    void (*finish)(struct loop *l);
    /* ORDER_WITHIN: before the update of a window's first batch, which `batch` holds; `n_steps` is what the window
     * will have. NULL elsewhere. */
    enum dtw_status (*within)(struct loop *l, const struct loop_batch *batch, uint64_t n_steps);
};
extern const struct loop_exchange loop_exchange_local;
extern const struct loop_exchange loop_exchange_sync;
extern const struct loop_exchange loop_exchange_async;
extern const struct loop_exchange loop_exchange_elastic;
extern const struct loop_exchange loop_exchange_elastic_sync;

/* loop_compute.c: the gradients of the next window, T batches. LOOP_RUNNING: l->gradients hold what is to be pushed,
 * or it is under way; without l->went_on there is nothing, begin anew. */
enum loop_end loop_compute(struct loop *l, struct loop_batch *batch);
/* loop_over.c: exchange what a window has brought, and see how the loop goes on. */
enum loop_end loop_over(struct loop *l, const struct loop_batch *batch);
void loop_account(struct loop *l, uint64_t before); /* the step went from `before` to l->step */
enum loop_end loop_end_of(struct loop *l, enum dtw_status s);
enum loop_end loop_not_finite(struct loop *l);
/* What the training has made: the centre where there is one. */
const float *const *loop_shown(const struct loop *l);

/* loop_exchange.c: what they have in common. exchange_fill is a dtw_init_fn of a loop. */
enum dtw_status exchange_declare(struct loop *l);
void exchange_fill(void *arg, unsigned index, float *values, uint64_t n);
/* Push what the window brought and pull into `next`. */
enum dtw_status exchange_push_pull(struct loop *l, const struct loop_batch *batch,
                                   struct dtw_result *r);
/* A push was answered: what became of it. */
void exchange_count(struct loop *l, const struct loop_batch *batch, const struct dtw_result *r);
/* `next` is whole: it takes the place of `values`. */
void exchange_take_next(struct loop *l);
/* loop_sync.c, loop_async.c: this worker's life ended: become a member again and go on with values just pulled, in
 * synchronous rounds at the step that JOIN names. */
enum dtw_status exchange_sync_rejoin(struct loop *l);
enum dtw_status exchange_async_rejoin(struct loop *l);
/* loop_sync.c: the step of the values last pulled. */
uint64_t exchange_sync_step(const struct loop *l);
/* loop_async.c: pull what psd has at the time; in the end, with plan.final_values, wait for the others first and then
 * return true: pull once more. */
enum dtw_status exchange_async_pull(struct loop *l);
bool exchange_async_waited(struct loop *l);
/* loop_async.c: has the job's stop step come? */
bool exchange_async_stopped(const struct loop *l);

struct overlap {                             /* --overlap */
    struct dtw_handle *handle;               /* the exchange that is under way; NULL: none */
    enum dtw_status status;                  /* of its gradient so far */
    uint64_t weight;                         /* of the one that is planned; 0: none */
    unsigned count;                          /* likewise */
    bool is_coming;                          /* all gradients are given, */
    struct loop_batch batch;                 /* which this was, */
    uint32_t n_come;                         /* and the values of so many variables are here, */
    const float *point[MODEL_MAX_VARIABLES]; /* the others on their way to them */
};

struct loop {
    struct loop_plan plan;
    const struct loop_exchange *exchange;
    uint32_t n_variables;
    float *values[MODEL_MAX_VARIABLES]; /* owned (dtw_alloc); of step `step` */
    float *next[MODEL_MAX_VARIABLES]; /* owned; what is being pulled: becomes `values` when whole */
    float *gradients[MODEL_MAX_VARIABLES]; /* owned; of one batch, then of the window */
    float *centre[MODEL_MAX_VARIABLES]; /* owned; elastic: as last pulled; `values` are the own */
    float *moves[MODEL_MAX_VARIABLES];  /* owned; elastic: alpha * (value - centre) */
    struct dtw_result moved;            /* elastic: what became of the last of them */
    enum dtw_status within;             /* what the exchange within the window said */
    uint64_t n_windows;                 /* begun */
    struct window window;
    struct batches *batches; /* owned */
    uint64_t step;
    bool have_values;
    struct overlap overlap;
    bool went_on; /* false: the gradient was given up for what came of the exchange before it */
    bool stopped_by_all;  /* the job's stop step has come */
    uint64_t rows_due;    /* own rows of the steps that are over */
    uint64_t rows_taken;  /* of these: in a push that was taken */
    double start;         /* seconds */
    struct phases phases; /* since then */
    struct dtw_error err;
    struct loop_result result;
};

#endif
