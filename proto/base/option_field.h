/*
 * option_field.h - private to the option table: one field of a settings struct, by its row.
 */
#ifndef DT_BASE_OPTION_FIELD_H
#define DT_BASE_OPTION_FIELD_H

#include "proto/base/option.h"

/* Set the field from text; on failure it is unchanged and `why` says what the text must be ("must be
 * a whole number from 0 to 64"). `replace`: a list's old elements go first. */
bool dt_field_set(const struct dt_option *row, void *settings, const char *text, bool replace,
                  struct dt_error *why);
size_t dt_field_bytes(const struct dt_option *row);
void dt_field_zero(const struct dt_option *row, void *settings);  /* frees nothing */
void dt_field_clear(const struct dt_option *row, void *settings); /* frees, then zeroes */

/* The field as "name = value" lines that dt_field_set() reads back; what is unset is a comment. */
void dt_field_dump(const struct dt_option *row, const void *settings, FILE *out);

/* Write `row`'s name as it stands in the file: '_' for '-'. */
#define DT_OPTION_NAME 64
void dt_field_key(const struct dt_option *row, char key[DT_OPTION_NAME]);

#endif
