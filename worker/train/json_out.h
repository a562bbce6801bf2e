/*
 * json_out.h - how numbers and objects are written as JSON: reports, metrics, results. Any thread.
 */
#ifndef TRAIN_JSON_OUT_H
#define TRAIN_JSON_OUT_H

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* A new value; null where there is no number (NAN, infinite). */
static inline json_t *
json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* One object, one line, not flushed; takes `o`. False: errno says why, 0: memory is short. */
static inline bool
json_put_line(json_t *o, FILE *out)
{
    errno = 0;
    bool good = o && json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(10)) == 0 &&
                fputc('\n', out) != EOF;
    int why = errno;
    json_decref(o);
    errno = why;
    return good;
}

#endif
