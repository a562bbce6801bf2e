/*
 * config_file.c - reads the INI file with libinih into the option table. Main thread.
 *
 * libinih truncates long lines and goes on after errors; our reader function counts the lines and
 * makes a truncated one fatal, so that every error has its file:line and nothing is half read.
 */
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "psd/daemon/config.h"

#define SECTION "psd"
#define MAX_KEYS 64

struct ini_source {
    struct config *config;
    const char *path;
    FILE *file;
    unsigned line;
    char *keys[MAX_KEYS]; /* owned: seen so far */
    unsigned n_keys;
    enum dt_status status; /* the first error; later ones do not count */
    struct dt_error error;
};

static void
check_section(struct ini_source *src, const char *line)
{
    const char *p = line + strspn(line, " \t");
    size_t len;

    if (*p != '[')
        return;
    len = strcspn(p + 1, "]\r\n");
    if (p[1 + len] != ']')
        src->status = dt_fail(&src->error, DT_E_CONFIG, "%s:%u: the section's ']' is missing",
                              src->path, src->line);
    else if (len != strlen(SECTION) || memcmp(p + 1, SECTION, len) != 0)
        src->status = dt_fail(&src->error, DT_E_CONFIG,
                              "%s:%u: unknown section [%.*s]; did you mean [" SECTION "]?",
                              src->path, src->line, (int)len, p + 1);
}

/* fgets for libinih. */
static char *
read_line(char *str, int num, void *stream)
{
    struct ini_source *src = stream;
    size_t len;

    if (src->status != DT_OK || !fgets(str, num, src->file))
        return NULL;
    src->line++;
    len = strlen(str);
    if (len == (size_t)num - 1 && str[len - 1] != '\n' && !feof(src->file)) {
        src->status =
            dt_fail(&src->error, DT_E_CONFIG, "%s:%u: the line has more than %d characters",
                    src->path, src->line, num - 3);
        return NULL;
    }
    check_section(src, str);
    return src->status == DT_OK ? str : NULL;
}

/* Lists may be given several times, every other key once. */
static bool
is_repeated(struct ini_source *src, const char *name)
{
    unsigned i;

    if (strcmp(name, "listen") == 0)
        return false;
    for (i = 0; i < src->n_keys; i++) {
        if (strcmp(src->keys[i], name) == 0)
            return true;
    }
    if (src->n_keys < MAX_KEYS && (src->keys[src->n_keys] = strdup(name)))
        src->n_keys++;
    return false;
}

static int
take_key(void *user, const char *section, const char *name, const char *value)
{
    struct ini_source *src = user;
    char where[300];

    (void)section; /* check_section has seen it */
    if (src->status != DT_OK)
        return 0;
    if (is_repeated(src, name)) {
        src->status = dt_fail(&src->error, DT_E_CONFIG,
                              "%s:%u: %s is set twice (or the line is "
                              "indented and continues it)",
                              src->path, src->line, name);
        return 0;
    }
    snprintf(where, sizeof(where), "%s:%u", src->path, src->line);
    if (dt_options_set(config_table, DT_OPT_FILE, src->config, name, value, where, &src->error) !=
        DT_OK)
        src->status = src->error.code = DT_E_CONFIG;
    return src->status == DT_OK;
}

static void
finish(struct ini_source *src, int code)
{
    if (src->status == DT_OK && ferror(src->file))
        src->status = dt_fail(&src->error, DT_E_CONFIG, "%s: %s", src->path, strerror(errno));
    if (src->status == DT_OK && code > 0)
        src->status = dt_fail(&src->error, DT_E_CONFIG, "%s:%d: not a line of the form key = value",
                              src->path, code);
    if (src->status == DT_OK && code < 0)
        src->status = dt_fail(&src->error, DT_E_NO_MEMORY, "%s: out of memory", src->path);
}

enum dt_status
config_read_file(struct config *c, const char *path, struct dt_error *err)
{
    struct ini_source src = {.config = c, .path = path, .status = DT_OK};

    src.file = fopen(path, "re");
    if (!src.file)
        return dt_fail(err, DT_E_CONFIG, "%s: cannot be read: %s", path, strerror(errno));
    finish(&src, ini_parse_stream(read_line, &src, take_key, &src));
    fclose(src.file);
    while (src.n_keys > 0)
        free(src.keys[--src.n_keys]);
    return src.status == DT_OK ? DT_OK : dt_fail(err, src.status, "%s", src.error.text);
}
