/*
 * config.h - psd's settings: one option table for the command line, the INI file and -o key=value.
 *
 * Later wins: default, INI file (-f), -o key=value, command line. A list that is given on a later
 * level replaces the list of the earlier one.
 */
#ifndef PSD_DAEMON_CONFIG_H
#define PSD_DAEMON_CONFIG_H

#include <stdio.h>

#include "proto/base/log.h"
#include "proto/base/option.h"

enum shard_ports { PORTS_EPHEMERAL = 0, PORTS_CONSECUTIVE = 1 };

struct config {
    struct dt_options_head head;
    /* command line only */
    char *file;     /* owned */
    char **options; /* owned: -o key=value */
    bool check;
    bool dump;
    bool help;
    bool version;
    /* settings */
    char **listen; /* owned: never empty after config_load */
    char *admin;   /* owned; NULL: the default; "none": no admin socket */
    uint64_t shards;
    int shard_ports;  /* enum shard_ports */
    char **advertise; /* owned: the ports told for shards 1, 2, ...; NULL: as bound */
    uint64_t window;
    uint64_t window_bytes;
    uint64_t max_session_bytes;
    uint64_t memory_quota;
    uint64_t together_bytes;
    int64_t stop_timeout_ms;
    int log_level;     /* index of the option's choices; config_log_level() */
    char *private_dir; /* owned; NULL: none */
    uint64_t io_threads;
    bool once;
    bool insecure;
};

extern const struct dt_option config_table[];

/* Read command line, file and -o; resolve automatic values; check what can be checked without a
 * socket (not after --help or --version). DT_E_USAGE (64) or DT_E_CONFIG (78). `c` is to be given to
 * config_deinit also on failure. */
enum dt_status config_load(struct config *c, int argc, char **argv, struct dt_error *err);
void config_deinit(struct config *c);

/* One INI file into `c`. Errors name file:line. */
enum dt_status config_read_file(struct config *c, const char *path, struct dt_error *err);

/* Syntax of the endpoints, the rule for listening beyond loopback, numbers that must fit together. */
enum dt_status config_check(const struct config *c, struct dt_error *err);

enum dt_log_level config_log_level(const struct config *c);
void config_help(FILE *out);

#endif
