/*
 * client.c - open, close, interrupt, and what every call begins and ends with. Any thread.
 */
#include "worker/lib/client.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "proto/base/allocation.h"
#include "proto/base/clock.h"
#include "proto/base/descriptors.h"
#include "proto/base/random.h"
#include "worker/lib/handle.h"
#include "worker/lib/options.h"

#define MESSAGE_BYTES (1u << 20) /* at most: applied while it is warm in cache, several in flight */

/* A child of fork inherits clients that it may not use. Counting is cheaper than getpid in every call. */
static atomic_uint forks;
static pthread_once_t count_forks_once = PTHREAD_ONCE_INIT;
static bool counts_forks;

static void
count_fork(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void
count_forks(void)
{
    counts_forks = !pthread_atfork(NULL, NULL, count_fork);
}

static bool
is_forked(const struct dtw_client *client)
{
    return client->forks != atomic_load_explicit(&forks, memory_order_relaxed);
}

enum dtw_status
client_enter_forked_only(struct dtw_client *client, struct dtw_error *err)
{
    if (!client)
        return client_error(err, DTW_INVALID, "no client");
    if (is_forked(client))
        return client_error(err, DTW_FORKED, "the client belongs to process %ld",
                            (long)client->pid);
    pthread_mutex_lock(&client->driver.lock);
    return DTW_OK;
}

enum dtw_status
client_enter(struct dtw_client *client, struct dtw_error *err)
{
    enum dtw_status status = client_enter_forked_only(client, err);

    if (status != DTW_OK)
        return status;
    if (client->left)
        status =
            client_error(err, DTW_CLOSED, "rank %u has left job %s", client->rank, client->job);
    else if (client->fatal.code != DTW_OK)
        status = client_error(err, client->fatal.code, "%s", client->fatal.text);
    if (status != DTW_OK)
        client_exit(client);
    return status;
}

void
client_exit(struct dtw_client *client)
{
    pthread_mutex_unlock(&client->driver.lock);
}

bool
client_is_task_ready(const struct task *t)
{
    uint32_t i;

    for (i = 0; i < t->n_shards; i++) {
        if (!client_uses_shard(t->client, i, t->n_shards))
            continue;
        if (!t->shards[i] || t->shards[i]->state != CONNECTION_READY)
            return false;
    }
    return t->n_shards > 0;
}

void
client_update_ready(struct dtw_client *client)
{
    bool ready = true;
    uint32_t i;

    for (i = 0; i < client->n_tasks; i++)
        ready = client_is_task_ready(&client->tasks[i]) && ready;
    if (ready && !client->ready)
        driver_news(&client->driver);
    client->ready = ready;
}

static const struct task *
find_gave_up(const struct dtw_client *client)
{
    uint32_t i;

    for (i = 0; i < client->n_tasks; i++) {
        if (client->tasks[i].gave_up)
            return &client->tasks[i];
    }
    return NULL;
}

enum dtw_status
client_check_answers(const struct dtw_client *client, struct dtw_error *err)
{
    const struct task *t = find_gave_up(client);

    return t ? client_error(err, t->trouble.code, "%s", t->trouble.text) : DTW_OK;
}

enum dtw_status
client_check_usable(const struct dtw_client *client, struct dtw_error *err)
{
    if (client->fatal.code != DTW_OK)
        return client_error(err, client->fatal.code, "%s", client->fatal.text);
    if (client->lost)
        return client_error(err, DTW_LOST, "rank %u lost its place in job %s: join again",
                            client->rank, client->job);
    return client_check_answers(client, err);
}

static bool
is_ready_or_over(const struct dtw_client *client, const void *arg)
{
    (void)arg;
    return client->ready || client->fatal.code != DTW_OK || find_gave_up(client);
}

enum dtw_status
client_wait_ready(struct dtw_client *client, struct dtw_error *err)
{
    if (driver_wait(client, is_ready_or_over, NULL, DT_FOREVER, true) == WAIT_INTERRUPTED)
        return client_error(err, DTW_INTERRUPTED, "interrupted");
    if (client->fatal.code != DTW_OK)
        return client_error(err, client->fatal.code, "%s", client->fatal.text);
    return client_check_answers(client, err);
}

static enum dtw_status
create_connections(struct dtw_client *client, struct dtw_error *err)
{
    int64_t now = dt_now_ms();
    struct dt_error why;
    uint32_t i;

    client->context = dt_context_create(false, 1, &why);
    if (!client->context)
        return client_error(err, client_status(why.code), "%s", why.text);
    for (i = 0; i < client->n_tasks; i++) {
        struct task *t = &client->tasks[i];

        t->heard_ms = now;
        t->shards[0] = connection_create(t, 0, t->endpoint);
        if (!t->shards[0])
            return client_error(err, DTW_NO_MEMORY, "short of memory");
    }
    return DTW_OK;
}

static enum dtw_status
start(struct dtw_client *client, const struct dtw_options *options, struct dtw_error *err)
{
    enum dtw_status status = options_apply(options, client, err);

    if (status != DTW_OK)
        return status;
    if (!declare_init(&client->declared, client->n_tasks))
        return client_error(err, DTW_NO_MEMORY, "short of memory");
    status = create_connections(client, err);
    if (status != DTW_OK)
        return status;
    if (!driver_start(client))
        return client_error(err, DTW_NO_MEMORY, "no thread could be started");
    pthread_mutex_lock(&client->driver.lock);
    status = client_wait_ready(client, err);
    pthread_mutex_unlock(&client->driver.lock);
    return status;
}

static struct dtw_client *
create(void)
{
    struct dtw_client *client = calloc(1, sizeof(*client));

    if (!client)
        return NULL;
    client->pid = getpid();
    client->forks = atomic_load_explicit(&forks, memory_order_relaxed);
    client->stop_fd = -1;
    client->last_pushed = DT_NO_VERSION;
    atomic_init(&client->stop_step, UINT64_MAX);
    client->message_bytes = MESSAGE_BYTES;
    dt_random_bytes(client->uuid, sizeof(client->uuid));
    if (gethostname(client->host, sizeof(client->host) - 1))
        snprintf(client->host, sizeof(client->host), "?");
    if (!driver_init(&client->driver)) {
        free(client);
        return NULL;
    }
    return client;
}

enum dtw_status
dtw_open(const struct dtw_options *options, struct dtw_client **client, struct dtw_error *err)
{
    enum dtw_status status;
    struct dt_error why;

    if (!client)
        return client_error(err, DTW_INVALID, "client: a place to put it is needed");
    *client = NULL;
    if (dt_descriptors_check(1, "the client", &why) != DT_OK)
        return client_error(err, client_status(why.code), "%s", why.text);
    pthread_once(&count_forks_once, count_forks);
    if (counts_forks)
        *client = create();
    if (!*client)
        return client_error(err, DTW_NO_MEMORY, "short of memory");
    status = start(*client, options, err);
    if (status != DTW_OK) {
        dtw_close(*client);
        *client = NULL;
    }
    return status;
}

/* The sockets first: then libzmq lets go of all frames, and the context's end waits for that. */
static void
destroy_transport(struct dtw_client *client)
{
    uint32_t t, s;

    for (t = 0; client->tasks && t < client->n_tasks; t++) {
        for (s = 0; s < DT_MAX_SHARDS; s++)
            connection_destroy(client->tasks[t].shards[s]);
    }
    if (client->context)
        dt_context_destroy(client->context);
}

void
dtw_close(struct dtw_client *client)
{
    struct dtw_handle *h, *next;

    if (!client || is_forked(client))
        return;
    driver_stop(&client->driver);
    destroy_transport(client);
    DL_FOREACH_SAFE(client->handles, h, next)
    {
        DL_DELETE(client->handles, h);
        handle_destroy(h);
    }
    driver_deinit(&client->driver);
    declare_deinit(&client->declared);
    dt_buffer_deinit(&client->params_body);
    free(client->tasks);
    free(client);
}

void
dtw_interrupt(struct dtw_client *client)
{
    uint64_t one = 1;

    if (!client)
        return;
    atomic_store(&client->interrupted, true);
    if (write(client->driver.wake_fd, &one, sizeof(one)) < 0)
        return; /* the counter is full: readable anyway */
}

void
dtw_interrupt_clear(struct dtw_client *client)
{
    if (client)
        atomic_store(&client->interrupted, false);
}

uint64_t
dtw_worker_step(const struct dtw_client *client)
{
    return client ? atomic_load_explicit(&client->worker_step, memory_order_relaxed) : 0;
}

uint64_t
dtw_global_step(const struct dtw_client *client)
{
    return client ? atomic_load_explicit(&client->global_step, memory_order_relaxed) : 0;
}

float *
dtw_alloc(uint64_t n)
{
    return n == 0 || n > SIZE_MAX / sizeof(float) / 2 ? NULL : dt_huge_alloc(n * sizeof(float));
}

bool
dtw_tune_allocation(void)
{
    return dt_allocation_keep();
}

void
dtw_free(float *buffer, uint64_t n)
{
    if (buffer)
        dt_huge_free(buffer, n * sizeof(float));
}
