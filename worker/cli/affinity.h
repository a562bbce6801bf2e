/*
 * affinity.h - which processors compute. Linux's numbers of processors, among those that this process may use.
 *
 * Two threads that compute can share one processor for tenths of a second while another one is idle: the scheduler
 * moves them late where the processors show no common cache, as in many virtual machines, and a synchronous step
 * waits for both. Bound ones cannot. What talks to psd stays free. Threads: main alone.
 */
#ifndef CLI_AFFINITY_H
#define CLI_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/base/error.h"

/* What this process may use; nothing when that cannot be found out. */
cpu_set_t affinity_allowed(void);
int processors(void); /* how many these are; at least 1 */
/* NULL-terminated parts of "0,2-3"; NULL: the empty set, which binds nobody. DT_E_USAGE names what is wrong. */
enum dt_status affinity_parse(char **parts, cpu_set_t *out, struct dt_error *err);
/* All threads of this process but the caller: the BLAS library's, before a client is opened. */
void affinity_bind_others(const cpu_set_t *set);
/* The caller, and the threads that it makes from now on. */
void affinity_bind(const cpu_set_t *set);
/* As affinity_parse reads it, in ranges; "" of the empty set. false: there is no room for it. */
bool affinity_text(const cpu_set_t *set, char *text, size_t size);
/* Of rank < workers the share, as text for affinity_parse, where `workers` with `each` computing threads divide the
 * processors of `allowed`. false: they are more or fewer than the processors, so it is better that nobody is bound:
 * bound to one processor two would share it while another one is idle. */
bool affinity_share(const cpu_set_t *allowed, unsigned rank, unsigned workers, unsigned each,
                    char *text, size_t size);

#endif
