/*
 * main.c - psd. Block the signals, read the configuration, run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/allocation.h"
#include "proto/base/descriptors.h"
#include "proto/base/standard.h"
#include "psd/daemon/config.h"
#include "psd/daemon/daemon.h"
#include "psd/daemon/signals.h"

static void
dump(const struct config *c)
{
    printf(
        "# psd.conf - settings of psd, see psd.conf(5). A key that is a comment has its default.\n"
        "[psd]\n");
    dt_options_dump(config_table, c, stdout);
}

int
main(int argc, char **argv)
{
    struct dt_error err = {0};
    struct config config;
    enum dt_status s;
    int code = 0;

    dt_standard_files_open();
    if (argc == 2 && strcmp(argv[1], "--print-options") == 0) {
        dt_options_list(config_table, "", stdout);
        return fflush(stdout) == 0 ? 0 : 74;
    }
    signals_block();
    dt_allocation_keep();
    dt_descriptors_raise();
    dt_log_open("psd", DT_LOG_INFO);
    s = config_load(&config, argc, argv, &err);
    dt_log_set_level(config_log_level(&config));
    if (s != DT_OK) {
        fprintf(stderr, "psd: %s\n", err.text);
        code = dt_status_exit_code(s);
    } else if (config.help) {
        config_help(stdout);
    } else if (config.version) {
        printf("psd %s\n", PSD_VERSION);
    } else if (config.dump) {
        dump(&config);
    } else if (!config.check) {
        code = daemon_run(&config, argc, argv);
    }
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0) {
        fprintf(stderr, "psd: standard output could not be written\n");
        code = 74;
    }
    config_deinit(&config);
    return code;
}
