/*
 * daemon.c - start, serve, stop. Main thread.
 *
 * Invariants: everything is bound before the first thread runs, and READY is told after that; the
 * stop takes things down in an order in which nothing is used after it is gone: threads, sockets,
 * context (libzmq's callbacks end here), shards (0 last), mailboxes, descriptors.
 */
#include "psd/daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/descriptors.h"
#include "psd/daemon/accept.h"
#include "psd/daemon/cpu.h"
#include "psd/daemon/listen.h"
#include "psd/daemon/notify.h"
#include "psd/daemon/reload.h"
#include "psd/daemon/shard_thread.h"
#include "psd/daemon/signals.h"
#include "psd/daemon/watchdog.h"

#define MAILBOX_SLOTS 1024
#define ONCE_SUSPEND_MS 60000
#define STOP_WAIT_MS 2000 /* acknowledgements of GOODBYE */
#define LINGER_MS 1000    /* last replies */
#define STATUS_MS 5000
#define DESCRIPTORS_MS 1000
#define CHECK_MS 10000 /* shards are checked so often without a watchdog */
#define IDLE_MS 250
#define EXIT_TEMPORARY 75
/* Upper bounds of what is open before the first connection; some connections more. */
#define DESCRIPTORS_BASE 20
#define DESCRIPTORS_IO_THREAD 2
#define DESCRIPTORS_SHARD 4
#define DESCRIPTORS_LISTENER 2 /* of one shard: the socket, and the lock of an ipc one */
#define DESCRIPTORS_CONNECTIONS 8

struct daemon {
    const struct config *config; /* borrowed: as it was at the start */
    struct config live;          /* what SIGHUP may have changed; strings and lists are config's */
    int argc;
    char **argv;
    struct dt_context *context;
    struct listen_set sockets;
    struct serve_config serve_config;
    struct serve_shared *shared;
    struct mailboxes *mailboxes;
    struct shard_thread *threads; /* owned array of n_threads */
    uint32_t n_threads;
    struct shard_report report;
    struct cpu cpu;
    struct notify notify;
    struct watchdog watchdog;
    int64_t next_status_ms, next_check_ms, next_descriptors_ms;
    bool no_descriptors;
    uint64_t turned_away;
    int signal_fd;
    bool stopped_by_signal;
};

static enum dt_status
out_of_memory(struct dt_error *err)
{
    return dt_fail(err, DT_E_NO_MEMORY, "start: memory or descriptors are short");
}

static void
warn_insecure(const struct daemon *d)
{
    uint32_t i;

    for (i = 0; d->config->listen[i]; i++) {
        if (!dt_endpoint_is_local(d->config->listen[i]))
            dt_log(DT_LOG_WARNING,
                   "--insecure: %s has no keys: whoever reaches it can read and change every job",
                   d->config->listen[i]);
    }
}

static void
fill_serve_config(struct daemon *d)
{
    const struct config *c = d->config;

    d->serve_config = (struct serve_config){
        .n_shards = (uint32_t)c->shards,
        .window = (uint32_t)c->window,
        .window_bytes = c->window_bytes,
        .max_session_bytes = c->max_session_bytes,
        .memory_quota = c->memory_quota,
        .together_bytes = c->together_bytes,
        .once = c->once,
        .once_suspend_ms = ONCE_SUSPEND_MS,
        .listeners = d->sockets.listeners,
        .n_listeners = d->sockets.n_listeners,
        .stage_clock = dt_now_ns,
        .stage_sample = STAGES_SAMPLE,
        .write_cpu = cpu_write,
        .cpu = &d->cpu,
    };
}

/* The watchdog wants to see turns in each of its intervals, also of an idle shard. */
static int
idle_ms(const struct daemon *d)
{
    int64_t ms = d->notify.watchdog_ms > 0 ? d->notify.watchdog_ms / 8 : IDLE_MS;

    return ms > IDLE_MS ? IDLE_MS : ms < 1 ? 1 : (int)ms;
}

static bool
create_thread(struct daemon *d, uint32_t index)
{
    struct shard_thread *t = &d->threads[index];

    if (!shard_thread_init(t, d->shared, index))
        return false;
    memcpy(t->routers, d->sockets.routers[index], sizeof(t->routers));
    t->mailboxes = d->mailboxes;
    t->report = index == 0 ? &d->report : NULL;
    t->idle_ms = idle_ms(d);
    return true;
}

static enum dt_status
create_shards(struct daemon *d, struct dt_error *err)
{
    uint32_t i, n = (uint32_t)d->config->shards;

    fill_serve_config(d);
    cpu_init(&d->cpu, dt_now_ms());
    d->shared = serve_shared_create(&d->serve_config);
    d->mailboxes = mailboxes_create(n, MAILBOX_SLOTS);
    d->threads = calloc(n, sizeof(*d->threads));
    if (!d->shared || !d->mailboxes || !d->threads)
        return out_of_memory(err);
    d->n_threads = n;
    for (i = 0; i < n; i++)
        d->threads[i].wake_fd = -1;
    for (i = 0; i < n; i++) {
        if (!create_thread(d, i))
            return out_of_memory(err);
    }
    return DT_OK;
}

/* A psd that is short of them from the start would turn away every worker. */
static enum dt_status
require_descriptors(const struct daemon *d, struct dt_error *err)
{
    const struct config *c = d->config;
    unsigned n_listeners = 0, n;

    while (c->listen[n_listeners])
        n_listeners++;
    n = DESCRIPTORS_BASE + DESCRIPTORS_IO_THREAD * (unsigned)c->io_threads +
        DESCRIPTORS_CONNECTIONS +
        (unsigned)c->shards * (DESCRIPTORS_SHARD + DESCRIPTORS_LISTENER * n_listeners);
    return dt_descriptors_check(n, "psd", err);
}

static enum dt_status
start(struct daemon *d, struct dt_error *err)
{
    enum dt_status s = require_descriptors(d, err);
    uint32_t i;

    if (s != DT_OK)
        return s;
    accept_reserve();
    d->signal_fd = signals_open();
    d->report.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    d->report.watch_once = d->config->once;
    if (d->signal_fd < 0 || d->report.fd < 0)
        return out_of_memory(err);
    d->context = dt_context_create(true, (int)d->config->io_threads, err);
    if (!d->context)
        return err->code;
    s = listen_open(&d->sockets, d->context, d->config, err);
    if (s == DT_OK)
        s = create_shards(d, err);
    for (i = 0; i < d->n_threads && s == DT_OK; i++)
        s = shard_thread_start(&d->threads[i], err);
    return s;
}

static void
log_start(const struct daemon *d)
{
    char endpoints[1024];
    size_t used = 0;
    uint32_t i;

    endpoints[0] = 0;
    for (i = 0; i < d->sockets.n_listeners && used < sizeof(endpoints); i++)
        used += (size_t)snprintf(endpoints + used, sizeof(endpoints) - used, "%s%s", i ? " " : "",
                                 d->sockets.listeners[i].endpoint);
    dt_log(DT_LOG_INFO,
           "psd " PSD_VERSION " listens on %s: %u shard%s, admin %s, incarnation %016llx",
           endpoints, d->n_threads, d->n_threads == 1 ? "" : "s",
           d->sockets.admin[0] ? d->sockets.admin : "none",
           (unsigned long long)serve_incarnation(d->shared));
}

/* New limits for the shards. Their lines are logged at the old level or the new, whichever shows more. */
static void
adopt(struct daemon *d, struct config *fresh)
{
    const struct config *live = &d->live;
    struct reload_count n;

    if (config_log_level(fresh) > config_log_level(live))
        dt_log_set_level(config_log_level(fresh));
    n = reload_adopt(&d->live, fresh, d->config->window);
    dt_log(DT_LOG_NOTICE, "configuration read again: changed %u, to be changed by a restart %u",
           n.changed, n.refused);
    dt_log_set_level(config_log_level(live));
    serve_set_limits(d->shared,
                     &(struct serve_limits){(uint32_t)live->window, live->window_bytes,
                                            live->max_session_bytes, live->memory_quota});
}

/* SIGHUP: the file is read again; what is marked DT_OPT_RELOAD takes effect. */
static void
reload(struct daemon *d)
{
    struct dt_error err = {0};
    struct config fresh;

    notify_reloading(&d->notify);
    if (config_load(&fresh, d->argc, d->argv, &err) == DT_OK) {
        adopt(d, &fresh);
    } else {
        dt_log(DT_LOG_ERR, "configuration not read again, the old one stays: %s", err.text);
    }
    config_deinit(&fresh);
    notify_ready(&d->notify);
}

static void
check_shards(struct daemon *d)
{
    bool all = true;
    uint32_t i;

    for (i = 0; i < d->n_threads; i++)
        all &= watchdog_check(&d->watchdog, i, atomic_load(&d->threads[i].turns));
    if (all && d->notify.watchdog_ms > 0)
        notify_watchdog(&d->notify);
}

static void
tell_status(struct daemon *d, int64_t now)
{
    char summary[SHARD_SUMMARY_BYTES];

    pthread_mutex_lock(&d->report.lock);
    memcpy(summary, d->report.summary, sizeof(summary));
    pthread_mutex_unlock(&d->report.lock);
    if (summary[0])
        notify_status(&d->notify, summary, now);
}

/* We try whether a descriptor is to be had: what was turned away before is no longer so then. */
static void
check_descriptors(struct daemon *d)
{
    int fd = fcntl(d->signal_fd, F_DUPFD_CLOEXEC, 0);
    uint64_t n = accept_turned_away() - d->turned_away;
    bool none = fd < 0 && (errno == EMFILE || errno == ENFILE);

    if (fd >= 0)
        close(fd);
    none |= !accept_reserve();
    if (none && !d->no_descriptors)
        dt_log(DT_LOG_ERR, "no file descriptor is left: new connections are closed at once, those "
                           "that are here go on; raise the limit of open files (LimitNOFILE=)");
    else if (!none && d->no_descriptors)
        dt_log(DT_LOG_NOTICE, "file descriptors are to be had again; %llu connection%s turned away",
               (unsigned long long)n, n == 1 ? " was" : "s were");
    if (!none)
        d->turned_away = accept_turned_away();
    d->no_descriptors = none;
}

static void
do_what_is_due(struct daemon *d, int64_t now)
{
    if (now >= d->next_descriptors_ms) {
        d->next_descriptors_ms = now + DESCRIPTORS_MS;
        check_descriptors(d);
    }
    if (now >= d->next_check_ms) {
        d->next_check_ms = now + (d->notify.watchdog_ms > 0 ? d->notify.watchdog_ms / 2 : CHECK_MS);
        check_shards(d);
    }
    if (d->notify.enabled && now >= d->next_status_ms) {
        d->next_status_ms = now + STATUS_MS;
        tell_status(d, now);
    }
}

/* Sleep until a signal, a report of shard 0 or the next thing that is due. */
static void
await_event(struct daemon *d)
{
    struct pollfd fds[2] = {{.fd = d->signal_fd, .events = POLLIN},
                            {.fd = d->report.fd, .events = POLLIN}};
    int64_t due =
        d->next_descriptors_ms < d->next_check_ms ? d->next_descriptors_ms : d->next_check_ms;
    uint64_t count;

    if (d->notify.enabled && d->next_status_ms < due)
        due = d->next_status_ms;
    poll(fds, 2, dt_poll_timeout(dt_now_ms(), due));
    (void)!read(d->report.fd, &count, sizeof(count));
}

/* Returns true when it is time to stop; *code is then the exit code. */
static bool
must_stop(struct daemon *d, int *code)
{
    int number;

    while ((number = signals_read(d->signal_fd)) == SIGHUP)
        reload(d);
    *code = 0;
    if (number) {
        d->stopped_by_signal = true;
        dt_log(DT_LOG_INFO, "%s: stopping", number == SIGINT ? "SIGINT" : "SIGTERM");
        return true;
    }
    if (atomic_load(&d->report.shutdown)) {
        dt_log(DT_LOG_INFO, "psctl shutdown: stopping");
        return true;
    }
    if (atomic_load(&d->report.once) == ONCE_COMPLETE) {
        dt_log(DT_LOG_INFO, "--once: all jobs are complete: stopping");
        return true;
    }
    if (atomic_load(&d->report.once) == ONCE_SUSPENDED) {
        dt_log(DT_LOG_WARNING, "--once: no worker is left and not all jobs are complete: stopping");
        *code = EXIT_TEMPORARY;
        return true;
    }
    return false;
}

static int
serve(struct daemon *d)
{
    int code;

    log_start(d);
    warn_insecure(d);
    notify_ready(&d->notify);
    d->next_check_ms =
        dt_now_ms() + (d->notify.watchdog_ms > 0 ? d->notify.watchdog_ms / 2 : CHECK_MS);
    while (!must_stop(d, &code)) {
        do_what_is_due(d, dt_now_ms());
        await_event(d);
    }
    notify_stopping(&d->notify, d->live.stop_timeout_ms);
    return code;
}

/* Also takes down a start that failed half way. */
static void
stop(struct daemon *d)
{
    int64_t timeout = d->live.stop_timeout_ms;
    uint32_t i;

    signals_begin_stop(timeout, d->stopped_by_signal);
    for (i = 0; i < d->n_threads; i++) {
        if (d->threads[i].started)
            shard_thread_stop(&d->threads[i],
                              timeout / 2 < STOP_WAIT_MS ? timeout / 2 : STOP_WAIT_MS);
    }
    for (i = 0; i < d->n_threads; i++)
        shard_thread_join(&d->threads[i]);
    listen_close(&d->sockets, timeout / 4 < LINGER_MS ? (int)(timeout / 4) : LINGER_MS);
    dt_context_destroy(d->context);
}

static void
release(struct daemon *d)
{
    uint32_t i;

    for (i = d->n_threads; i > 0; i--)
        shard_thread_destroy_shard(&d->threads[i - 1]);
    mailboxes_destroy(d->mailboxes);
    serve_shared_destroy(d->shared);
    for (i = 0; i < d->n_threads; i++)
        shard_thread_deinit(&d->threads[i]);
    free(d->threads);
    accept_release();
    if (d->report.fd >= 0)
        close(d->report.fd);
    if (d->signal_fd >= 0)
        close(d->signal_fd);
    pthread_mutex_destroy(&d->report.lock);
}

int
daemon_run(const struct config *config, int argc, char **argv)
{
    struct daemon d = {.config = config,
                       .live = *config,
                       .argc = argc,
                       .argv = argv,
                       .signal_fd = -1,
                       .report.fd = -1};
    struct dt_error err = {0};
    enum dt_status s;
    int code;

    pthread_mutex_init(&d.report.lock, NULL);
    notify_open(&d.notify);
    s = start(&d, &err);
    if (s == DT_OK) {
        code = serve(&d);
    } else {
        dt_log(DT_LOG_ERR, "%s", err.text);
        code = dt_status_exit_code(s);
    }
    stop(&d);
    release(&d);
    if (s == DT_OK)
        dt_log(DT_LOG_INFO, "stopped");
    return code;
}
