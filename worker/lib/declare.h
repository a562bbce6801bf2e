/*
 * declare.h - the variables of the job: declarations, placement over ps tasks, homes, versions held.
 * Private.
 */
#ifndef WORKER_LIB_DECLARE_H
#define WORKER_LIB_DECLARE_H

#include <stdatomic.h>

#include "proto/wire/declare.h"
#include "worker/lib/dtworker.h"
#include "worker/lib/partition.h"
#include "worker/lib/placement.h"

struct variable { /* as psd knows it: a whole one, or a part of one */
    struct dt_declaration decl;
    uint32_t whole; /* index of what the application declared */
    uint64_t start; /* its first element in the application's buffer */
    uint64_t elements;
    uint32_t n_slices;
    uint32_t id;                /* on its ps task */
    uint8_t *homes;             /* owned: the shard of each slice */
    _Atomic uint64_t *versions; /* owned: of each slice at its last pull; DT_NO_VERSION: none */
    _Atomic uint64_t *made;     /* owned: by the last push of each slice; DT_NO_VERSION: none */
};

struct whole { /* as the application declared it: one buffer */
    char name[DT_MAX_NAME + 1];
    uint64_t elements;
    uint32_t first; /* index of its first part in items; the others follow */
    uint32_t n_parts;
};

struct declared {
    struct variable *items; /* owned */
    uint32_t n, cap;
    struct whole *wholes; /* owned */
    uint32_t n_wholes, cap_wholes;
    struct partition partition; /* of those that are declared from here on */
    struct placement placement;
    bool closed; /* dtw_init was called */
};

struct dtw_client;

bool declare_init(struct declared *d, uint32_t n_tasks);
void declare_deinit(struct declared *d);
uint64_t declare_fingerprint(const struct declared *d);
void declare_forget_versions(struct declared *d);
void declare_forget_made(struct declared *d); /* a push begins */
/* DECLARE to every ps task; keeps ids and homes. Lock held. */
enum dtw_status declare_send(struct dtw_client *client, struct dtw_error *err);

#endif
