/*
 * reload.c - compares two configurations by the option table. Main thread.
 *
 * Invariant: an option that is text or a list is never marked DT_OPT_RELOAD; a field changes only with a
 * line in the log that says from what to what.
 */
#include "psd/daemon/reload.h"

#include <stdlib.h>
#include <string.h>

static void
limit_window(struct config *fresh, uint64_t most)
{
    if (fresh->window <= most)
        return;
    dt_log(DT_LOG_WARNING,
           "reload: window = %llu needs a restart, the sockets were made for %llu: %llu until then",
           (unsigned long long)fresh->window, (unsigned long long)most, (unsigned long long)most);
    fresh->window = most;
}

/* Given nowhere, a value may differ all the same: it was made from another option's. */
static bool
is_derived(const struct dt_option *row, const struct config *live, const struct config *fresh)
{
    return !(row->scope & DT_OPT_RELOAD) && !dt_options_given(config_table, live, row->name) &&
           !dt_options_given(config_table, fresh, row->name);
}

static void
adopt_option(const struct dt_option *row, struct config *live, const struct config *fresh,
             struct reload_count *count)
{
    char *old = dt_option_text(row, live), *text = dt_option_text(row, fresh);

    if (!old || !text || strcmp(old, text) == 0) {
        /* nothing to do */
    } else if (row->scope & DT_OPT_RELOAD) {
        dt_log(DT_LOG_NOTICE, "reload: %s (it was: %s)", text, old);
        dt_option_copy(row, live, fresh);
        count->changed++;
    } else {
        dt_log(DT_LOG_WARNING, "reload: %s needs a restart (until then: %s)", text, old);
        count->refused++;
    }
    free(old);
    free(text);
}

struct reload_count
reload_adopt(struct config *live, struct config *fresh, uint64_t most_window)
{
    struct reload_count count = {0, fresh->window > most_window};
    const struct dt_option *row;

    limit_window(fresh, most_window);
    for (row = config_table; row->name; row++) {
        if ((row->scope & DT_OPT_FILE) && !is_derived(row, live, fresh))
            adopt_option(row, live, fresh, &count);
    }
    return count;
}
