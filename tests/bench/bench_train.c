/*
 * bench_train.c - how many samples a second does a training make: alone, in synchronous rounds (ssgd) and in
 * asynchronous updates (hogwild) with 1, 2, 4 workers, by model and batch, one BLAS thread each? And where does the
 * workers' time go?
 *
 * Each row is a dtworker process (run: with a psd and workers of its own over ipc) on made data as large as small
 * images; its rate leaves out the start. Checked: all end with 0, the loss at the end is finite and below the one of
 * guessing, every batch was counted and no row was missed. Yardsticks in the same run: the matrix products of the
 * model alone in one thread, and two trainings side by side that know nothing of each other. --only NAME: a model, a
 * model and its batch (mlp:128/64), or an algorithm (local, ssgd, hogwild).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "dtworker.h"

enum {
    SIDE = 28,
    FEATURES = SIDE * SIDE,
    CLASSES = 10,
    ROWS_STEP = 1024,  /* of the largest global batch: every batch is full */
    MOST_ROWS = 20480, /* 64 MB as floats: more than a cache holds */
    FIRST_STEPS = 40,  /* of the run that says how many are needed */
};

struct network {
    const char *name;
    unsigned n_layers;
    int width[3];
};

static const struct network models[] = {{"softmax", 1, {FEATURES, CLASSES}},
                                        {"mlp:128", 2, {FEATURES, 128, CLASSES}},
                                        {"mlp:1024", 2, {FEATURES, 1024, CLASSES}}};
static char directory[BENCH_DIRECTORY]; /* the data, and what dtworkers say */

static void
remove_data(void)
{
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
    char path[128];

    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
        unlink(path);
    }
    bench_directory_remove(directory);
}

static FILE *
create(const char *name)
{
    char path[128];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    out = fopen(path, "wb");
    if (!out)
        bench_fail("%s cannot be made", path);
    return out;
}

static void
put_u32(uint32_t v, FILE *out)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        putc((int)(v >> shift & 255), out);
}

/* A tenth of an image is the class's own and bright, the rest is noise. */
static void
put_image(uint32_t *state, unsigned class, FILE *out)
{
    for (unsigned i = 0; i < FEATURES; i++) {
        *state = *state * 1664525 + 1013904223;
        putc((int)(*state >> 25) + (i % CLASSES == class ? 96 : 0), out);
    }
}

static void
make_data(uint32_t n_rows)
{
    uint32_t state = 1;
    FILE *images, *labels;

    bench_directory(directory);
    images = create("train-images-idx3-ubyte");
    labels = create("train-labels-idx1-ubyte");
    put_u32(0x803, images);
    put_u32(n_rows, images);
    put_u32(SIDE, images);
    put_u32(SIDE, images);
    put_u32(0x801, labels);
    put_u32(n_rows, labels);
    for (uint32_t i = 0; i < n_rows; i++) {
        put_image(&state, i % CLASSES, images);
        putc((int)(i % CLASSES), labels);
    }
    if (fclose(images) | fclose(labels))
        bench_fail("the data could not be written");
}

struct training { /* one row */
    const struct network *model;
    int batch;
    const char *algorithm; /* and an option after a space */
    unsigned workers;
    uint64_t steps;
};

static void
start(struct bench_dtworker *d, const struct training *t, unsigned index)
{
    bool alone = !strcmp(t->algorithm, "local");
    const char *option = strchr(t->algorithm, ' ');
    char algorithm[32], steps[32], batch[32], workers[32];

    snprintf(algorithm, sizeof(algorithm), "%.*s", (int)strcspn(t->algorithm, " "), t->algorithm);
    snprintf(steps, sizeof(steps), "%llu", (unsigned long long)t->steps);
    snprintf(batch, sizeof(batch), "%d", t->batch);
    snprintf(workers, sizeof(workers), "%u", t->workers);
    bench_dtworker_start(d, directory, index, alone ? "train" : "run", "--algorithm", algorithm,
                         "--workers", workers, "--model", t->model->name, "--data", directory,
                         "--batch", batch, "--steps", steps, "--epochs", "1000000000", "--threads",
                         "1", "--lr", "0.01", "--json", option ? option + 1 : NULL, NULL);
}

static double
number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static void
check(const struct training *t, const json_t *o)
{
    bool is_async = !strcmp(t->algorithm, "hogwild"), alone = !strcmp(t->algorithm, "local");
    double batches = (double)t->steps * t->workers;
    double loss = json_is_number(json_object_get(o, "train_loss")) ? number(o, "train_loss")
                                                                   : (double)INFINITY;

    if (!(loss < log(CLASSES) + 0.1))
        bench_fail("%s, %s: the loss is %g", t->algorithm, t->model->name, loss);
    if (number(o, "steps") != (double)t->steps || number(o, "samples") != batches * t->batch ||
        number(o, "unseen_rows") != 0 || number(o, "stale_dropped") != 0)
        bench_fail("%s, %s: %g steps, %g samples, %g rows missed, %g gradients dropped instead of "
                   "%llu, %g, 0, 0",
                   t->algorithm, t->model->name, number(o, "steps"), number(o, "samples"),
                   number(o, "unseen_rows"), number(o, "stale_dropped"),
                   (unsigned long long)t->steps, batches * t->batch);
    if (!alone && number(o, "rounds") != (is_async ? batches : (double)t->steps))
        bench_fail("%s, %s: psd counted %g", t->algorithm, t->model->name, number(o, "rounds"));
}

/* `n` of them side by side: their object; *rate: of all together. */
static json_t *
run(const struct training *t, unsigned n, double *rate)
{
    struct bench_dtworker d[2];
    json_t *o = NULL;

    *rate = 0;
    for (unsigned i = 0; i < n; i++)
        start(&d[i], t, i);
    for (unsigned i = 0; i < n; i++) {
        json_decref(o);
        o = bench_dtworker_end(&d[i]);
        check(t, o);
        *rate += number(o, "samples_per_second");
    }
    return o;
}

struct yardsticks { /* samples a second */
    double bare, two;
};

static void
put_row(struct bench *b, const struct training *t, const json_t *o, const struct yardsticks *y,
        double rate)
{
    const json_t *time = json_object_get(o, "time");

    bench_row(b,
              json_pack("{s:s, s:i, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "model",
                        t->model->name, "batch", t->batch, "algorithm", t->algorithm, "workers",
                        (int)t->workers, "samples/s", rate, "to bare", rate / y->bare, "to 2 local",
                        rate / y->two, "compute %", 100 * number(time, "compute"), "push %",
                        100 * number(time, "push"), "wait %", 100 * number(time, "wait")));
}

/* As many as take about b->seconds at `rate`. */
static uint64_t
steps_for(const struct bench *b, double rate, const struct training *t)
{
    double n = rate * b->seconds / t->batch / t->workers;

    return n > FIRST_STEPS ? (uint64_t)n : FIRST_STEPS;
}

static void
run_row(struct bench *b, struct training *t, const struct yardsticks *y, double guess)
{
    double rate;
    json_t *o;

    t->steps = steps_for(b, guess, t);
    o = run(t, 1, &rate);
    put_row(b, t, o, y, rate);
    json_decref(o);
}

static bool
wants(const struct bench *b, const struct training *t, const char *algorithm)
{
    char name[32];

    snprintf(name, sizeof(name), "%s/%d", t->model->name, t->batch);
    return bench_wants(b, t->model->name) || bench_wants(b, name) || bench_wants(b, algorithm);
}

/* The yardsticks and the rate of one `local` are measured for all of them. */
static void
run_batch(struct bench *b, const struct network *m, int batch)
{
    static const char *const algorithms[] = {"local", "ssgd", "ssgd --overlap", "hogwild"};
    enum { N = sizeof(algorithms) / sizeof(algorithms[0]) };
    struct training t = {m, batch, "local", 1, FIRST_STEPS};
    struct yardsticks y;
    double rate;
    bool any = false;

    for (unsigned i = 0; i < N; i++)
        any = wants(b, &t, algorithms[i]) || any;
    if (!any)
        return;
    y.bare = yardstick_products(m->width, m->n_layers, batch, b->seconds);
    json_decref(run(&t, 1, &rate));
    t.steps = steps_for(b, rate, &t);
    json_decref(run(&t, 2, &y.two));
    for (unsigned i = 0; i < N; i++) {
        t.algorithm = algorithms[i];
        for (t.workers = 1; t.workers <= (i == 0 ? 1 : 4) && wants(b, &t, t.algorithm);
             t.workers *= 2)
            run_row(b, &t, &y, rate);
    }
}

int
main(int argc, char **argv)
{
    static const int batches[] = {64, 256};
    struct bench b;
    uint64_t rows;

    bench_init(&b, BENCH_SECONDS | BENCH_MAX_MIB | BENCH_ONLY, argc, argv);
    rows = b.max_mib * UINT64_C(1048576) / (FEATURES * sizeof(float)) / ROWS_STEP * ROWS_STEP;
    make_data((uint32_t)(rows < ROWS_STEP ? ROWS_STEP : rows > MOST_ROWS ? MOST_ROWS : rows));
    for (unsigned i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        for (unsigned k = 0; k < 2; k++)
            run_batch(&b, &models[i], batches[k]);
    }
    remove_data();
    bench_finish(&b);
    return 0;
}
