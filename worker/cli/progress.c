/*
 * progress.c - progress lines. The rate is that of the whole job: the steps gone by times their rows.
 *
 * Threads: the loop's; progress_clear also from the library's background thread (its log lines).
 */
#include "worker/cli/progress.h"

#include <math.h>
#include <unistd.h>

#include "proto/base/clock.h"

#define PROGRESS_INTERVAL_MS 200

void
progress_init(struct progress *p, FILE *out, uint64_t rows_per_step, uint64_t steps,
              uint64_t steps_per_epoch)
{
    *p = (struct progress){
        .out = out,
        .live = isatty(fileno(out)),
        .rows_per_step = rows_per_step,
        .steps_per_epoch = steps_per_epoch,
        .epochs = (steps + steps_per_epoch - 1) / steps_per_epoch,
    };
}

void
progress_clear(struct progress *p)
{
    if (!p->live)
        return;
    flockfile(p->out);
    if (p->open) {
        fputs("\r\033[K", p->out);
        fflush(p->out);
    }
    p->open = false;
    funlockfile(p->out);
}

static void
put_line(const struct progress *p, const struct loop_point *point, uint64_t epoch)
{
    double done = (double)(point->step - p->first_step);
    double rate = point->seconds > 0 ? done / point->seconds : 0;

    fprintf(p->out, "epoch %llu/%llu  step %llu/%llu", (unsigned long long)epoch,
            (unsigned long long)p->epochs, (unsigned long long)point->step,
            (unsigned long long)point->steps);
    if (isfinite(point->loss))
        fprintf(p->out, "  loss %.4f", point->loss);
    if (isfinite(point->accuracy))
        fprintf(p->out, "  test accuracy %.4f", point->accuracy);
    if (rate > 0)
        fprintf(p->out, "  %.0f samples/s", rate * (double)p->rows_per_step);
    if (!point->epoch_end && rate > 0 && point->steps > point->step)
        fprintf(p->out, "  ETA %.0f s", ceil((double)(point->steps - point->step) / rate));
}

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void
epoch_line(struct progress *p, const struct loop_point *point)
{
    if (p->open)
        fputs("\r\033[K", p->out);
    put_line(p, point, least(point->epoch, p->epochs));
    fputc('\n', p->out);
    p->open = false;
}

static void
live_line(struct progress *p, const struct loop_point *point)
{
    fputc('\r', p->out);
    put_line(p, point, least(point->step / p->steps_per_epoch + 1, p->epochs));
    fputs("\033[K", p->out);
    p->open = true;
}

void
progress_point(struct progress *p, const struct loop_point *point)
{
    if (!p->started) /* the rate leaves out what was done before this worker came */
        p->first_step = point->step > 0 ? point->step - 1 : 0;
    p->started = true;
    int64_t now = dt_now_ms();
    if (!point->epoch_end && (!p->live || now < p->next_ms))
        return;
    p->next_ms = now + PROGRESS_INTERVAL_MS;
    flockfile(p->out);
    if (point->epoch_end)
        epoch_line(p, point);
    else
        live_line(p, point);
    fflush(p->out);
    funlockfile(p->out);
}
