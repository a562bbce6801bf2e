/*
 * near.c - see near.h: the edit distance with swaps (optimal string alignment). Pure; any thread.
 */
#include "proto/base/near.h"

#include <string.h>

static size_t
min3(size_t a, size_t b, size_t c)
{
    if (b < a)
        a = b;
    return c < a ? c : a;
}

/* Letters to add, drop, change or swap until a is b (both shorter than DT_NEAR_NAME). */
static size_t
edit_distance(const char *a, const char *b)
{
    size_t rows[3][DT_NEAR_NAME + 1], n = strlen(b), i, k;
    size_t *before = rows[0], *last = rows[1], *now = rows[2], *spare;

    for (k = 0; k <= n; k++)
        last[k] = k;
    for (i = 1; a[i - 1]; i++) {
        now[0] = i;
        for (k = 1; k <= n; k++) {
            now[k] = min3(last[k] + 1, now[k - 1] + 1, last[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                before[k - 2] + 1 < now[k])
                now[k] = before[k - 2] + 1;
        }
        spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[n];
}

void
dt_near_init(struct dt_near *n, const char *name)
{
    size_t len = strlen(name);

    *n = (struct dt_near){.name = name, .len = len, .distance = len < 3 ? 1 : 1 + len / 3};
}

bool
dt_near_offer(struct dt_near *n, const char *known)
{
    size_t distance;

    if (n->len == 0 || n->len >= DT_NEAR_NAME || strlen(known) >= DT_NEAR_NAME)
        return false;
    distance = edit_distance(n->name, known);
    if (n->len >= 3 && strncmp(n->name, known, n->len) == 0)
        distance = 0; /* an abbreviation */
    if (distance > n->distance || (distance == n->distance && (n->found || n->len < 3)))
        return false;
    n->distance = distance;
    n->found = true;
    return true;
}
