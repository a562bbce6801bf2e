/*
 * same_file.h - do two paths name the same file, also one that is not there yet? Any thread.
 */
#ifndef CLI_SAME_FILE_H
#define CLI_SAME_FILE_H

#include <stdbool.h>

bool same_file(const char *a, const char *b);

#endif
