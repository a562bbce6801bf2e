/*
 * plot.c - writes a script with the data in it and lets gnuplot run it.
 *
 * Invariant: the picture is made beside its place and moved there when it is whole. Threads: main alone.
 */
#include "worker/cli/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "worker/cli/child.h"
#include "worker/cli/program.h"
#include "worker/cli/stop.h"

#define PATH_BYTES 4096
#define WAIT_MS 100 /* between two looks at the signals */

static const char *
terminal_of(const char *path)
{
    const char *dot = strrchr(path, '.');

    if (dot && strcmp(dot, ".svg") == 0)
        return "svg size 960,400 background rgb 'white' noenhanced font 'sans,12'";
    if (dot && strcmp(dot, ".png") == 0)
        return "pngcairo size 960,400 noenhanced font 'sans,10'";
    return NULL;
}

/* An empty file beside `path`. */
static enum dt_status
make_beside(const char *path, char out[PATH_BYTES], struct dt_error *err)
{
    int fd = -1;

    if (snprintf(out, PATH_BYTES, "%s.XXXXXX", path) < PATH_BYTES)
        fd = mkstemp(out);
    else
        errno = ENAMETOOLONG;
    if (fd < 0)
        return dt_fail(err, DT_E_CANT_CREATE, "--plot %s: %s", path, strerror(errno));
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    close(fd);
    return DT_OK;
}

enum dt_status
plot_check(const char *path, struct dt_error *err)
{
    char program[PATH_BYTES], beside[PATH_BYTES];
    struct stat st;

    if (!terminal_of(path))
        return dt_fail(err, DT_E_USAGE, "--plot %s: the name must end in .svg or .png", path);
    if (!program_in_path("gnuplot", program, sizeof(program)))
        return dt_fail(err, DT_E_NO_INPUT,
                       "--plot: the program gnuplot is not in PATH: install gnuplot-nox");
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return dt_fail(err, DT_E_CANT_CREATE, "--plot %s: there is something that is no file",
                       path);
    enum dt_status r = make_beside(path, beside, err);
    if (r == DT_OK)
        unlink(beside);
    return r;
}

/* In gnuplot's single quotes. */
static void
put_quoted(const char *text, FILE *out)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

static void
put_data(const struct plot_line *lines, unsigned n, FILE *out)
{
    for (unsigned i = 0; i < n; i++) {
        fprintf(out, "$d%u << EOD\n", i);
        for (unsigned k = 0; k < lines[i].curve->n_points; k++) {
            const struct curve_point *p = &lines[i].curve->points[k];
            fprintf(out, "%.6g %.9g %.6g\n", p->seconds, p->samples, p->loss);
        }
        fputs("EOD\n", out);
    }
}

static void
put_panel(const struct plot_line *lines, unsigned n, unsigned column, const char *label, FILE *out)
{
    const char *before = "plot ";

    fprintf(out, "set xlabel '%s'\n", label);
    for (unsigned i = 0; i < n; i++) {
        if (lines[i].curve->n_points == 0)
            continue;
        fprintf(out, "%s$d%u using %u:3 with lines linewidth 1.5 linetype %u title ", before, i,
                column, i + 1);
        put_quoted(lines[i].name, out);
        before = ", \\\n     ";
    }
    fputs("\n", out);
}

static void
put_script(const char *terminal, const char *picture, const char *title,
           const struct plot_line *lines, unsigned n, FILE *out)
{
    fprintf(out, "set terminal %s\nset output ", terminal);
    put_quoted(picture, out);
    fputs("\n", out);
    put_data(lines, n, out);
    fputs("set multiplot layout 1,2 title ", out);
    put_quoted(title, out);
    fputs("\nset grid\nset yrange [0:*]\nset ylabel 'training loss'\nset key top right\n", out);
    put_panel(lines, n, 1, "seconds", out);
    fputs("unset key\nset ylabel ''\nset format x '%.0s%c'\n", out);
    put_panel(lines, n, 2, "samples", out);
    fputs("unset multiplot\nset output\n", out);
}

/* The script in memory; a descriptor, or -1. */
static int
script_fd(const char *picture, const char *path, const char *title, const struct plot_line *lines,
          unsigned n)
{
    int fd = memfd_create("plot", MFD_CLOEXEC);
    FILE *out = fd >= 0 ? fdopen(dup(fd), "w") : NULL;

    if (out)
        put_script(terminal_of(path), picture, title, lines, n, out);
    if (!out || fclose(out) != 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

/* Until it ends, a signal asks to stop or it is too late; then it is stopped. What stopped it, or NULL. */
static const char *
wait_for(struct child *child)
{
    int64_t deadline = dt_deadline(dt_now_ms(), PLOT_MS);
    const char *why = NULL;

    while (!why && !children_wait(child, 1, WAIT_MS)) {
        if (stop_signal())
            why = "a signal asked to stop";
        else if (dt_now_ms() >= deadline)
            why = "gnuplot did not end";
    }
    if (why)
        children_stop(child, 1, SIGTERM, 1000);
    return why;
}

static enum dt_status
run_gnuplot(int script, const char *path, struct dt_error *err)
{
    char program[PATH_BYTES], file[64], how[64];
    char *argv[] = {"gnuplot", "-d", file, NULL}; /* -d: without the user's own start-up file */
    struct child child = {0};
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct child_plan plan = {program, argv, null_fd, script, false};

    snprintf(file, sizeof(file), "/proc/self/fd/%d", script);
    program_in_path("gnuplot", program, sizeof(program));
    enum dt_status r = child_start(&child, "gnuplot", &plan, err);
    if (null_fd >= 0)
        close(null_fd);
    if (r != DT_OK)
        return r;
    const char *why = wait_for(&child);
    if (why)
        return dt_fail(err, DT_E_IO, "--plot %s: %s", path, why);
    if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0)
        return DT_OK;
    return dt_fail(err, DT_E_IO, "--plot %s: gnuplot ended with %s", path,
                   child_end_text(&child, how, sizeof(how)));
}

enum dt_status
plot_write(const char *path, const char *title, const struct plot_line *lines, unsigned n,
           struct dt_error *err)
{
    char picture[PATH_BYTES];

    enum dt_status r = make_beside(path, picture, err);
    if (r != DT_OK)
        return r;
    int script = script_fd(picture, path, title, lines, n);
    r = script < 0 ? dt_fail(err, DT_E_IO, "--plot %s: %s", path, strerror(errno))
                   : run_gnuplot(script, path, err);
    if (r == DT_OK && rename(picture, path) != 0)
        r = dt_fail(err, DT_E_IO, "--plot %s: %s", path, strerror(errno));
    if (r != DT_OK)
        unlink(picture);
    if (script >= 0)
        close(script);
    return r;
}
