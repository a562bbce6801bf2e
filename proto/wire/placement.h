/*
 * placement.h - ADMIN_PLACEMENT: which variables a job has and where they are held, page by page.
 *
 * request [job, first variable id]   reply body: map, see psd-protocol(7) ADMIN
 */
#ifndef DT_WIRE_PLACEMENT_H
#define DT_WIRE_PLACEMENT_H

#include "proto/wire/envelope.h"

#define DT_PLACEMENT_PAGE 256 /* variables a reply: of any legal declaration they fit into a body */

struct dt_placement {
    char job[DT_MAX_NAME + 1];
    uint32_t first; /* variable id; past the last one: an empty page */
};

void dt_placement_encode(struct dt_buffer *b, uint64_t request, const struct dt_placement *m);
enum dt_status dt_placement_decode(struct dt_head *head, struct dt_placement *m);

#endif
