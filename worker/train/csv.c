/*
 * csv.c - see csv.h. Line 1 settles the number of columns, whether there is a header, and which
 * column is the label; then rows are added one by one.
 *
 * Invariant: memory grows with the rows that arrive. Threads: any; nothing is shared.
 */
#include "worker/train/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

#include "proto/base/parse.h"
#include "worker/train/column.h"
#include "worker/train/csv_line.h"

#define FAST_DIGITS 7 /* whole numbers below 2^24 are exact in float32 */

struct table {
    struct csv_reader r;
    const struct dataset_options *options;
    struct csv_info *info;
    uint32_t n_columns;
    uint32_t label; /* from 0 */
    char **names;   /* owned; n_columns; NULL without a header */
    struct floats x;
    struct labels labels;
    uint64_t n_rows;
};

static void
table_deinit(struct table *t)
{
    for (uint32_t i = 0; t->names && i < t->n_columns; i++)
        free(t->names[i]);
    free(t->names);
    floats_deinit(&t->x);
    labels_deinit(&t->labels);
    csv_close(&t->r);
}

/* Short whole numbers by hand: most cells of image data. */
static bool
cell_number(const struct csv_cell *c, float *v)
{
    int32_t x = 0;
    size_t i;

    if (c->len > FAST_DIGITS)
        return dt_parse_float_n(c->text, c->len, v);
    for (i = 0; i < c->len && c->text[i] >= '0' && c->text[i] <= '9'; i++)
        x = x * 10 + (c->text[i] - '0');
    if (i == 0 || i < c->len)
        return dt_parse_float_n(c->text, c->len, v);
    *v = (float)x;
    return true;
}

static bool
cell_is(const struct csv_cell *c, const char *word)
{
    return c->len == strlen(word) && strncasecmp(c->text, word, c->len) == 0;
}

/* nan, inf, infinity with or without a sign; a decimal number that is too large. */
static bool
cell_not_finite(const struct csv_cell *c)
{
    size_t sign = c->len > 0 && (c->text[0] == '-' || c->text[0] == '+');
    struct csv_cell word = {c->text + sign, c->len - sign};

    return cell_is(&word, "nan") || cell_is(&word, "inf") || cell_is(&word, "infinity");
}

static size_t
digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* A decimal number: what dt_parse_float_n refuses then can only be too large. */
static bool
cell_too_large(const struct csv_cell *c)
{
    char text[64] = "";

    if (c->len >= sizeof(text))
        return false;
    memcpy(text, c->text, c->len);
    const char *p = text + (text[0] == '-' || text[0] == '+');
    size_t n = digits(p);
    p += n;
    if (*p == '.') {
        size_t fraction = digits(++p);
        n += fraction;
        p += fraction;
    }
    if (*p == 'e' || *p == 'E') {
        p += 1 + (p[1] == '-' || p[1] == '+');
        p += digits(p);
    }
    return n > 0 && *p == '\0';
}

/* " (name)" of a column for a message, or "". */
static const char *
column_name(const struct table *t, uint32_t column)
{
    static _Thread_local char text[64];

    if (!t->names)
        return "";
    struct csv_cell c = {t->names[column], strlen(t->names[column])};
    snprintf(text, sizeof(text), " %s", csv_show(&c));
    return text;
}

static enum dt_status
bad_cell(const struct table *t, uint32_t column, struct dt_error *err)
{
    const struct csv_cell *c = &t->r.cells[column];
    const char *name = column_name(t, column);

    if (c->len == 0)
        return csv_fail(&t->r, err, "column %u%s is empty: every cell must hold a number",
                        column + 1, name);
    if (cell_not_finite(c))
        return csv_fail(&t->r, err, "column %u%s holds %s, which is not finite: remove the row",
                        column + 1, name, csv_show(c));
    if (cell_too_large(c))
        return csv_fail(&t->r, err, "column %u%s holds %s, which float32 cannot hold: scale it",
                        column + 1, name, csv_show(c));
    return csv_fail(&t->r, err,
                    "column %u%s holds %s, which is no number: write numbers like -1.5 or 2e3",
                    column + 1, name, csv_show(c));
}

static enum dt_status
short_of_memory(const struct table *t, struct dt_error *err)
{
    return dt_fail(err, DT_E_NO_MEMORY, "%s:%llu: no memory for more rows", gzfile_path(t->r.f),
                   (unsigned long long)t->r.line);
}

static enum dt_status
add_label(struct table *t, float v, struct dt_error *err)
{
    const char *fault = t->labels.target == DATASET_CLASSES ? label_fault((double)v) : NULL;

    if (fault)
        return csv_fail(&t->r, err,
                        "column %u%s holds the label %s, which %s: classes are whole numbers from "
                        "0 (numbers to predict need model linear)",
                        t->label + 1, column_name(t, t->label), csv_show(&t->r.cells[t->label]),
                        fault);
    return labels_add(&t->labels, (double)v) ? DT_OK : short_of_memory(t, err);
}

static enum dt_status
add_row(struct table *t, struct dt_error *err)
{
    float v = 0;

    if (t->r.n_cells != t->n_columns)
        return csv_fail(&t->r, err, "has %u columns, line 1 has %u: every row needs as many",
                        t->r.n_cells, t->n_columns);
    if (!floats_reserve(&t->x, t->n_columns))
        return short_of_memory(t, err);
    for (uint32_t i = 0; i < t->n_columns; i++) {
        if (!cell_number(&t->r.cells[i], &v))
            return bad_cell(t, i, err);
        if (i != t->label) {
            t->x.v[t->x.n++] = v;
            continue;
        }
        enum dt_status s = add_label(t, v, err);
        if (s != DT_OK)
            return s;
    }
    t->n_rows++;
    return DT_OK;
}

/* Is line 1 a header? */
static enum dt_status
find_header(struct table *t, struct dt_error *err)
{
    uint32_t numbers = 0;
    uint32_t text = 0; /* a column that holds some */
    float v;

    for (uint32_t i = 0; i < t->n_columns; i++) {
        bool number = cell_number(&t->r.cells[i], &v);
        numbers += number;
        text = number ? text : i;
    }
    t->info->header = t->options->header == DATASET_HEADER_YES ||
                      (t->options->header == DATASET_HEADER_AUTO && numbers == 0);
    if (t->options->header != DATASET_HEADER_AUTO || numbers == 0 || numbers == t->n_columns)
        return DT_OK;
    return csv_fail(&t->r, err,
                    "some columns hold numbers, but column %u holds %s: correct it, or say whether "
                    "the line is a header",
                    text + 1, csv_show(&t->r.cells[text]));
}

static enum dt_status
keep_names(struct table *t, struct dt_error *err)
{
    if (!t->info->header)
        return DT_OK;
    t->names = calloc(t->n_columns, sizeof(*t->names));
    for (uint32_t i = 0; t->names && i < t->n_columns; i++) {
        const struct csv_cell *c = &t->r.cells[i];
        t->names[i] = strndup(c->text, c->len);
        if (!t->names[i])
            return short_of_memory(t, err);
        t->info->header_hash = XXH64(c->text, c->len, t->info->header_hash + 1);
    }
    return t->names ? DT_OK : short_of_memory(t, err);
}

/* The column of that name; *n: how many there are. */
static uint32_t
find_name(const struct table *t, const char *name, uint32_t *n)
{
    uint32_t found = 0;

    *n = 0;
    for (uint32_t i = 0; t->names && i < t->n_columns; i++) {
        if (strcmp(t->names[i], name) == 0) {
            found = i;
            ++*n;
        }
    }
    return found;
}

static enum dt_status
label_by_number(struct table *t, const char *text, struct dt_error *err)
{
    int64_t n;

    if (!dt_parse_i64(text, &n))
        return csv_fail(&t->r, err, "%s, so none is called '%.40s': name the label's by its number",
                        t->names ? "the header has other columns" : "the columns have no names",
                        text);
    if (n == 0 || n > (int64_t)t->n_columns || -n > (int64_t)t->n_columns)
        return csv_fail(&t->r, err, "there is no column %lld for the label: the file has %u",
                        (long long)n, t->n_columns);
    t->label = (uint32_t)(n > 0 ? n - 1 : (int64_t)t->n_columns + n);
    return DT_OK;
}

static enum dt_status
find_label(struct table *t, struct dt_error *err)
{
    const char *wanted = t->options->label;
    uint32_t same;
    uint32_t named = find_name(t, wanted ? wanted : "label", &same);

    if (same > 1)
        return csv_fail(&t->r, err, "%u columns are called '%.40s': name the label's by its number",
                        same, wanted ? wanted : "label");
    if (same == 1)
        t->label = named;
    else if (!wanted)
        t->label = t->n_columns - 1;
    else
        return label_by_number(t, wanted, err);
    return DT_OK;
}

/* A copy without control characters, cut where it is too long. */
static void
show_name(char *out, size_t out_bytes, const char *name)
{
    size_t i;

    for (i = 0; i + 1 < out_bytes && name[i]; i++)
        out[i] = (unsigned char)name[i] < ' ' || name[i] == 0x7f ? '?' : name[i];
    out[i] = '\0';
}

/* Line 1: columns, header, label. Afterwards the first row is in the reader's cells. */
static enum dt_status
begin(struct table *t, struct dt_error *err)
{
    bool end = false;
    enum dt_status s = csv_next(&t->r, &end, err);

    if (s != DT_OK)
        return s;
    if (end)
        return dt_fail(err, DT_E_DATA, "%s: is empty: give a CSV file with rows",
                       gzfile_path(t->r.f));
    if (t->r.n_cells < 2)
        return csv_fail(
            &t->r, err,
            "has one column, a row needs a feature and a label: part columns by commas");
    t->n_columns = t->r.n_cells;
    s = find_header(t, err);
    if (s == DT_OK)
        s = keep_names(t, err);
    if (s == DT_OK)
        s = find_label(t, err);
    if (s != DT_OK)
        return s;
    t->info->label = t->label + 1;
    if (t->names)
        show_name(t->info->label_name, sizeof(t->info->label_name), t->names[t->label]);
    if (t->info->header)
        s = csv_next(&t->r, &end, err);
    if (s == DT_OK && end)
        s = dt_fail(err, DT_E_DATA, "%s: has a header, but no rows", gzfile_path(t->r.f));
    return s;
}

static enum dt_status
finish(struct table *t, struct dataset *out, struct dt_error *err)
{
    out->n_rows = t->n_rows;
    out->n_features = t->n_columns - 1;
    out->n_dims = 1;
    out->dims[0] = out->n_features;
    out->scale = 1;
    if (!labels_finish(&t->labels, out))
        return short_of_memory(t, err);
    out->x = realloc(t->x.v, t->x.n * sizeof(float)); /* shrinks */
    if (!out->x)
        return short_of_memory(t, err);
    memset(&t->x, 0, sizeof(t->x));
    return DT_OK;
}

enum dt_status
csv_load(const char *path, const struct dataset_options *options, struct dataset *out,
         struct csv_info *info, struct dt_error *err)
{
    struct table t = {.options = options, .info = info, .labels = {.target = options->target}};
    bool end = false;

    memset(out, 0, sizeof(*out));
    memset(info, 0, sizeof(*info));
    enum dt_status s = csv_open(&t.r, path, err);
    if (s == DT_OK)
        s = begin(&t, err);
    while (s == DT_OK && !end) {
        s = add_row(&t, err);
        if (s == DT_OK)
            s = csv_next(&t.r, &end, err);
    }
    if (s == DT_OK)
        s = finish(&t, out, err);
    if (s != DT_OK)
        dataset_deinit(out);
    table_deinit(&t);
    return s;
}
