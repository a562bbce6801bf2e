/*
 * make_corpus.c - writes the corpus: each sample message as one file, the decoder's number first.
 *
 * usage: make_corpus DIRECTORY
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/wire/samples.h"

static bool
write_sample(const char *directory, const struct sample *sample)
{
    char path[512];
    FILE *f;
    bool ok;

    snprintf(path, sizeof(path), "%s/%s", directory, sample->name);
    f = fopen(path, "wb");
    if (!f)
        return false;
    ok = fputc((int)sample->decoder, f) != EOF &&
         fwrite(sample->bytes.data, 1, sample->bytes.len, f) == sample->bytes.len;
    return fclose(f) == 0 && ok;
}

int
main(int argc, char **argv)
{
    struct samples *s = malloc(sizeof(*s));
    int rc = 0;
    unsigned i;

    if (argc != 2 || !s) {
        fprintf(stderr, "usage: make_corpus DIRECTORY\n");
        free(s);
        return 64;
    }
    samples_create(s);
    for (i = 0; i < s->n && rc == 0; i++) {
        if (!write_sample(argv[1], &s->list[i])) {
            fprintf(stderr, "make_corpus: cannot write %s/%s\n", argv[1], s->list[i].name);
            rc = 73;
        }
    }
    printf("%u files\n", s->n);
    samples_deinit(s);
    free(s);
    return rc;
}
