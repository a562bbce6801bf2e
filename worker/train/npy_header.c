/*
 * npy_header.c - the header of an .npy file: a Python dictionary of three fixed keys.
 *
 * A strict reader of just that form, not of Python: keys in any order, each once. Threads: pure, any.
 */
#include <stdio.h>
#include <string.h>

#include "proto/base/parse.h"
#include "worker/train/npy.h"

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

struct cursor {
    const char *name; /* of the source */
    const char *p;
    struct npy_header *h;
    struct dt_error *err;
    unsigned has;
};

static enum dt_status
malformed(const struct cursor *c)
{
    return dt_fail(c->err, DT_E_DATA,
                   "%s: its header is no dictionary of descr, fortran_order and shape: save the "
                   "array by numpy.save",
                   c->name);
}

static void
skip(struct cursor *c)
{
    c->p += strspn(c->p, " \t\r\n");
}

static bool
take(struct cursor *c, const char *token)
{
    size_t n = strlen(token);

    skip(c);
    if (strncmp(c->p, token, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* 'text' or "text", of plain characters. */
static bool
take_string(struct cursor *c, char *out, size_t out_bytes)
{
    skip(c);
    char quote = *c->p;
    if (quote != '\'' && quote != '"')
        return false;
    const char *end = strchr(c->p + 1, quote);
    size_t n = end ? (size_t)(end - c->p - 1) : 0;
    if (!end || n >= out_bytes)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (c->p[1 + i] <= ' ' || c->p[1 + i] >= 0x7f || c->p[1 + i] == '\\')
            return false;
    }
    memcpy(out, c->p + 1, n);
    out[n] = '\0';
    c->p = end + 1;
    return true;
}

static enum dt_status
unread_type(const struct cursor *c, const char *type)
{
    if (type[0] == '|' && type[1] == 'O')
        return dt_fail(c->err, DT_E_DATA,
                       "%s: holds Python objects (a pickle), which are never read: save an array "
                       "of numbers",
                       c->name);
    if (type[0] == '>')
        return dt_fail(c->err, DT_E_DATA,
                       "%s: type %s is big-endian: save it as little-endian, such as <f4", c->name,
                       type);
    return dt_fail(c->err, DT_E_DATA,
                   "%s: type %s is not read, but <f4, <f8, <i4, <i8 and |u1 are: convert the array",
                   c->name, type);
}

static enum dt_status
take_type(struct cursor *c)
{
    static const struct {
        const char *name;
        enum npy_type type;
        uint32_t bytes;
    } types[] = {{"<f4", NPY_F4, 4}, {"<f8", NPY_F8, 8}, {"<i4", NPY_I4, 4},
                 {"<i8", NPY_I8, 8}, {"|u1", NPY_U1, 1}, {"<u1", NPY_U1, 1}};
    char type[24];

    skip(c);
    if (*c->p == '[')
        return dt_fail(c->err, DT_E_DATA,
                       "%s: holds structures: save one array of numbers for the features and one "
                       "for the labels",
                       c->name);
    if (!take_string(c, type, sizeof(type)))
        return malformed(c);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(type, types[i].name) == 0) {
            c->h->type = types[i].type;
            c->h->item_bytes = types[i].bytes;
            return DT_OK;
        }
    }
    return unread_type(c, type);
}

static enum dt_status
take_order(struct cursor *c)
{
    if (take(c, "False"))
        return DT_OK;
    if (!take(c, "True"))
        return malformed(c);
    return dt_fail(c->err, DT_E_DATA,
                   "%s: is in Fortran order: save it in C order (numpy.ascontiguousarray)",
                   c->name);
}

/* A number of the shape; Python 2 wrote some as "60000L". */
static bool
take_size(struct cursor *c, uint64_t *out)
{
    char text[24];

    skip(c);
    size_t n = strspn(c->p, "0123456789");
    if (n == 0 || n >= sizeof(text))
        return false;
    memcpy(text, c->p, n);
    text[n] = '\0';
    c->p += n + (c->p[n] == 'L');
    return dt_parse_u64(text, out);
}

/* "()", "(3,)", "(3, 4)" */
static enum dt_status
take_shape(struct cursor *c)
{
    struct npy_header *h = c->h;

    if (!take(c, "("))
        return malformed(c);
    while (!take(c, ")")) {
        if (h->n_dims == NPY_MAX_DIMS)
            return dt_fail(c->err, DT_E_DATA, "%s: has more than %d dimensions: reshape the array",
                           c->name, NPY_MAX_DIMS);
        if (!take_size(c, &h->dims[h->n_dims]))
            return dt_fail(c->err, DT_E_DATA,
                           "%s: size %u of its shape is no number below 2^64: the file is damaged, "
                           "get it again",
                           c->name, h->n_dims + 1);
        h->n_dims++;
        if (!take(c, ",") && *c->p != ')')
            return malformed(c);
    }
    return DT_OK;
}

static enum dt_status
take_item(struct cursor *c)
{
    static const struct {
        const char *key;
        unsigned bit;
        enum dt_status (*value)(struct cursor *c);
    } items[] = {{"descr", HAS_DESCR, take_type},
                 {"fortran_order", HAS_ORDER, take_order},
                 {"shape", HAS_SHAPE, take_shape}};
    char key[24];

    if (!take_string(c, key, sizeof(key)) || !take(c, ":"))
        return malformed(c);
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        if (strcmp(key, items[i].key) == 0 && !(c->has & items[i].bit)) {
            c->has |= items[i].bit;
            return items[i].value(c);
        }
    }
    return malformed(c);
}

enum dt_status
npy_parse_header(const char *name, const char *text, struct npy_header *h, struct dt_error *err)
{
    struct cursor c = {.name = name, .p = text, .h = h, .err = err};

    h->n_dims = 0;
    if (!take(&c, "{"))
        return malformed(&c);
    while (!take(&c, "}")) {
        enum dt_status s = take_item(&c);
        if (s != DT_OK)
            return s;
        if (!take(&c, ",") && *c.p != '}')
            return malformed(&c);
    }
    skip(&c);
    return *c.p == '\0' && c.has == HAS_ALL ? DT_OK : malformed(&c);
}
