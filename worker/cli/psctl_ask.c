/*
 * psctl_ask.c - finds the admin socket, asks, waits. One thread, one request at a time.
 */
#include "worker/cli/psctl_ask.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/base/clock.h"

#define ANSWER_MS 3000

static void
glob_directory(const char *directory, glob_t *found, bool *any)
{
    char pattern[DT_MAX_ENDPOINT + 16];
    int n = snprintf(pattern, sizeof(pattern), "%s/*.sock", directory);

    if (n > 0 && (size_t)n < sizeof(pattern) &&
        glob(pattern, *any ? GLOB_APPEND : 0, NULL, found) == 0)
        *any = true;
}

/* Nobody listens on the socket of a psd that was killed. What cannot be tried (no permission) may be alive. */
static bool
is_gone(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool gone;

    if (fd < 0)
        return false;
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    gone = connect(fd, (const struct sockaddr *)&a, sizeof(a)) != 0 &&
           (errno == ECONNREFUSED || errno == ENOENT);
    close(fd);
    return gone;
}

static enum dt_status
none_found(size_t n_gone, const char *where, struct dt_error *err)
{
    if (access("/run/psd", R_OK | X_OK) != 0 && errno == EACCES)
        return dt_fail(err, DT_E_DENIED,
                       "/run/psd: %s: psd's admin sockets are for root and the group psd",
                       strerror(errno));
    if (n_gone > 0)
        return dt_fail(err, DT_E_UNAVAILABLE,
                       "no psd found: nobody listens on %s in %s, its psd is gone; name another "
                       "one with --admin ipc://PATH",
                       n_gone == 1 ? "the admin socket" : "any of the admin sockets", where);
    return dt_fail(err, DT_E_UNAVAILABLE,
                   "no psd found: there is no admin socket in %s; name one with --admin "
                   "ipc://PATH",
                   where);
}

static enum dt_status
choose(const glob_t *found, bool any, const char *where, char *out, struct dt_error *err)
{
    size_t i, n = any ? found->gl_pathc : 0, n_live = 0;
    struct dt_buffer names = {0};
    enum dt_status s;

    for (i = 0; i < n; i++) {
        if (is_gone(found->gl_pathv[i]))
            continue;
        if (n_live++ == 0)
            snprintf(out, DT_MAX_ENDPOINT + 1, "ipc://%s", found->gl_pathv[i]);
        dt_buffer_printf(&names, "\n  --admin ipc://%s", found->gl_pathv[i]);
    }
    if (n_live == 0)
        s = none_found(n, where, err);
    else if (n_live == 1)
        s = DT_OK;
    else
        s = dt_fail(err, DT_E_USAGE, "several psds run here, choose one:%s", dt_buffer_str(&names));
    dt_buffer_deinit(&names);
    return s;
}

/* /run/psd, and for users $XDG_RUNTIME_DIR/psd as well. */
static enum dt_status
find_endpoint(char *out, struct dt_error *err)
{
    const char *xdg = geteuid() == 0 ? NULL : getenv("XDG_RUNTIME_DIR");
    char own[DT_MAX_ENDPOINT] = "", where[DT_MAX_ENDPOINT + 32];
    glob_t found = {0};
    bool any = false;
    enum dt_status s;

    if (xdg && xdg[0] == '/') {
        snprintf(own, sizeof(own), "%s/psd", xdg);
        glob_directory(own, &found, &any);
    }
    glob_directory("/run/psd", &found, &any);
    snprintf(where, sizeof(where), "/run/psd%s%s", own[0] ? " or " : "", own);
    s = choose(&found, any, where, out, err);
    globfree(&found);
    return s;
}

/* libzmq would wait in silence for a socket to appear. */
static enum dt_status
check_exists(const char *endpoint, struct dt_error *err)
{
    if (strncmp(endpoint, "ipc://", 6) != 0 || access(endpoint + 6, W_OK) == 0)
        return DT_OK;
    if (errno == EACCES)
        return dt_fail(err, DT_E_DENIED,
                       "%s: %s: it is for root and for the group of that psd (psd)", endpoint,
                       strerror(errno));
    return dt_fail(err, DT_E_UNAVAILABLE, "%s: %s: is psd running there?", endpoint,
                   strerror(errno));
    return DT_OK;
}

enum dt_status
psctl_open(struct psctl *c, const char *endpoint, struct dt_error *err)
{
    enum dt_status s;

    memset(c, 0, sizeof(*c));
    c->next_request = 1;
    if (endpoint) {
        s = dt_endpoint_check(endpoint, err);
        if (s != DT_OK)
            return dt_fail_prefix(err, "--admin"), DT_E_USAGE;
        snprintf(c->endpoint, sizeof(c->endpoint), "%s", endpoint);
    } else {
        s = find_endpoint(c->endpoint, err);
        if (s != DT_OK)
            return s;
    }
    s = check_exists(c->endpoint, err);
    if (s != DT_OK)
        return s;
    c->context = dt_context_create(false, 1, err);
    if (!c->context)
        return err->code;
    c->dealer = dt_dealer_create(c->context, c->endpoint, 4, err);
    return c->dealer ? DT_OK : err->code;
}

void
psctl_close(struct psctl *c)
{
    dt_dealer_destroy(c->dealer, 0);
    if (c->context)
        dt_context_destroy(c->context);
    c->dealer = NULL;
    c->context = NULL;
}

/* Is it the answer to `request`? Anything else is skipped. */
static bool
decode(const struct dt_message *msg, uint64_t request, struct dt_head *head, struct dt_buffer *body)
{
    enum dt_status s = dt_head_decode(head, msg->header.p, msg->header.bytes);

    if ((s != DT_OK && s != DT_R_VERSION) || head->request != request)
        return false;
    if (s == DT_R_VERSION)
        head->status = DT_R_VERSION;
    if (body && head->status == DT_OK && msg->n_frames > 0)
        dt_buffer_append(body, msg->frames[0].p, msg->frames[0].bytes);
    return true;
}

static enum dt_status
judge(const struct psctl *c, const struct dt_head *head, struct dt_error *err)
{
    if (head->status == DT_OK)
        return DT_OK;
    if (!dt_status_is_reject(head->status))
        return dt_fail(err, DT_E_PROTOCOL, "%s answered with status %d", c->endpoint,
                       (int)head->status);
    return dt_fail(err, head->status, "%s",
                   head->text[0] ? head->text : dt_status_text(head->status));
}

static enum dt_status
await(struct psctl *c, uint64_t request, struct dt_buffer *body, struct dt_error *err)
{
    int64_t deadline = dt_deadline(dt_now_ms(), ANSWER_MS);
    struct dt_poll_item item = {.dealer = c->dealer};
    struct dt_message msg;
    struct dt_head head;

    for (;;) {
        int64_t now = dt_now_ms();

        while (dt_dealer_recv(c->dealer, &msg) == DT_OK) {
            bool ours = decode(&msg, request, &head, body);

            if (ours) /* the fields stand in the message */
                c->answer = dt_head_u64(&head, UINT64_MAX, 0);
            dt_message_deinit(&msg);
            if (ours)
                return judge(c, &head, err);
        }
        if (now >= deadline)
            return dt_fail(err, DT_E_UNAVAILABLE,
                           "%s did not answer within %d s: is psd running there?", c->endpoint,
                           ANSWER_MS / 1000);
        if (dt_poll(&item, 1, dt_poll_timeout(now, deadline)) != DT_OK)
            return dt_fail(err, DT_E_INTERNAL, "poll failed");
    }
}

static enum dt_status
ask(struct psctl *c, const struct dt_buffer *header, struct dt_buffer *body, struct dt_error *err)
{
    uint64_t request = c->next_request++;

    if (header->failed)
        return dt_fail(err, DT_E_NO_MEMORY, "out of memory");
    if (dt_dealer_send(c->dealer, header->data, header->len, NULL, 0) != DT_SENT)
        return dt_fail(err, DT_E_UNAVAILABLE, "%s: the request cannot be sent", c->endpoint);
    return await(c, request, body, err);
}

static enum dt_status
ask_simple(struct psctl *c, enum dt_op op, struct dt_buffer *body, struct dt_error *err)
{
    struct dt_buffer header = {0};
    enum dt_status s;

    dt_simple_encode(&header, op, c->next_request, 0);
    s = ask(c, &header, body, err);
    dt_buffer_deinit(&header);
    return s;
}

enum dt_status
psctl_ask_status(struct psctl *c, struct dt_buffer *body, struct dt_error *err)
{
    return ask_simple(c, DT_OP_ADMIN_STATUS, body, err);
}

enum dt_status
psctl_ask_shutdown(struct psctl *c, struct dt_error *err)
{
    return ask_simple(c, DT_OP_ADMIN_SHUTDOWN, NULL, err);
}

enum dt_status
psctl_ask_kick(struct psctl *c, const char *job, uint32_t rank, struct dt_error *err)
{
    struct dt_kick kick = {.rank = rank};
    struct dt_buffer header = {0};
    enum dt_status s;

    snprintf(kick.job, sizeof(kick.job), "%s", job);
    dt_kick_encode(&header, c->next_request, &kick);
    s = ask(c, &header, NULL, err);
    dt_buffer_deinit(&header);
    return s;
}

enum dt_status
psctl_ask_placement(struct psctl *c, const struct dt_placement *m, struct dt_buffer *body,
                    struct dt_error *err)
{
    struct dt_buffer header = {0};
    enum dt_status s;

    dt_placement_encode(&header, c->next_request, m);
    s = ask(c, &header, body, err);
    dt_buffer_deinit(&header);
    return s;
}

enum dt_status
psctl_ask_set(struct psctl *c, const struct dt_admin_set *m, uint64_t *from, struct dt_error *err)
{
    struct dt_buffer header = {0};
    enum dt_status s;

    dt_admin_set_encode(&header, c->next_request, m);
    s = ask(c, &header, NULL, err);
    dt_buffer_deinit(&header);
    *from = c->answer;
    return s;
}
