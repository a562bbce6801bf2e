/*
 * psctl_set.c - the words of psctl set. psd judges the values. One thread.
 */
#include "worker/cli/psctl_set.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/parse.h"

static const struct {
    const char *word, *key; /* on the command line, on the wire */
} keys[] = {
    {"lr", "lr"}, {"max-staleness", "max_staleness"}, {"staleness-bound", "staleness_bound"}};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static enum dt_status
take_key(const char *text, size_t length, struct dt_admin_set *out, struct dt_error *err)
{
    size_t i;

    for (i = 0; i < N_KEYS; i++) {
        if (strlen(keys[i].word) == length && !memcmp(keys[i].word, text, length)) {
            snprintf(out->key, sizeof(out->key), "%s", keys[i].key);
            return DT_OK;
        }
    }
    return dt_fail(err, DT_E_USAGE, "set %.64s: use lr=RATE, max-staleness=N or staleness-bound=N",
                   text);
}

enum dt_status
set_parse(const char *text, const char *variable, int64_t at_step, struct dt_admin_set *out,
          struct dt_error *err)
{
    const char *equals = strchr(text, '=');

    memset(out, 0, sizeof(*out));
    if (!equals)
        return dt_fail(err, DT_E_USAGE,
                       "set %.64s: use lr=RATE, max-staleness=N or staleness-bound=N", text);
    if (take_key(text, (size_t)(equals - text), out, err) != DT_OK)
        return err->code;
    if (!dt_parse_double(equals + 1, &out->value))
        return dt_fail(err, DT_E_USAGE, "set %.64s: '%.64s' is no number", text, equals + 1);
    if (variable && (!variable[0] || strlen(variable) > DT_MAX_NAME))
        return dt_fail(err, DT_E_USAGE, "--variable: that is no name of a variable");
    if (variable)
        snprintf(out->variable, sizeof(out->variable), "%s", variable);
    out->step = at_step < 0 ? DT_NO_VERSION : (uint64_t)at_step;
    return DT_OK;
}
