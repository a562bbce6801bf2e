/*
 * pool.c - threads that wait for the next run.
 *
 * Invariants: `run` counts the runs begun; a thread does each of them once, since the caller waits for `busy` to
 * become 0 before it begins another. All fields but `threads` are guarded by `lock`.
 * Threads: the caller's, which is index 0, and n - 1 of its own.
 */
#include "worker/train/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pool_thread {
    struct pool *pool;
    unsigned index;
    pthread_t id;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t begin; /* `run` or `end` has changed */
    pthread_cond_t done;  /* `busy` is 0 */
    pool_fn *fn;
    void *arg;
    uint64_t run;
    unsigned busy; /* threads that are not done with this run */
    bool end;
    unsigned n_started;
    unsigned n_threads;
    struct pool_thread threads[];
};

static void *
thread_main(void *arg)
{
    const struct pool_thread *t = arg;
    struct pool *p = t->pool;
    uint64_t seen = 0;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->run == seen && !p->end)
            pthread_cond_wait(&p->begin, &p->lock);
        if (p->end)
            break;
        seen = p->run;
        pthread_mutex_unlock(&p->lock);
        p->fn(p->arg, t->index);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0)
            pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int
start_thread(struct pool *p, unsigned i)
{
    struct pool_thread *t = &p->threads[i];
    char name[16];

    t->pool = p;
    t->index = i + 1;
    int why = pthread_create(&t->id, NULL, thread_main, t);
    if (why != 0)
        return why;
    snprintf(name, sizeof(name), "replica %u", t->index);
    pthread_setname_np(t->id, name);
    p->n_started++;
    return 0;
}

/* They inherit the mask of signals. */
static int
start_threads(struct pool *p)
{
    sigset_t all, before;
    int why = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; why == 0 && i < p->n_threads; i++)
        why = start_thread(p, i);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why;
}

enum dt_status
pool_create(unsigned n, struct pool **out, struct dt_error *err)
{
    struct pool *p = calloc(1, sizeof(*p) + (n - 1) * sizeof(p->threads[0]));

    *out = NULL;
    if (!p)
        return dt_fail(err, DT_E_NO_MEMORY, "threads of the replicas: memory is short");
    p->n_threads = n - 1;
    pthread_mutex_init(&p->lock, NULL); /* these three cannot fail in glibc */
    pthread_cond_init(&p->begin, NULL);
    pthread_cond_init(&p->done, NULL);
    int why = start_threads(p);
    if (why != 0) {
        unsigned started = p->n_started;
        pool_destroy(p);
        return dt_fail(err, DT_E_INTERNAL, "thread %u of %u for the replicas: %s: use fewer",
                       started + 1, n - 1, strerror(why));
    }
    *out = p;
    return DT_OK;
}

void
pool_destroy(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->end = true;
    pthread_cond_broadcast(&p->begin);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_started; i++)
        pthread_join(p->threads[i].id, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->begin);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void
pool_run(struct pool *p, pool_fn *fn, void *arg)
{
    pthread_mutex_lock(&p->lock);
    p->fn = fn;
    p->arg = arg;
    p->busy = p->n_threads;
    p->run++;
    pthread_cond_broadcast(&p->begin);
    pthread_mutex_unlock(&p->lock);
    fn(arg, 0);
    pthread_mutex_lock(&p->lock);
    while (p->busy > 0)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
