/*
 * cluster_argv.c - what psd and the workers of a private cluster are started with. Threads: main alone.
 */
#include "worker/cli/cluster_argv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/cli/affinity.h"

void
cluster_argv_add(struct cluster_argv *a, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        text = NULL;
    if (!text || a->n >= CLUSTER_MAX_ARGV) {
        a->failed = true;
        free(text);
        return;
    }
    a->v[a->n++] = text;
}

/* Only one process tells the user what it does, unless more was asked for. */
static const char *
log_level(const struct settings *s, bool talks)
{
    static const char *const names[] = {"err", "warning", "notice", "info", "debug"};

    if (talks || dt_options_given(settings_run, s, "log-level"))
        return names[s->log_level];
    return "warning";
}

bool
cluster_argv_psd(struct cluster_argv *a, const struct cluster *c, unsigned index)
{
    cluster_argv_add(a, "psd");
    cluster_argv_add(a, "--listen=ipc://%s/ps%u.sock", c->directory.path, index);
    cluster_argv_add(a, "--private-dir=%s", c->directory.path);
    cluster_argv_add(a, "--once");
    cluster_argv_add(a, "--log-level=%s", log_level(c->s, false));
    return !a->failed;
}

static void
add_ps(struct cluster_argv *a, const struct cluster *c)
{
    struct dt_buffer list = {0};

    for (unsigned i = 0; i < c->n_ps; i++)
        dt_buffer_printf(&list, "%sipc://%s/ps%u.sock", i ? "," : "", c->directory.path, i);
    cluster_argv_add(a, "--ps=%s", dt_buffer_str(&list));
    cluster_argv_add(a, "--job=%s", CLUSTER_JOB);
    a->failed |= list.failed;
    dt_buffer_deinit(&list);
}

static unsigned long long
threads_of(const struct settings *s)
{
    return settings_threads(s, (unsigned)processors() / (unsigned)s->workers);
}

/* --cpus own */
static void
add_cpus(struct cluster_argv *a, const struct cluster *c, unsigned rank)
{
    unsigned each = (unsigned)threads_of(c->s) * (unsigned)c->s->replicas;
    cpu_set_t allowed = affinity_allowed();
    char text[512];

    if (affinity_share(&allowed, rank, c->n_workers, each, text, sizeof(text)))
        cluster_argv_add(a, "--cpus=%s", text);
}

bool
cluster_argv_worker(struct cluster_argv *a, const struct cluster *c, unsigned rank, int report_fd)
{
    const struct settings *s = c->s;
    uint64_t delay = 0;

    settings_step_delay(s, rank, &delay, NULL);
    cluster_argv_add(a, "dtworker");
    cluster_argv_add(a, "train");
    if (c->n_ps > 0)
        add_ps(a, c);
    cluster_argv_add(a, "--rank=%u", rank);
    cluster_argv_add(a, "--workers=%u", c->n_workers);
    cluster_argv_add(a, "--threads=%llu", threads_of(s));
    if (s->cpus_of_run == CPUS_OWN)
        add_cpus(a, c, rank);
    cluster_argv_add(a, "--step-delay=%llu", (unsigned long long)delay);
    cluster_argv_add(a, "--report-fd=%d", report_fd);
    cluster_argv_add(a, "--log-level=%s", log_level(s, rank == 0));
    if (rank == 0 && s->save)
        cluster_argv_add(a, "--save=%s", s->save);
    if (rank == 0 && s->metrics)
        cluster_argv_add(a, "--metrics=%s", s->metrics);
    if (!settings_forward(s, c->n_ps > 0 ? &settings_run_to_train : &settings_run_to_local, a->v,
                          &a->n, CLUSTER_MAX_ARGV))
        a->failed = true;
    return !a->failed;
}

void
cluster_argv_deinit(struct cluster_argv *a)
{
    for (unsigned i = 0; i < a->n; i++)
        free(a->v[i]);
    a->n = 0;
}
