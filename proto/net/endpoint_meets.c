/*
 * endpoint_meets.c - whether two endpoints are in each other's way, one port of an address or one file, or are one.
 * Any thread; resolving may block for as long as the resolver does.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "proto/net/context.h"
#include "proto/net/endpoint.h"

/* An IPv4 address in the form of IPv6 is that of IPv4. */
static void
unmap_v4(struct sockaddr_storage *a)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)a;

    if (a->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        return;
    memcpy(&v4.sin_addr, v6->sin6_addr.s6_addr + 12, sizeof(v4.sin_addr));
    memcpy(a, &v4, sizeof(v4));
}

/* As bind.c binds it: "*" is every address, IPv4 included. */
static bool
find_address(const struct dt_endpoint *e, struct sockaddr_storage *out)
{
    const struct addrinfo *a;
    struct addrinfo *list;

    memset(out, 0, sizeof(*out));
    out->ss_family = AF_INET6;
    if (!strcmp(e->host, "*"))
        return true;
    if (dt_endpoint_lookup(e, &list, NULL) != DT_OK)
        return false;
    a = dt_endpoint_choose(list);
    memcpy(out, a->ai_addr, a->ai_addrlen);
    unmap_v4(out);
    freeaddrinfo(list);
    return true;
}

static const struct in_addr *
v4_of(const struct sockaddr_storage *a)
{
    return &((const struct sockaddr_in *)(const void *)a)->sin_addr;
}

static const struct in6_addr *
v6_of(const struct sockaddr_storage *a)
{
    return &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
}

/* Every address of its family; that of IPv6 is bound for IPv4, too. */
static bool
is_any(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET ? v4_of(a)->s_addr == INADDR_ANY
                                   : IN6_IS_ADDR_UNSPECIFIED(v6_of(a));
}

static bool
covers(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    return is_any(a) && (a->ss_family == AF_INET6 || b->ss_family == AF_INET);
}

static bool
is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    return a->ss_family == AF_INET ? v4_of(a)->s_addr == v4_of(b)->s_addr
                                   : IN6_ARE_ADDR_EQUAL(v6_of(a), v6_of(b));
}

static bool
hosts_meet(const struct dt_endpoint *a, const struct dt_endpoint *b)
{
    struct sockaddr_storage x, y;

    if (!strcmp(a->host, b->host))
        return true;
    return find_address(a, &x) && find_address(b, &y) &&
           (is_same(&x, &y) || covers(&x, &y) || covers(&y, &x));
}

static const char *
name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool
is_one_directory(const char *a, const char *b)
{
    char of_a[DT_MAX_ENDPOINT + 2], of_b[DT_MAX_ENDPOINT + 2];
    struct stat x, y;

    snprintf(of_a, sizeof(of_a), "%.*s.", (int)(name_of(a) - a), a);
    snprintf(of_b, sizeof(of_b), "%.*s.", (int)(name_of(b) - b), b);
    return !strcmp(of_a, of_b) || (stat(of_a, &x) == 0 && stat(of_b, &y) == 0 &&
                                   x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* Is the file name b that of a, or of a's lock? */
static bool
is_name_or_lock(const char *a, const char *b)
{
    size_t n = strlen(a);

    return !strncmp(a, b, n) && (b[n] == '\0' || !strcmp(b + n, ".lock"));
}

static bool
files_meet(const char *a, const char *b)
{
    return (is_name_or_lock(name_of(a), name_of(b)) || is_name_or_lock(name_of(b), name_of(a))) &&
           is_one_directory(a, b);
}

/* False: one of them is none, or they are of different kinds. */
static bool
split_both(const char *a, const char *b, struct dt_endpoint *x, struct dt_endpoint *y)
{
    return dt_endpoint_split(a, x, NULL) == DT_OK && dt_endpoint_split(b, y, NULL) == DT_OK &&
           x->is_ipc == y->is_ipc;
}

bool
dt_endpoint_meets(const char *a, const char *b)
{
    struct dt_endpoint x, y;

    if (!split_both(a, b, &x, &y))
        return false;
    if (x.is_ipc)
        return files_meet(x.path, y.path);
    return x.number > 0 && x.number == y.number && hosts_meet(&x, &y);
}

bool
dt_endpoint_is_same(const char *a, const char *b)
{
    struct dt_endpoint x, y;

    if (!split_both(a, b, &x, &y))
        return false;
    if (x.is_ipc)
        return files_meet(x.path, y.path);
    return x.number == y.number && strcasecmp(x.host, y.host) == 0;
}
