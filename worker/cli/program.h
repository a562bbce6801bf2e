/*
 * program.h - where a program is. Any thread.
 */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* DIR/NAME into out when it is a program. */
bool program_in(const char *dir, size_t dir_len, const char *name, char *out, size_t bytes);
/* In the directories of the environment's PATH. */
bool program_in_path(const char *name, char *out, size_t bytes);

#endif
