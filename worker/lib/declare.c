/*
 * declare.c - the variables of the job. dtw_declare only notes; declare_send talks to psd. Lock held.
 */
#include "worker/lib/declare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "worker/lib/handle.h"

bool
declare_init(struct declared *d, uint32_t n_tasks)
{
    return placement_init(&d->placement, n_tasks);
}

void
declare_deinit(struct declared *d)
{
    uint32_t i;

    for (i = 0; i < d->n; i++) {
        free(d->items[i].homes);
        free((void *)d->items[i].versions);
        free((void *)d->items[i].made);
    }
    free(d->items);
    free(d->wholes);
    placement_deinit(&d->placement);
}

uint64_t
declare_fingerprint(const struct declared *d)
{
    uint64_t f = DT_FINGERPRINT_START;
    uint32_t i;

    for (i = 0; i < d->n; i++)
        f = dt_declaration_fingerprint(f, &d->items[i].decl);
    return f;
}

void
declare_forget_versions(struct declared *d)
{
    uint32_t i, k;

    for (i = 0; i < d->n; i++) {
        for (k = 0; k < d->items[i].n_slices; k++)
            atomic_store_explicit(&d->items[i].versions[k], DT_NO_VERSION, memory_order_relaxed);
    }
}

void
declare_forget_made(struct declared *d)
{
    uint32_t i, k;

    for (i = 0; i < d->n; i++) {
        for (k = 0; k < d->items[i].n_slices; k++)
            atomic_store_explicit(&d->items[i].made[k], DT_NO_VERSION, memory_order_relaxed);
    }
}

static bool
copy_word(char *out, size_t bytes, const char *word, const char *def)
{
    if (!word)
        word = def;
    if (strlen(word) >= bytes)
        return false;
    snprintf(out, bytes, "%s", word);
    return *word != 0;
}

static bool
is_known_name(const struct declared *d, const char *name)
{
    uint32_t i;

    for (i = 0; i < d->n; i++) {
        if (!strcmp(d->items[i].decl.name, name))
            return true;
    }
    for (i = 0; i < d->n_wholes; i++) {
        if (!strcmp(d->wholes[i].name, name))
            return true;
    }
    return false;
}

static void
add_param(struct dt_declaration *decl, const char *name, float value)
{
    struct dt_optimizer_param *p = &decl->params[decl->n_params++];

    snprintf(p->name, sizeof(p->name), "%s", name);
    p->value = value;
}

/* The rule's rate and its further parameters; psd knows which ones there are. */
static enum dtw_status
fill_params(const struct dtw_variable *v, struct dt_declaration *decl, struct dtw_error *err)
{
    unsigned i, lr = v->lr >= 0 || isnan(v->lr);

    if (v->n_params + lr > DT_MAX_OPTIMIZER_PARAMS || (v->n_params && !v->params))
        return client_error(err, DTW_INVALID, "variable %s: at most %d parameters of its optimizer",
                            v->name, DT_MAX_OPTIMIZER_PARAMS);
    if (lr)
        add_param(decl, "lr", v->lr);
    for (i = 0; i < v->n_params; i++) {
        const char *name = v->params[i].name;

        if (!name || !*name || strlen(name) >= sizeof(decl->params[0].name))
            return client_error(err, DTW_INVALID,
                                "variable %s: an optimizer parameter is a word of 1 to 23 bytes",
                                v->name);
        add_param(decl, name, v->params[i].value);
    }
    return DTW_OK;
}

static enum dtw_status
fill(const struct dtw_variable *v, struct dt_declaration *decl, struct dtw_error *err)
{
    memset(decl, 0, sizeof(*decl));
    if (!v->name || !copy_word(decl->name, sizeof(decl->name), v->name, "") ||
        strspn(v->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:-") !=
            strlen(v->name))
        return client_error(err, DTW_INVALID,
                            "variable %s: a name is 1 to %d bytes of [A-Za-z0-9_./:-]",
                            v->name ? v->name : "(null)", DT_MAX_NAME);
    if (v->n_dims > DT_MAX_DIMS || (v->n_dims && !v->shape))
        return client_error(err, DTW_INVALID, "variable %s: at most %d dimensions", v->name,
                            DT_MAX_DIMS);
    if (!copy_word(decl->optimizer, sizeof(decl->optimizer), v->optimizer, "sgd") ||
        !copy_word(decl->init, sizeof(decl->init), v->init, "values"))
        return client_error(err, DTW_INVALID,
                            "variable %s: optimizer and init are words of 1 to 23 bytes", v->name);
    decl->n_dims = v->n_dims;
    if (v->n_dims)
        memcpy(decl->shape, v->shape, v->n_dims * sizeof(*v->shape));
    decl->seed = v->seed;
    if (dt_declaration_elements(decl) == 0)
        return client_error(err, DTW_INVALID,
                            "variable %s: a dimension is 0, or more than 2^40 elements", v->name);
    return fill_params(v, decl, err);
}

/* Only what has a first axis is cut. */
static bool
is_cut(const struct declared *d, const struct dt_declaration *decl)
{
    return d->partition.kind != PARTITION_NONE && decl->n_dims > 0;
}

/* Room for `more` elements behind `n`; NULL: short of memory, and `items` is as it was. */
static void *
grow(void *items, uint32_t n, uint32_t more, uint32_t *cap, size_t bytes)
{
    uint32_t want = *cap ? *cap : 16;
    void *bigger;

    while (want < n + more)
        want *= 2;
    if (items && want == *cap)
        return items;
    bigger = realloc(items, want * bytes);
    if (bigger)
        *cap = want;
    return bigger;
}

static bool
reserve(struct declared *d, uint32_t parts)
{
    struct variable *items = grow(d->items, d->n, parts, &d->cap, sizeof(*items));
    struct whole *wholes;

    if (!items)
        return false;
    d->items = items;
    wholes = grow(d->wholes, d->n_wholes, 1, &d->cap_wholes, sizeof(*wholes));
    if (wholes)
        d->wholes = wholes;
    return wholes != NULL;
}

/* There is room. */
static bool
append_item(struct declared *d, struct variable v)
{
    uint32_t k;

    v.elements = dt_declaration_elements(&v.decl);
    v.n_slices = dt_n_slices(v.elements);
    v.homes = calloc(v.n_slices, 1);
    v.versions = calloc(v.n_slices, sizeof(*v.versions));
    v.made = calloc(v.n_slices, sizeof(*v.made));
    if (!v.homes || !v.versions || !v.made) {
        free(v.homes);
        free((void *)v.versions);
        free((void *)v.made);
        return false;
    }
    for (k = 0; k < v.n_slices; k++) {
        atomic_init(&v.versions[k], DT_NO_VERSION);
        atomic_init(&v.made[k], DT_NO_VERSION);
    }
    v.decl.task = placement_choose(&d->placement, v.decl.name, d->wholes[v.whole].name,
                                   v.elements * sizeof(float));
    d->items[d->n++] = v;
    return true;
}

static bool
append_parts(struct declared *d, const struct dt_declaration *decl, uint32_t whole)
{
    uint64_t d0 = decl->shape[0], row = d->wholes[whole].elements / d0;
    uint32_t k, n = d->wholes[whole].n_parts;

    for (k = 0; k < n; k++) {
        struct partition_run run = partition_split(d0, n, k);
        struct variable part = {.decl = *decl, .whole = whole, .start = run.start * row};

        partition_name(decl->name, k, part.decl.name, sizeof(part.decl.name));
        part.decl.shape[0] = run.n;
        if (!append_item(d, part))
            return false;
    }
    return true;
}

static void
drop_last(struct declared *d)
{
    const struct whole *w = &d->wholes[--d->n_wholes];

    while (d->n > w->first) {
        d->n--;
        free(d->items[d->n].homes);
        free((void *)d->items[d->n].versions);
        free((void *)d->items[d->n].made);
    }
}

static enum dtw_status
append(struct dtw_client *client, const struct dt_declaration *decl, uint32_t n_parts,
       struct dtw_error *err)
{
    struct declared *d = &client->declared;
    struct variable alone = {.decl = *decl, .whole = d->n_wholes};
    bool good = reserve(d, n_parts);

    if (good) {
        struct whole *w = &d->wholes[d->n_wholes++];

        memcpy(w->name, decl->name, sizeof(w->name));
        w->elements = dt_declaration_elements(decl);
        w->first = d->n;
        w->n_parts = n_parts;
        good = is_cut(d, decl) ? append_parts(d, decl, alone.whole) : append_item(d, alone);
        if (!good)
            drop_last(d);
    }
    return good ? DTW_OK : client_error(err, DTW_NO_MEMORY, "short of memory");
}

/* How many variables of psd it becomes, and whether there is room and names for them. */
static enum dtw_status
count_parts(const struct declared *d, const struct dt_declaration *decl, uint32_t *n,
            struct dtw_error *err)
{
    uint64_t parts = 1, k;
    char name[DT_MAX_NAME + 1];

    if (is_known_name(d, decl->name))
        return client_error(err, DTW_INVALID, "variable %s is declared twice", decl->name);
    if (is_cut(d, decl))
        parts = partition_count(&d->partition, decl->shape[0], dt_declaration_elements(decl));
    if (parts > DT_MAX_VARIABLES - d->n)
        return client_error(err, DTW_INVALID, "at most %d variables%s", DT_MAX_VARIABLES,
                            is_cut(d, decl) ? " and parts of variables" : "");
    for (k = 0; is_cut(d, decl) && k < parts; k++) {
        if (!partition_name(decl->name, k, name, sizeof(name)))
            return client_error(err, DTW_INVALID,
                                "variable %s: with /part_%llu its name has more than %d bytes",
                                decl->name, (unsigned long long)k, DT_MAX_NAME);
        if (is_known_name(d, name))
            return client_error(err, DTW_INVALID, "variable %s is declared twice", name);
    }
    *n = (uint32_t)parts;
    return DTW_OK;
}

enum dtw_status
dtw_declare(struct dtw_client *client, const struct dtw_variable *variable, unsigned *index,
            struct dtw_error *err)
{
    struct dt_declaration decl = {.n_dims = 0};
    uint32_t n_parts = 1;
    enum dtw_status status = client_enter(client, err);

    if (status != DTW_OK)
        return status;
    if (!variable)
        status = client_error(err, DTW_INVALID, "no variable");
    else if (client->declared.closed)
        status = client_error(err, DTW_INVALID, "variables are declared before dtw_init");
    else
        status = fill(variable, &decl, err);
    if (status == DTW_OK)
        status = count_parts(&client->declared, &decl, &n_parts, err);
    if (status == DTW_OK)
        status = append(client, &decl, n_parts, err);
    if (status == DTW_OK && index)
        *index = client->declared.n_wholes - 1;
    client_exit(client);
    return status;
}

enum dtw_status
dtw_partition(struct dtw_client *client, const char *how, struct dtw_error *err)
{
    struct partition p;
    enum dtw_status status = client_enter(client, err);

    if (status != DTW_OK)
        return status;
    status = partition_parse(how, &p, err);
    if (status == DTW_OK && client->declared.closed)
        status = client_error(err, DTW_INVALID, "dtw_partition comes before dtw_declare");
    if (status == DTW_OK)
        client->declared.partition = p;
    client_exit(client);
    return status;
}

enum dtw_status
dtw_place(struct dtw_client *client, const char *name, unsigned task, struct dtw_error *err)
{
    enum dtw_status status = client_enter(client, err);

    if (status != DTW_OK)
        return status;
    if (!name || !*name || strlen(name) > DT_MAX_NAME)
        status = client_error(err, DTW_INVALID, "dtw_place: a name of 1 to %d bytes", DT_MAX_NAME);
    else if (task >= client->n_tasks)
        status = client_error(err, DTW_INVALID, "variable %s: there is no ps task %u, only 0..%u",
                              name, task, client->n_tasks - 1);
    else if (client->declared.closed || is_known_name(&client->declared, name))
        status =
            client_error(err, DTW_INVALID, "variable %s: dtw_place comes before dtw_declare", name);
    else if (!placement_pin(&client->declared.placement, name, task))
        status = client_error(err, DTW_NO_MEMORY, "short of memory");
    client_exit(client);
    return status;
}

static bool
encode_body(const struct declared *d, struct dt_buffer *body)
{
    uint32_t i;

    dt_write_array(body, d->n);
    for (i = 0; i < d->n; i++)
        dt_declaration_encode(body, &d->items[i].decl);
    return !body->failed;
}

/* [index, variable id, homes] */
static bool
read_home(struct dtw_client *client, const struct task *t, struct dt_reader *r)
{
    uint32_t n = dt_read_array(r, 64);
    uint64_t index = dt_read_u64_max(r, DT_MAX_VARIABLES);
    uint64_t id = dt_read_u64_max(r, UINT32_MAX);
    struct dt_bytes homes = dt_read_bin(r, DT_MAX_BODY_BYTES);
    struct variable *v;
    uint32_t i;

    if (r->failed || n < 3 || index >= client->declared.n)
        return false;
    v = &client->declared.items[index];
    if (v->decl.task != t->index || homes.len != v->n_slices)
        return false;
    for (i = 0; i < homes.len; i++) {
        if (homes.p[i] >= t->n_shards || !client_uses_shard(client, homes.p[i], t->n_shards))
            return false;
    }
    v->id = (uint32_t)id;
    memcpy(v->homes, homes.p, homes.len);
    for (i = 3; i < n; i++)
        dt_read_skip(r);
    return !r->failed;
}

static bool
read_homes(struct dtw_client *client, const struct task *t, const struct dt_buffer *body)
{
    uint32_t i, n, expected = 0;
    struct dt_reader r;

    for (i = 0; i < client->declared.n; i++)
        expected += client->declared.items[i].decl.task == t->index;
    dt_reader_init(&r, body->data, body->len);
    n = dt_read_array(&r, DT_MAX_VARIABLES);
    for (i = 0; i < n; i++) {
        if (!read_home(client, t, &r))
            return false;
    }
    return !r.failed && n == expected;
}

static struct dtw_handle *
create_request(struct dtw_client *client, struct dtw_error *err)
{
    struct dtw_handle *h = handle_create(client);
    uint32_t i;

    for (i = 0; h && i < client->n_tasks; i++) {
        struct message *m = message_create(client->tasks[i].shards[0], DT_OP_DECLARE, 0);

        if (m && encode_body(&client->declared, &m->body)) {
            handle_add(h, m);
            continue;
        }
        message_destroy(m);
        handle_destroy(h);
        h = NULL;
    }
    if (!h)
        client_error(err, DTW_NO_MEMORY, "short of memory, or declarations of more than 1 MiB");
    return h;
}

enum dtw_status
declare_send(struct dtw_client *client, struct dtw_error *err)
{
    struct dtw_handle *h = create_request(client, err);
    enum dtw_status status;
    uint32_t i;

    if (!h)
        return DTW_NO_MEMORY;
    status = handle_run(h, &h, DT_FOREVER, true, err);
    if (!h)
        return status;
    for (i = 0; status == DTW_OK && i < client->n_tasks; i++) {
        struct task *t = &client->tasks[i];

        if (read_homes(client, t, &h->control[i].body))
            t->declared_incarnation = t->incarnation;
        else
            status = client_error(err, DTW_PROTOCOL,
                                  "ps task %u at %s: an illegal reply to DECLARE", i, t->endpoint);
    }
    handle_destroy(h);
    return status;
}
