/*
 * csv.h - private to dataset*.c: one CSV file as a data set.
 *
 * Every cell is a number ('.' in every locale, finite); one column holds the label, the others are the
 * features in their order. What line and column means is told with each error.
 */
#ifndef TRAIN_CSV_H
#define TRAIN_CSV_H

#include <stdbool.h>

#include "worker/train/dataset.h"

struct csv_info { /* what the file looks like */
    bool header;
    uint64_t header_hash; /* of the names in their order */
    uint32_t label;       /* column, from 1 */
    char label_name[64];  /* "" without a header */
};

enum dt_status csv_load(const char *path, const struct dataset_options *options,
                        struct dataset *out, struct csv_info *info, struct dt_error *err);

#endif
