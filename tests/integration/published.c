/* published.c - pseudo-code as published; see published.h. */
#include "published.h"

struct server {
    double c;
    unsigned updates; /* starts at 1, as in dist-keras */
    unsigned n, n_max;
    double *out;
};

struct worker {
    double w, w1; /* w1: at the last exchange */
    double v;     /* of momentum */
    double sum;   /* of gradients */
    unsigned u;   /* updates at the last pull */
};

typedef void iteration_fn(struct server *s, struct worker *k, const struct trace *t, double target,
                          unsigned it);

static double
g(double w, double target)
{
    return w - target;
}

static void
commit(struct server *s, double d)
{
    s->c += d;
    s->updates++;
    if (s->n < s->n_max)
        s->out[s->n++] = s->c;
}

static void
pull(struct server *s, struct worker *k)
{
    k->w = k->w1 = s->c;
    k->u = s->updates;
}

static void
run(iteration_fn *iteration, const struct trace *t, unsigned n, double *centre)
{
    struct server s = {.updates = 1, .n_max = n, .out = centre};
    struct worker k[2] = {{.u = 1}, {.u = 1}};

    for (unsigned it = 1; s.n < n; it++) {
        for (unsigned i = 0; i < 2; i++)
            iteration(&s, &k[i], t, t->targets[i], it);
    }
}

static void
downpour(struct server *s, struct worker *k, const struct trace *t, double target, unsigned it)
{
    if (it % t->window == 0) {
        commit(s, k->w - k->w1);
        pull(s, k);
    }
    k->w -= t->lr * g(k->w, target);
}

static void
guide_downpour(struct server *s, struct worker *k, const struct trace *t, double target,
               unsigned it)
{
    k->sum += g(k->w, target);
    k->w -= t->lr * g(k->w, target);
    if (it % t->window == 0) {
        commit(s, -t->lr * k->sum);
        k->sum = 0;
        pull(s, k);
    }
}

static void
adag(struct server *s, struct worker *k, const struct trace *t, double target, unsigned it)
{
    k->w -= t->lr * g(k->w, target);
    if (it % t->window == 0) {
        commit(s, (k->w - k->w1) / t->window);
        pull(s, k);
    }
}

static void
dynsgd(struct server *s, struct worker *k, const struct trace *t, double target, unsigned it)
{
    k->w -= t->lr * g(k->w, target);
    if (it % t->window == 0) {
        commit(s, (k->w - k->w1) / ((s->updates - k->u) + 1));
        pull(s, k);
    }
}

static void
aeasgd(struct server *s, struct worker *k, const struct trace *t, double target, unsigned it)
{
    if (it % t->window == 0) {
        double e = t->alpha * (k->w - s->c);

        k->w -= e;
        commit(s, e);
    }
    k->w -= t->lr * g(k->w, target);
}

static void
dist_keras_eamsgd(struct server *s, struct worker *k, const struct trace *t, double target,
                  unsigned it)
{
    double ahead, change;

    if (it % t->window == 0) {
        double e = t->alpha * (k->w - s->c);

        k->w -= e;
        commit(s, e);
    }
    ahead = k->w + t->mu * k->v;
    change = -t->lr * g(ahead, target); /* of a training step there */
    k->v = t->mu * k->v - t->lr * change;
    k->w -= k->v;
}

static void
easgd(struct server *s, struct worker *k, const struct trace *t, double target, unsigned it)
{
    double x = k->w;

    if ((it - 1) % t->window == 0) {
        double c = s->c;

        k->w -= t->alpha * (x - c);
        commit(s, t->alpha * (x - c));
    }
    k->w -= t->lr * g(x, target);
}

static void
eamsgd(struct server *s, struct worker *k, const struct trace *t, double target, unsigned it)
{
    double x = k->w;

    if ((it - 1) % t->window == 0) {
        double c = s->c;

        k->w -= t->alpha * (x - c);
        commit(s, t->alpha * (x - c));
    }
    k->v = t->mu * k->v - t->lr * g(x + t->mu * k->v, target);
    k->w += k->v;
}

#define PUBLISHED(name)                                                                            \
    void published_##name(const struct trace *t, unsigned n, double *centre)                       \
    {                                                                                              \
        run(name, t, n, centre);                                                                   \
    }
PUBLISHED(downpour)
PUBLISHED(guide_downpour)
PUBLISHED(adag)
PUBLISHED(dynsgd)
PUBLISHED(aeasgd)
PUBLISHED(dist_keras_eamsgd)
PUBLISHED(easgd)
PUBLISHED(eamsgd)

/* x_i += -lr*g_i - alpha*(x_i - c); c += alpha * sum_i (x_i - c), both from the old values. */
void
published_easgd_rounds(const struct trace *t, unsigned n, double *centre)
{
    double x[2] = {0, 0}, c = 0;

    for (unsigned it = 0, k = 0; k < n; it++) {
        double pulls[2] = {x[0] - c, x[1] - c};
        int meets = it % t->window == 0;

        for (unsigned i = 0; i < 2; i++)
            x[i] += -t->lr * g(x[i], t->targets[i]) - (meets ? t->alpha * pulls[i] : 0);
        if (meets)
            centre[k++] = c += t->alpha * (pulls[0] + pulls[1]);
    }
}
