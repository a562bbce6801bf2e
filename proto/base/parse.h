/*
 * parse.h - text to numbers (and back), the same in every locale. The whole text must be a number: leading or
 * trailing space, trailing garbage, overflow and empty text are errors (false, *out unchanged).
 */
#ifndef DT_BASE_PARSE_H
#define DT_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool dt_parse_u64(const char *text, uint64_t *out);
bool dt_parse_i64(const char *text, int64_t *out);
bool dt_parse_double(const char *text, double *out);             /* '.' always; finite only */
bool dt_parse_float_n(const char *text, size_t len, float *out); /* a cell, not NUL-terminated */
bool dt_parse_bool(const char *text, bool *out);                 /* true/false/yes/no/on/off/1/0 */
bool dt_parse_duration_ms(
    const char *text,
    int64_t *out); /* "250ms", "10s", "2min", "1h"; a bare number is seconds ("0.5" too) */
bool dt_parse_bytes(
    const char *text,
    uint64_t *out); /* "4096", "64KiB", "1MiB", "2GiB" (K, M, G as well: powers of 1024) */

/* The shortest text that dt_parse_double() reads back as `x` ('.' always). */
#define DT_NUMBER_TEXT 32
void dt_format_double(double x, char out[DT_NUMBER_TEXT]);
/* The same of a float32: 0.1f is "0.1". */
void dt_format_float(float x, char out[DT_NUMBER_TEXT]);

#endif
