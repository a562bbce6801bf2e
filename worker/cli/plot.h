/*
 * plot.h - curves as a picture, drawn by the program gnuplot: loss against seconds and against samples.
 * Thread rule: the main thread alone.
 */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include "proto/base/error.h"
#include "worker/cli/curve.h"

struct plot_line {
    const char *name;
    const struct curve *curve;
};

/* Can plot_write(path) work? The name ends in .svg or .png (DT_E_USAGE), gnuplot is there (DT_E_NO_INPUT), a file
 * can be made there (DT_E_CANT_CREATE). Leaves everything as it was. */
enum dt_status plot_check(const char *path, struct dt_error *err);
/* Replaces `path` by a whole picture, or leaves it as it was. Blocks at most PLOT_MS, and not when a signal asks to
 * stop. DT_E_CANT_CREATE, DT_E_IO. */
#define PLOT_MS 60000
enum dt_status plot_write(const char *path, const char *title, const struct plot_line *lines,
                          unsigned n, struct dt_error *err);

#endif
