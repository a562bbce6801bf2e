/*
 * state.c - a slice as a rule sees it.
 */
#include "state.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static float *
filled(size_t n, float start)
{
    float *x = malloc((n ? n : 1) * sizeof(*x));
    size_t i;

    if (!x)
        abort();
    for (i = 0; i < n; i++)
        x[i] = start;
    return x;
}

struct state
state_create(const char *rule, const struct optimizer_param *params, const float *w, size_t n)
{
    struct state s = {.n = n, .w = filled(n, 0)};
    struct dt_error err;
    unsigned n_params = 0, i;

    while (n_params < STATE_MAX_PARAMS && params[n_params].name)
        n_params++;
    cr_assert_eq(optimizer_init(&s.optimizer, rule, params, n_params, &err), DT_OK, "%s", err.text);
    memcpy(s.w, w, n * sizeof(*w));
    for (i = 0; i < optimizer_n_slots(&s.optimizer); i++)
        s.slots[i] = filled(optimizer_slot_elements(&s.optimizer, i, n),
                            optimizer_slot_start(&s.optimizer, i));
    return s;
}

void
state_destroy(struct state *s)
{
    unsigned i;

    free(s->w);
    for (i = 0; i < OPTIMIZER_MAX_SLOTS; i++)
        free(s->slots[i]);
}

void
state_apply(struct state *s, const void *g)
{
    optimizer_apply(&s->optimizer, s->w, s->w, s->slots, g, s->n, 0);
}

void
state_expect_equal(const struct state *a, const struct state *b, const char *rule)
{
    unsigned i;

    cr_assert_arr_eq(a->w, b->w, a->n * sizeof(float), "%s, n = %zu", rule, a->n);
    for (i = 0; i < optimizer_n_slots(&a->optimizer); i++)
        cr_assert_arr_eq(a->slots[i], b->slots[i],
                         optimizer_slot_elements(&a->optimizer, i, a->n) * sizeof(float),
                         "%s, slot %u", rule, i);
}
