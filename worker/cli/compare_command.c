/*
 * compare_command.c - dtworker compare: from the options to table, plot and advice. Threads: main alone.
 */
#include "worker/cli/command.h"
#include "worker/cli/compare.h"
#include "worker/cli/plot.h"
#include "worker/cli/stop.h"

static void
put_advice(const struct compare *c, FILE *out)
{
    struct advice advice[ADVICE_N];

    compare_advise(c, advice);
    fputs("\n", out);
    for (unsigned i = 0; i < ADVICE_N; i++)
        fprintf(out, "%-32s %s: %s\n", advice[i].question,
                advice[i].answer ? advice[i].answer->algorithm->name : "-", advice[i].why);
    fflush(out);
}

static enum dt_status
draw(const struct compare *c, struct dt_error *err)
{
    struct plot_line lines[COMPARE_MAX];
    char title[160];
    unsigned n = 0;

    for (unsigned i = 0; i < c->n_entries; i++) {
        const struct compare_entry *e = &c->entries[i];
        const struct compare_run *r = e->slowed.done ? &e->slowed : &e->even;
        if (r->done)
            lines[n++] = (struct plot_line){e->algorithm->name, &r->curve};
    }
    int len = snprintf(title, sizeof(title), "%.64s, %llu workers", c->s->model,
                       (unsigned long long)c->s->workers);
    if (c->s->slow)
        snprintf(title + len, sizeof(title) - (size_t)len, ", rank %u waits %llu ms a step",
                 c->slow_rank, (unsigned long long)c->slow_ms);
    return n > 0 ? plot_write(c->s->plot, title, lines, n, err) : DT_OK;
}

static int
finish(const struct compare *c)
{
    struct dt_error err = {DT_OK, ""};
    enum dt_status r = DT_OK;
    int code = c->code;

    if (c->s->json)
        r = compare_write_json(c, stdout, &err);
    else
        put_advice(c, stdout);
    if (r != DT_OK)
        code = command_fail(r, &err);
    r = c->s->plot ? draw(c, &err) : DT_OK;
    return r != DT_OK && !stop_signal() ? command_fail(r, &err) : code;
}

int
compare_command(struct settings *s, char **positional)
{
    struct dt_error err = {DT_OK, ""};
    struct compare c;
    bool done = false;
    int code = 0;

    (void)positional;
    enum dt_status r = compare_init(&c, s, &err);
    if (r == DT_OK && s->plot)
        r = plot_check(s->plot, &err);
    if (r == DT_OK)
        r = stop_open(&err);
    if (r == DT_OK)
        done = compare_all(&c, s->json ? NULL : stdout);
    if (done)
        code = finish(&c);
    compare_deinit(&c);
    if (r != DT_OK)
        return command_fail(r, &err);
    return done && !stop_signal() ? code : stop_raise();
}
