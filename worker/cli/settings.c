/*
 * settings.c - the option tables of the commands, and what their fields mean.
 *
 * Invariant: `run` shares the rows that it hands to its workers with `train` (ROWS_SHARED), so both
 * always accept the same. Threads: main alone.
 */
#include "worker/cli/settings.h"

#include <stddef.h>

#include "proto/base/parse.h"
#include "proto/base/plural.h"
#include "psd/optim/schedule.h"
#include "worker/train/order.h"
#include "worker/train/replicas.h"

#define ROW(name_, type_, field_, ...)                                                             \
    {                                                                                              \
        .name = (name_), .type = DT_OPT_##type_, .scope = DT_OPT_CLI,                              \
        .offset = offsetof(struct settings, field_), __VA_ARGS__                                   \
    }
#define ROW_HELP ROW("help", FLAG, help, .letter = 'h', .help = "this text")
#define ROW_END                                                                                    \
    {                                                                                              \
        .name = NULL                                                                               \
    }
#define ROW_LABEL                                                                                  \
    ROW("label", STRING, label, .arg = "COLUMN",                                                   \
        .help =                                                                                    \
            "CSV: the label's column, a name or a number from 1; default: label, else the last")
#define ROW_HEADER                                                                                 \
    ROW("header", ENUM, header, .def = "auto", .choices = "auto|yes|no", .arg = "WHETHER",         \
        .help = "CSV: is line 1 a header? yes, no, or auto: when none of its cells is a number")
#define ROW_DATA                                                                                   \
    ROW("data", STRING, data, .arg = "PATH",                                                       \
        .help = "directory of the four IDX files (MNIST style, plain or .gz), CSV, .npy or .npz")
#define ROW_JSON                                                                                   \
    ROW("json", FLAG, json, .help = "one JSON object on stdout, and nothing else there")
#define ROW_LOG                                                                                    \
    ROW("log-level", ENUM, log_level, .def = "info", .choices = "err|warning|notice|info|debug",   \
        .arg = "LEVEL", .help = "what goes to stderr: err, warning, notice, info, debug")

/* What means the same in `train` and in `run`, but for its default. */
#define ROW_RETRY_FOR(def_)                                                                        \
    ROW("retry-for", DURATION, retry_for_ms, .def = (def_), .min = 1, .max = 1e12, .arg = "TIME",  \
        .help = "give up when a ps task does not answer for so long")
#define ROW_START_TIMEOUT(def_)                                                                    \
    ROW("start-timeout", DURATION, start_timeout_ms, .def = (def_), .min = 0, .max = 1e12,         \
        .arg = "TIME", .help = "wait so long for missing workers, then --on-loss; 0: for ever")
#define ROW_WORKERS(def_)                                                                          \
    ROW("workers", U64, workers, .def = (def_), .min = 1, .max = SETTINGS_MAX_WORKERS, .arg = "M", \
        .help = "workers expected: ranks 0 to M-1")
#define ROW_THREADS(help_)                                                                         \
    ROW("threads", U64, threads, .def = "0", .min = 0, .max = 1024, .arg = "N", .help = (help_))
#define ROW_SAVE(help_) ROW("save", STRING, save, .arg = "FILE", .help = (help_))
#define ROW_RECORD                                                                                 \
    ROW("record", STRING, record, .arg = "DIR",                                                    \
        .help = "asynchronous: write the order of exchanges there, for dtworker replay")
#define ROW_METRICS(help_) ROW("metrics", STRING, metrics, .arg = "FILE", .help = (help_))

#define ALGORITHM_HELP                                                                             \
    "ssgd, ssgd-diff-lr, sagn, hogwild, downpour, downpour-easy, agn, dynsgd, easgd, aeasgd, "     \
    "eamsgd, ssp or local"

#define ALGORITHM_CHOICES                                                                          \
    "ssgd|ssgd-diff-lr|sagn|hogwild|downpour|downpour-easy|agn|dynsgd|easgd|aeasgd|eamsgd|ssp|"    \
    "local"

#define OPTIMIZERS "sgd, momentum, nesterov, adagrad, adam, rmsprop, rmsprop-centered, ftrl"
#define OPTIMIZER_CHOICES "sgd|momentum|nesterov|adagrad|adam|rmsprop|rmsprop-centered|ftrl"

#define PARTITIONS "fixed:N, axis-size:MAX_BYTES[:MAX_PARTS] or min-max:MAX_PARTS[:MIN_BYTES]"
#define PARTITION_CHOICES "none|fixed:|axis-size:|min-max:"

#define ROW_ALGORITHM                                                                              \
    ROW("algorithm", STRING, algorithm, .def = "ssgd", .choices = ALGORITHM_CHOICES,               \
        .arg = "NAME", .help = ALGORITHM_HELP),                                                    \
        ROW("profile", ENUM, profile, .def = "own", .choices = "own|guide|dist-keras|paper",       \
            .arg = "NAME",                                                                         \
            .help = "published variant: guide, dist-keras or paper; own: the algorithm's default")

#define ROWS_SHARED                                                                                \
    ROW("model", STRING, model, .def = "softmax", .choices = "softmax|mlp:|linear|toy",            \
        .arg = "NAME", .help = "softmax, mlp:H1,H2,..., linear, or toy (needs no data)"),          \
        ROW_DATA, ROW_LABEL, ROW_HEADER,                                                           \
        ROW("epochs", U64, epochs, .min = 1, .max = 1e9, .arg = "N",                               \
            .help = "passes over the training rows (5 where --steps is not given)"),               \
        ROW("steps", U64, steps, .min = 1, .max = 1e15, .arg = "N",                                \
            .help = "stop after so many steps"),                                                   \
        ROW("target-accuracy", DOUBLE, target_accuracy, .def = "0", .min = 0, .max = 1,            \
            .arg = "A", .help = "stop at the first epoch end with this test accuracy"),            \
        ROW("seed", U64, seed, .def = "1", .arg = "N", .help = "of shuffles and initial values"),  \
        ROW("batch", U64, batch, .def = "100", .min = 1, .max = 1 << 20, .arg = "B",               \
            .help = "rows a worker (a replica) and step"),                                         \
        ROW("replicas", U64, replicas, .def = "1", .min = 1, .max = REPLICAS_MAX, .arg = "K",      \
            .help = "threads on one copy of the values, each with a batch; one gradient a step"),  \
        ROW("overlap", FLAG, overlap,                                                              \
            .help = "send a gradient layer by layer while the rest of it is being computed, and "  \
                    "begin the next step with the first layer's values"),                          \
        ROW("lr", DOUBLE, lr, .def = "0", .min = 0, .max = 1e9, .arg = "RATE",                     \
            .help = "learning rate on psd, or of the worker where psd has none; 0: the "           \
                    "algorithm's own"),                                                            \
        ROW("lr-schedule", STRING, lr_schedule,                                                    \
            .choices = "constant|exponential:|inverse-time:|polynomial:|cosine:|piecewise:",       \
            .arg = "KIND:...",                                                                     \
            .help = "of the rate, by updates: exponential:rate=.9,steps=1000,staircase; "          \
                    "inverse-time:rate=,steps=; polynomial:steps=,end=,power=,cycle; "             \
                    "cosine:steps=,alpha=; piecewise:STEP=RATE,..."),                              \
        ROW("warmup", U64, warmup, .def = "0", .min = 0, .max = SCHEDULE_MAX_STEPS, .arg = "N",    \
            .help = "the rate grows linearly over the first N updates; 0: none"),                  \
        ROW("clip-value", DOUBLE, clip_value, .def = "0", .min = 0, .max = 1e30, .arg = "X",       \
            .help = "elements of the gradient that is applied are at most X; 0: any"),             \
        ROW("clip-norm", DOUBLE, clip_norm, .def = "0", .min = 0, .max = 1e30, .arg = "X",         \
            .help = "norm of a batch's gradient is at most X, by the worker; 0: any"),             \
        ROW("weight-decay", DOUBLE, weight_decay, .def = "0", .min = 0, .max = 1e6, .arg = "X",    \
            .help = "add X times the value to the gradient of weights, not of biases; 0: none"),   \
        ROW("local-lr", DOUBLE, local_lr, .def = "0", .min = 0, .max = 1e9, .arg = "RATE",         \
            .help = "rate of the steps within a window; 0: the algorithm's own"),                  \
        ROW("alpha", DOUBLE, alpha, .def = "0", .min = 0, .max = 1, .arg = "A",                    \
            .help = "elastic algorithms: how far a worker and the centre move to each other; 0: "  \
                    "the algorithm's own"),                                                        \
        ROW("momentum", DOUBLE, momentum, .def = "-1", .min = -1, .max = 1, .arg = "MU",           \
            .help = "eamsgd: its momentum; -1: the algorithm's own"),                              \
        ROW("lr-per-rank", CSV, lr_per_rank, .arg = "A,B,...",                                     \
            .help = "ssgd-diff-lr: the rate of each rank; default: its own rate / M for each"),    \
        ROW("local-optimizer", STRING, local_optimizer, .choices = OPTIMIZER_CHOICES,              \
            .arg = "NAME",                                                                         \
            .help = "of the steps within a window, instead of the algorithm's own: " OPTIMIZERS),  \
        ROW("server-optimizer", STRING, server_optimizer, .choices = OPTIMIZER_CHOICES,            \
            .arg = "NAME", .help = "on psd, instead of the algorithm's own: " OPTIMIZERS),         \
        ROW("window-reduction", ENUM, window_reduction, .def = "own", .choices = "own|mean|sum",   \
            .arg = "HOW",                                                                          \
            .help = "over the gradients of a window: mean, sum, or the algorithm's own"),          \
        ROW("window", U64, window, .def = "0", .min = 0, .max = 1e6, .arg = "T",                   \
            .help = "batches between two exchanges; 0: the algorithm's own"),                      \
        ROW("locking", ENUM, locking, .def = "own", .choices = "own|slice|variable|none",          \
            .arg = "WHAT", .help = "asynchronous: what an update excludes others from"),           \
        ROW("max-staleness", I64, max_staleness, .def = "-1", .min = -1, .max = 1e15, .arg = "N",  \
            .help = "asynchronous: refuse gradients more than N updates old; -1: none"),           \
        ROW("staleness-bound", I64, staleness_bound, .def = "3", .min = 0, .max = 1e12,            \
            .arg = "S", .help = "ssp: nobody is more than S steps ahead of the slowest"),          \
        ROW("wait-for-step", U64, wait_for_step, .def = "0", .min = 0, .max = 1e15, .arg = "N",    \
            .help = "asynchronous: begin when the job's global step is N"),                        \
        ROW("aggregate", U64, aggregate, .def = "0", .min = 0, .max = SETTINGS_MAX_WORKERS,        \
            .arg = "N",                                                                            \
            .help =                                                                                \
                "N gradients close a round, later ones are dropped; N above M: workers compute "   \
                "several; 0: all"),                                                                \
        ROW("reduce", ENUM, reduce, .def = "mean", .choices = "mean|count|sum", .arg = "HOW",      \
            .help = "over the gradients of a round: mean (by rows), count (by batches), sum"),     \
        ROW("place", CSV, place, .arg = "NAME=P,...",                                              \
            .help = "pin variables of the model to ps tasks, as in dense1/kernel=0"),              \
        ROW("placement", ENUM, placement, .def = "greedy", .choices = "greedy|round-robin",        \
            .arg = "HOW", .help = "the other variables: greedy (fewest bytes) or round-robin"),    \
        ROW("partition", STRING, partition, .choices = PARTITION_CHOICES, .arg = "HOW",            \
            .help = "cut variables into parts for the ps tasks: " PARTITIONS),                     \
        ROW("on-loss", ENUM, on_loss, .def = "shrink", .choices = "shrink|fail", .arg = "WHAT",    \
            .help = "a worker is lost: shrink (go on without it) or fail"),                        \
        ROW("lease", DURATION, lease_ms, .def = "10s", .min = 100, .max = 1e9, .arg = "TIME",      \
            .help = "a worker silent for so long is lost"),                                        \
        ROW("deterministic", FLAG, deterministic,                                                  \
            .help = "sum in rank order, with one BLAS thread: the same bits in every run"),        \
        ROW("round-timeout", DURATION, round_timeout_ms, .def = "0", .min = 0, .max = 1e12,        \
            .arg = "TIME", .help = "a round open for so long names who hangs, then --on-loss"),    \
        ROW("max-bad", U64, max_bad, .def = "10", .min = 1, .max = 1e9, .arg = "N",                \
            .help = "stop a worker after N refused pushes in a row")

const struct dt_option settings_train[] = {
    ROW("ps", CSV, ps, .arg = "EP[,EP...]", .help = "endpoints of the ps tasks, in order"),
    ROW("job", STRING, job, .arg = "NAME", .help = "the job; its first worker opens it"),
    ROW("rank", U64, rank, .def = "0", .min = 0, .max = SETTINGS_MAX_WORKERS - 1, .arg = "R",
        .help = "which worker this is"),
    ROW_WORKERS("1"),
    ROW_ALGORITHM,
    ROWS_SHARED,
    ROW("fresh", FLAG, fresh,
        .help = "replace a job of this name that is complete, failed, or without workers"),
    ROW_START_TIMEOUT("0"),
    ROW_RETRY_FOR("60s"),
    ROW_THREADS("of the BLAS library; 0: all processors (of --cpus), or 1 with several replicas"),
    ROW("cpus", CSV, cpus, .arg = "N[-M],...",
        .help = "compute on these processors of the allowed ones, as in 0,2-3; what talks to "
                "psd runs on any"),
    ROW("step-delay", U64, step_delay_ms, .def = "0", .min = 0, .max = 1e9, .arg = "MS",
        .help = "wait so many milliseconds in each step: imitates a slow machine"),
    ROW_SAVE(
        "write the final values as safetensors (dtworker eval reads them); asynchronous: waits "
        "for the others to end"),
    ROW_METRICS("write JSON lines while training"),
    ROW_RECORD,
    ROW_JSON,
    ROW_LOG,
    ROW("report-fd", I64, report_fd, .def = "-1", .min = -1, .max = 1 << 20, .arg = "FD",
        .help = "JSON lines and the final object go to this descriptor (set by run)"),
    ROW_HELP,
    ROW_END,
};

#define ROW_PS_TASKS                                                                               \
    ROW("ps-tasks", U64, ps_tasks, .def = "1", .min = 1, .max = 64, .arg = "P",                    \
        .help = "psd processes")
#define ROWS_CLUSTER                                                                               \
    ROW_START_TIMEOUT("60s"), ROW_RETRY_FOR("5s"),                                                 \
        ROW_THREADS("of the BLAS library in each worker; 0: processors / workers, or 1 with "      \
                    "several replicas"),                                                           \
        ROW("cpus", ENUM, cpus_of_run, .def = "own", .choices = "own|any", .arg = "WHICH",         \
            .help =                                                                                \
                "own: each worker computes on processors of its own, where there are as many as "  \
                "threads; any: wherever there is room"),                                           \
        ROW("step-delay", CSV, step_delays, .arg = "MS[,MS...]",                                   \
            .help = "wait in each step: one value for all ranks, or one a rank")

const struct dt_option settings_run[] = {
    ROW_PS_TASKS,
    ROW_WORKERS("2"),
    ROW_ALGORITHM,
    ROWS_SHARED,
    ROWS_CLUSTER,
    ROW_SAVE("rank 0 writes the job's final values as safetensors (dtworker eval reads them)"),
    ROW_METRICS("rank 0 writes JSON lines while training"),
    ROW_RECORD,
    ROW_JSON,
    ROW_LOG,
    ROW_HELP,
    ROW_END,
};

const struct dt_option settings_compare[] = {
    ROW("algorithms", CSV, algorithms, .def = "all", .arg = "A,B,...|all",
        .help = "which ones; local is always run, too, as the yardstick"),
    ROW("slow", STRING, slow, .arg = "RANK=MS",
        .help = "run each algorithm once more with this rank's --step-delay so long"),
    ROW("target", DOUBLE, target, .def = "0", .min = 0, .max = 1, .arg = "A",
        .help = "test accuracy whose time is measured; 0: 0.99 of what local reaches"),
    ROW("repeat", U64, repeat, .def = "1", .min = 1, .max = 1000, .arg = "N",
        .help = "runs of each algorithm: the one of median time is shown, and the spread"),
    ROW("plot", STRING, plot, .arg = "FILE",
        .help = "draw the loss against seconds and samples: FILE.svg or FILE.png, by gnuplot"),
    ROW_PS_TASKS,
    ROW_WORKERS("2"),
    ROWS_SHARED,
    ROWS_CLUSTER,
    ROW_JSON,
    ROW("log-level", ENUM, log_level, .def = "warning", .choices = "err|warning|notice|info|debug",
        .arg = "LEVEL", .help = "what goes to stderr: err, warning, notice, info, debug"),
    ROW_HELP,
    ROW_END,
};

const struct dt_option settings_eval[] = {
    ROW("model-file", STRING, model_file, .arg = "FILE", .help = "what train --save has written"),
    ROW_DATA,
    ROW_LABEL,
    ROW_HEADER,
    ROW_THREADS("of the BLAS library; 0: all processors"),
    ROW_JSON,
    ROW_LOG,
    ROW_HELP,
    ROW_END,
};

const struct dt_option settings_replay[] = {
    ROW_SAVE("write the final values of --rank as safetensors: those of the recorded run"),
    ROW("rank", U64, rank, .def = "0", .min = 0, .max = SETTINGS_MAX_WORKERS - 1, .arg = "R",
        .help = "whose final values --save writes"),
    ROW("data", STRING, data, .arg = "PATH",
        .help = "where the data of the recorded run are now; default: where they were"),
    ROW_JSON,
    ROW_LOG,
    ROW_HELP,
    ROW_END,
};

const struct dt_option settings_check[] = {ROW_LABEL, ROW_HEADER, ROW_LOG, ROW_HELP, ROW_END};

const struct algorithm *
settings_algorithm(const struct settings *s)
{
    return algorithm_find_profile(s->algorithm, s->profile > 0 ? 1u << (s->profile - 1) : 0);
}

unsigned
settings_count(char *const *list)
{
    unsigned n = 0;

    while (list && list[n])
        n++;
    return n;
}

unsigned
settings_n_ps(const struct settings *s)
{
    return settings_count(s->ps);
}

enum dt_log_level
settings_log_level(const struct settings *s)
{
    return (enum dt_log_level)(DT_LOG_ERR + s->log_level);
}

bool
settings_sums_rounds(const struct settings *s)
{
    const struct algorithm *a = settings_algorithm(s);

    return a->has_rank_rates || (algorithm_is_elastic(a) && a->consistency == CONSISTENCY_SYNC);
}

const char *
settings_reduce(const struct settings *s)
{
    static const char *const names[] = {"mean", "count", "sum"};

    return settings_sums_rounds(s) ? "sum" : names[s->reduce];
}

unsigned
settings_threads(const struct settings *s, unsigned all)
{
    if (s->threads > 0)
        return (unsigned)s->threads;
    return s->replicas > 1 || s->deterministic || all == 0 ? 1 : all;
}

const char *
settings_on_loss(const struct settings *s)
{
    static const char *const names[] = {"shrink", "fail"};

    return s->deterministic ? "fail" : names[s->on_loss];
}

const char *
settings_placement(const struct settings *s)
{
    static const char *const names[] = {"greedy", "round-robin"};

    return names[s->placement];
}

double
settings_lr(const struct settings *s)
{
    if (settings_algorithm(s)->has_rank_rates)
        return 1;
    return s->lr > 0 ? s->lr : settings_algorithm(s)->lr;
}

double
settings_local_lr(const struct settings *s)
{
    return s->local_lr > 0 ? s->local_lr : settings_algorithm(s)->local_lr;
}

double
settings_alpha(const struct settings *s)
{
    const struct algorithm *a = settings_algorithm(s);

    if (s->alpha > 0)
        return s->alpha;
    return a->alpha > 0 ? a->alpha : a->alpha_share / (double)s->workers;
}

double
settings_momentum(const struct settings *s)
{
    return s->momentum >= 0 ? s->momentum : settings_algorithm(s)->momentum;
}

uint32_t
settings_window(const struct settings *s)
{
    return s->window > 0 ? (uint32_t)s->window : settings_algorithm(s)->window;
}

enum dt_status
settings_step_delay(const struct settings *s, unsigned rank, uint64_t *ms, struct dt_error *err)
{
    unsigned n = settings_count(s->step_delays);

    *ms = 0;
    if (n == 0)
        return DT_OK;
    if (n != 1 && n != s->workers)
        return dt_fail(err, DT_E_USAGE,
                       "--step-delay has %u value%s for %llu worker%s: give one, or one a worker",
                       n, dt_plural(n), (unsigned long long)s->workers, dt_plural(s->workers));
    const char *text = s->step_delays[n == 1 ? 0 : rank];
    if (!dt_parse_u64(text, ms) || *ms > 1000000000)
        return dt_fail(err, DT_E_USAGE, "--step-delay %s: give whole milliseconds", text);
    return DT_OK;
}

uint32_t
settings_parts(const struct settings *s)
{
    return order_parts((uint32_t)s->aggregate, (uint32_t)s->workers) * (uint32_t)s->replicas;
}

void
settings_length(const struct settings *s, uint64_t rows, uint64_t *steps, uint64_t *steps_per_epoch)
{
    struct order o = {s->seed, rows, settings_parts(s), (uint32_t)s->batch};
    uint64_t per_epoch = order_steps_per_epoch(&o);

    if (per_epoch == 0) { /* no data: all steps are one epoch */
        *steps = s->steps > 0 ? s->steps : SETTINGS_TOY_STEPS;
        *steps_per_epoch = *steps;
        return;
    }
    uint64_t epochs = s->epochs > 0 ? s->epochs : SETTINGS_EPOCHS;
    *steps = epochs * per_epoch;
    if (s->steps > 0 && (s->epochs == 0 || s->steps < *steps))
        *steps = s->steps;
    *steps_per_epoch = per_epoch;
}
