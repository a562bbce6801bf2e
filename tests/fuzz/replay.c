/*
 * replay.c - feeds every file of a directory, and deterministic mutations of it, to
 * LLVMFuzzerTestOneInput; so the corpus is used where there is no libFuzzer.
 *
 * usage: replay DIRECTORY [SECONDS]
 * The mutations are bounded by SECONDS (default 3): the same sequence each time, cut by the clock.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"

#define INPUT_BYTES 8192
#define MAX_FILES 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct input {
    size_t bytes;
    uint8_t data[INPUT_BYTES];
};

struct corpus {
    unsigned n;
    struct input *list[MAX_FILES];
};

static struct input *
read_input(const char *directory, const char *name)
{
    struct input *in = calloc(1, sizeof(*in));
    char path[4096];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    f = fopen(path, "rb");
    if (!f || !in) {
        fprintf(stderr, "replay: cannot read %s\n", path);
        exit(66);
    }
    in->bytes = fread(in->data, 1, sizeof(in->data), f);
    fclose(f);
    return in;
}

static void
read_corpus(struct corpus *c, const char *directory)
{
    struct dirent **names;
    int i, n = scandir(directory, &names, NULL, alphasort); /* the same order everywhere */

    if (n < 0) {
        fprintf(stderr, "replay: cannot open %s\n", directory);
        exit(66);
    }
    c->n = 0;
    for (i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.' && c->n < MAX_FILES)
            c->list[c->n++] = read_input(directory, names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

static uint64_t
next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

static void
mutate_byte(struct input *in, uint64_t *state)
{
    static const uint8_t leads[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0,
                                    0xc1, 0xc4, 0xc6, 0xc9, 0xca, 0xcb, 0xcf, 0xd3, 0xd9,
                                    0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xff};
    size_t at = next_random(state) % in->bytes;

    if (next_random(state) % 2)
        in->data[at] = leads[next_random(state) % sizeof(leads)];
    else
        in->data[at] ^= (uint8_t)(1u << next_random(state) % 8);
}

/* Replaces a run by a run of another input. */
static void
splice(struct input *in, const struct input *other, uint64_t *state)
{
    size_t from = next_random(state) % other->bytes;
    size_t n = 1 + next_random(state) % 64;
    size_t at = next_random(state) % in->bytes;

    if (n > other->bytes - from)
        n = other->bytes - from;
    if (n > INPUT_BYTES - at)
        n = INPUT_BYTES - at;
    memcpy(in->data + at, other->data + from, n);
    if (at + n > in->bytes)
        in->bytes = at + n;
}

static void
remove_run(struct input *in, uint64_t *state)
{
    size_t at = next_random(state) % in->bytes;
    size_t n = 1 + next_random(state) % 8;

    if (n > in->bytes - at)
        n = in->bytes - at;
    memmove(in->data + at, in->data + at + n, in->bytes - at - n);
    in->bytes -= n;
}

static void
mutate(struct input *in, const struct corpus *c, uint64_t *state)
{
    unsigned i, n = 1 + (unsigned)(next_random(state) % 4);

    for (i = 0; i < n && in->bytes; i++) {
        switch (next_random(state) % 6) {
        case 0:
            splice(in, c->list[next_random(state) % c->n], state);
            break;
        case 1:
            remove_run(in, state);
            break;
        case 2:
            in->bytes = 1 + next_random(state) % in->bytes;
            break;
        default:
            mutate_byte(in, state);
        }
    }
}

static unsigned long
run_mutations(const struct corpus *c, double seconds)
{
    double until = dt_now_seconds() + seconds;
    static struct input in;
    uint64_t state = 1;
    unsigned long runs = 0;

    while (runs % 256 || dt_now_seconds() < until) {
        const struct input *from = c->list[runs % c->n];

        in.bytes = from->bytes;
        memcpy(in.data, from->data, from->bytes);
        mutate(&in, c, &state);
        LLVMFuzzerTestOneInput(in.data, in.bytes);
        runs++;
    }
    return runs;
}

int
main(int argc, char **argv)
{
    static struct corpus c;
    unsigned long runs;
    unsigned i;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: replay DIRECTORY [SECONDS]\n");
        return 64;
    }
    read_corpus(&c, argv[1]);
    for (i = 0; i < c.n; i++) {
        if (c.list[i]->bytes == 0) {
            fprintf(stderr, "replay: an empty file in %s\n", argv[1]);
            return 65;
        }
        LLVMFuzzerTestOneInput(c.list[i]->data, c.list[i]->bytes);
    }
    if (c.n == 0) {
        fprintf(stderr, "replay: no file in %s\n", argv[1]);
        return 66;
    }
    runs = run_mutations(&c, argc == 3 ? atof(argv[2]) : 3);
    printf("%u files, %lu mutations\n", c.n, runs);
    for (i = 0; i < c.n; i++)
        free(c.list[i]);
    return 0;
}
