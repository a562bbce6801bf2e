/*
 * error.h - error text as a last, optional argument.
 *
 * A function that can fail for more than one reason takes `struct dt_error *err` last (may be NULL)
 * and returns an enum dt_status. The text is one line: what, where, what to do.
 */
#ifndef DT_BASE_ERROR_H
#define DT_BASE_ERROR_H

#include "proto/base/status.h"

#define DT_ERROR_TEXT 512

struct dt_error {
    enum dt_status code;
    char text[DT_ERROR_TEXT];
};

/* Fill `err` (if not NULL) and return `code`, so that `return dt_fail(err, DT_E_IO, "...")` reads well. */
enum dt_status dt_fail(struct dt_error *err, enum dt_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "context: " in front of the text. Returns err->code (DT_E_INTERNAL if err is NULL). */
enum dt_status dt_fail_prefix(struct dt_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
