/*
 * setting.c - a list of changes by step. The shard's thread.
 */
#include "psd/store/setting.h"

#include <stdlib.h>
#include <string.h>

void
setting_deinit(struct setting *s)
{
    free(s->changes);
    memset(s, 0, sizeof(*s));
}

/* Room for one more. */
static bool
reserve(struct setting *s)
{
    uint32_t room = s->room ? 2 * s->room : 4;
    struct setting_change *more;

    if (s->n == SETTING_MAX) {
        s->n--;
        memmove(s->changes, s->changes + 1, s->n * sizeof(*s->changes));
    }
    if (s->n < s->room)
        return true;
    more = realloc(s->changes, room * sizeof(*more));
    if (!more)
        return false;
    s->changes = more;
    s->room = room;
    return true;
}

bool
setting_add(struct setting *s, uint64_t from, double value)
{
    uint32_t at;

    for (at = 0; at < s->n; at++) {
        if (s->changes[at].from == from) {
            s->changes[at].value = value;
            return true;
        }
    }
    if (!reserve(s))
        return false;
    for (at = s->n++; at > 0 && s->changes[at - 1].from > from; at--)
        s->changes[at] = s->changes[at - 1];
    s->changes[at] = (struct setting_change){from, value};
    return true;
}

bool
setting_is_full(const struct setting *s, uint64_t step)
{
    return s->n == SETTING_MAX && s->changes[1].from > step;
}

bool
setting_at(const struct setting *s, uint64_t step, double *value)
{
    uint32_t at = s->n;

    while (at > 0 && s->changes[at - 1].from > step)
        at--;
    if (at > 0)
        *value = s->changes[at - 1].value;
    return at > 0;
}
