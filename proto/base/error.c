/*
 * error.c - error text. Any thread; the object belongs to the caller.
 */
#include "proto/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum dt_status
dt_fail(struct dt_error *err, enum dt_status code, const char *fmt, ...)
{
    char text[DT_ERROR_TEXT]; /* an argument may be err->text itself */
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err->code = code;
    memcpy(err->text, text, sizeof(text));
    return code;
}

enum dt_status
dt_fail_prefix(struct dt_error *err, const char *fmt, ...)
{
    char text[2 * DT_ERROR_TEXT];
    va_list ap;
    int n;

    if (!err)
        return DT_E_INTERNAL;
    va_start(ap, fmt);
    n = vsnprintf(text, DT_ERROR_TEXT, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= DT_ERROR_TEXT)
        n = DT_ERROR_TEXT - 1;
    snprintf(text + n, sizeof(text) - (size_t)n, ": %s", err->text);
    text[DT_ERROR_TEXT - 1] = 0;
    memcpy(err->text, text, DT_ERROR_TEXT);
    return err->code;
}
