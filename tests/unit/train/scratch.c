/*
 * scratch.c - see scratch.h. Any failure of the system ends the test.
 */
#include "tests/unit/train/scratch.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

void
scratch_open(struct scratch *s)
{
    snprintf(s->dir, sizeof(s->dir), "/tmp/unit_train.XXXXXX");
    cr_assert_not_null(mkdtemp(s->dir));
}

static unsigned
each_file(const struct scratch *s, bool remove_it)
{
    DIR *d = opendir(s->dir);
    struct dirent *e;
    unsigned n = 0;

    cr_assert_not_null(d);
    while ((e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        n++;
        if (remove_it)
            unlinkat(dirfd(d), e->d_name, e->d_type == DT_DIR ? AT_REMOVEDIR : 0);
    }
    closedir(d);
    return n;
}

void
scratch_close(struct scratch *s)
{
    each_file(s, true);
    cr_expect_eq(rmdir(s->dir), 0);
}

const char *
scratch_path(const struct scratch *s, const char *name)
{
    static char buffers[4][256];
    static unsigned next;
    char *out = buffers[next++ % 4];

    snprintf(out, sizeof(buffers[0]), "%s/%s", s->dir, name);
    return out;
}

unsigned
scratch_count(const struct scratch *s)
{
    return each_file(s, false);
}

void
write_file(const char *path, const void *data, size_t len)
{
    FILE *f = fopen(path, "wb");

    cr_assert_not_null(f);
    cr_assert_eq(fwrite(data, 1, len, f), len);
    cr_assert_eq(fclose(f), 0);
}

void
read_file(const char *path, struct dt_buffer *out)
{
    FILE *f = fopen(path, "rb");
    char part[4096];
    size_t n;

    cr_assert_not_null(f);
    while ((n = fread(part, 1, sizeof(part), f)) > 0)
        cr_assert(dt_buffer_append(out, part, n));
    fclose(f);
}

void
pack(struct dt_buffer *out, const void *in, size_t len)
{
    z_stream z = {0};
    unsigned char part[65536];
    int r;

    cr_assert_eq(deflateInit2(&z, 1, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)in;
    z.avail_in = (unsigned)len;
    do {
        z.next_out = part;
        z.avail_out = sizeof(part);
        r = deflate(&z, Z_FINISH);
        cr_assert(dt_buffer_append(out, part, sizeof(part) - z.avail_out));
    } while (r == Z_OK);
    cr_assert_eq(r, Z_STREAM_END);
    deflateEnd(&z);
}

void
make_idx(struct dt_buffer *out, unsigned n_dims, const unsigned *dims, unsigned modulus)
{
    unsigned char magic[4] = {0, 0, 8, (unsigned char)n_dims};
    size_t elements = 1;

    dt_buffer_append(out, magic, 4);
    for (unsigned d = 0; d < n_dims; d++) {
        unsigned char size[4] = {(unsigned char)(dims[d] >> 24), (unsigned char)(dims[d] >> 16),
                                 (unsigned char)(dims[d] >> 8), (unsigned char)dims[d]};
        dt_buffer_append(out, size, 4);
        elements *= dims[d];
    }
    for (size_t k = 0; k < elements; k++) {
        unsigned char v = (unsigned char)(k % modulus);
        dt_buffer_append(out, &v, 1);
    }
    cr_assert(!out->failed);
}

const char *
digits_path(void)
{
    static char path[512];
    const char *here = __FILE__; /* <repository>/tests/unit/train/scratch.c */
    size_t keep = strlen(here) - strlen("unit/train/scratch.c");

    snprintf(path, sizeof(path), "%.*sdata", (int)keep, here);
    return path;
}
