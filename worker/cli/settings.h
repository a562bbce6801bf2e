/*
 * settings.h - the options of the commands of dtworker: one struct, one table a command made of shared
 * rows (proto/base/option.h).
 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include <stdint.h>

#include "proto/base/log.h"
#include "proto/base/option.h"
#include "worker/train/algorithm.h"

#define SETTINGS_MAX_WORKERS 1024
#define SETTINGS_EPOCHS 5 /* where neither --epochs nor --steps is given */
#define SETTINGS_TOY_STEPS 100
#define CPUS_OWN 0 /* of own|any */

struct settings {
    struct dt_options_head head;
    bool help;
    /* the job */
    char **ps; /* owned, as all strings and lists */
    char *job;
    uint64_t rank;
    uint64_t workers;
    bool fresh;
    uint64_t aggregate;
    int reduce;
    int on_loss;
    int64_t lease_ms;
    bool deterministic;
    int64_t start_timeout_ms;
    int64_t round_timeout_ms;
    uint64_t max_bad;
    int64_t retry_for_ms;
    /* the training */
    char *algorithm;
    char *model;
    char *data;
    char *label; /* CSV: which column */
    int header;  /* enum dataset_header */
    uint64_t epochs;
    uint64_t steps;
    double target_accuracy;
    uint64_t seed;
    uint64_t batch;
    uint64_t replicas;
    bool overlap;
    char *lr_schedule; /* extras.h, as the next four */
    uint64_t warmup;   /* updates; 0: none */
    double clip_value; /* 0: none, as the next */
    double clip_norm;
    double weight_decay;
    double lr;       /* 0: the algorithm's own; settings_lr() */
    double local_lr; /* likewise */
    int profile;     /* index into own|guide|dist-keras|paper */
    double alpha;    /* 0: the algorithm's own; settings_alpha() */
    double momentum; /* < 0: the algorithm's own; settings_momentum() */
    uint64_t window; /* likewise */
    char **lr_per_rank;
    char *local_optimizer;  /* NULL: the algorithm's own; settings_row() */
    char *server_optimizer; /* likewise */
    int window_reduction;   /* index into own|mean|sum */
    char **place;           /* "NAME=TASK" */
    int placement;
    char *partition; /* NULL: none */
    int locking;     /* index into own|slice|variable|none */
    int64_t max_staleness;
    uint64_t wait_for_step;
    int64_t staleness_bound;
    uint64_t threads;
    uint64_t step_delay_ms;
    /* what comes out */
    char *save;
    char *metrics;
    char *record; /* directory; replay: of the record */
    bool json;
    int log_level; /* index into err|warning|notice|info|debug */
    int64_t report_fd;
    /* run, eval */
    uint64_t ps_tasks;
    char **step_delays; /* one for all ranks, or one a rank */
    char **cpus;        /* train: the computing threads' processors; NULL: any */
    int cpus_of_run;    /* index into own|any: CPUS_OWN */
    char *model_file;
    /* compare */
    char **algorithms;
    char *slow;
    double target;
    uint64_t repeat;
    char *plot;
};

extern const struct dt_option settings_train[];
extern const struct dt_option settings_run[];
extern const struct dt_option settings_compare[];
extern const struct dt_option settings_eval[];
extern const struct dt_option settings_check[];
extern const struct dt_option settings_replay[];

/* Options that make no sense together or are missing: DT_E_USAGE. */
enum dt_status settings_check_train(const struct settings *s, struct dt_error *err);
enum dt_status settings_check_run(struct settings *s, struct dt_error *err);

/* The row of --algorithm and --profile. After settings_check_*: never NULL. */
const struct algorithm *settings_algorithm(const struct settings *s);
/* What was given, or the algorithm's own; settings_lr is the rate on psd (local: of the one rule). row.h has the
 * rest of the row. */
double settings_lr(const struct settings *s);
double settings_local_lr(const struct settings *s);
double settings_alpha(const struct settings *s);
double settings_momentum(const struct settings *s);
uint32_t settings_window(const struct settings *s);
unsigned settings_threads(const struct settings *s,
                          unsigned all);    /* of the BLAS library; all: by default */
unsigned settings_count(char *const *list); /* of a CSV option; NULL: none */
unsigned settings_n_ps(const struct settings *s);
enum dt_log_level settings_log_level(const struct settings *s);
/* Is a round of the row a sum, whatever --reduce? */
bool settings_sums_rounds(const struct settings *s);
const char *settings_reduce(const struct settings *s);
const char *settings_placement(const struct settings *s);
const char *settings_on_loss(const struct settings *s); /* --deterministic: fail */
/* --step-delay of `rank` in `run` (milliseconds). DT_E_USAGE. */
enum dt_status settings_step_delay(const struct settings *s, unsigned rank, uint64_t *ms,
                                   struct dt_error *err);

struct settings_route { /* from one command to one that it starts */
    const struct dt_option *from;
    const struct dt_option *to;
    const char *const *own; /* what the first sets itself; ends with NULL */
};
extern const struct settings_route settings_run_to_train;
extern const struct settings_route settings_run_to_local; /* of a worker without psd */
/* Append to `argv` ("--name=value") what was given among the options of `from` that `to` has as well.
 * Texts are allocated. False when memory is short or `max` would be passed. */
bool settings_forward(const struct settings *s, const struct settings_route *route, char **argv,
                      unsigned *n, unsigned max);

/* Batches in a step of all workers: of each worker and replica one, or --aggregate of them. */
uint32_t settings_parts(const struct settings *s);
/* How long to train: the end in steps and the length of an epoch in steps. `rows` 0: a model without data. */
void settings_length(const struct settings *s, uint64_t rows, uint64_t *steps,
                     uint64_t *steps_per_epoch);

#endif
