/*
 * compare.h - the same training by several algorithms: what dtworker compare holds.
 *
 * Thread rule: the main thread alone.
 */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include <stdbool.h>
#include <stdio.h>

#include "worker/cli/curve.h"
#include "worker/cli/report.h"
#include "worker/cli/settings.h"

#define COMPARE_TARGET_SHARE 0.99 /* of local's accuracy, without --target */
#define COMPARE_MAX 32            /* algorithms */

struct compare_run { /* one training */
    bool done;       /* it came to its end, all is known */
    int code;        /* exit code: 0, or of what went wrong */
    struct report report;
    json_t *workers; /* owned; what each of them did */
    struct curve curve;
    double fast_seconds; /* when the last of the workers but the slow one had ended */
};

struct compare_entry { /* one algorithm */
    const struct algorithm *algorithm;
    struct compare_run even;      /* of --repeat runs the one of median time */
    struct compare_run slowed;    /* --slow */
    unsigned n_runs;              /* of `even` that came to their end */
    double least_loss, most_loss; /* over them: of the training rows, at the end */
};

struct compare {
    const struct settings *s;
    unsigned slow_rank;
    uint64_t slow_ms;
    unsigned n_entries;
    struct compare_entry entries[COMPARE_MAX]; /* [0]: local */
    double target; /* of accuracy; NAN: the model has none, or local failed */
    int code;      /* of the first run that failed */
};

/* What is compared. DT_E_USAGE, also when one of the algorithms refuses an option. */
enum dt_status compare_init(struct compare *c, const struct settings *s, struct dt_error *err);
void compare_deinit(struct compare *c);

/* Does the model have one? */
bool compare_has_accuracy(const struct compare *c);

/* Run all, one after the other, and print their rows as they come (text; --json: nothing). False: a signal came.
 * Blocks until then; what went wrong in a run is in its code and has been said. */
bool compare_all(struct compare *c, FILE *text);

/* Is it one of ranks that are not slow? The last end of those, NAN without. */
double compare_fast_seconds(const json_t *workers, unsigned slow_rank);
/* How much longer the fast workers take beside a slow one: 1 is not at all. NAN: not known. */
double compare_growth(const struct compare_entry *e);

/* compare_table.c: rows of Markdown. */
void compare_table_head(const struct compare *c, FILE *out);
void compare_table_row(const struct compare *c, const struct compare_entry *e, FILE *out);
void compare_slow_head(const struct compare *c, FILE *out);
void compare_slow_row(const struct compare *c, const struct compare_entry *e, FILE *out);

/* compare_advice.c: which one to choose. */
enum { ADVICE_REPRODUCIBLE, ADVICE_FAST, ADVICE_TOLERANT, ADVICE_N };
struct advice {
    const char *question;
    const struct compare_entry *answer; /* NULL: none; `why` says why */
    char why[256];
};
void compare_advise(const struct compare *c, struct advice out[ADVICE_N]);

/* compare_json.c: the one object of --json. DT_E_IO. */
enum dt_status compare_write_json(const struct compare *c, FILE *out, struct dt_error *err);

#endif
