/*
 * record_private.h - private to record*.c: the frames of a record.
 */
#ifndef TRAIN_RECORD_PRIVATE_H
#define TRAIN_RECORD_PRIVATE_H

#include "worker/train/record.h"

#define RECORD_MAGIC "DTWREC1\n"
#define RECORD_MAGIC_BYTES 8u
#define RECORD_HEAD_BYTES 5u /* kind and length */
#define RECORD_CHECK_BYTES 4u
#define RECORD_MAX_HEADER (1u << 20)
#define RECORD_MAX_PAYLOAD (64u << 20)

/* `number`: of the frame in its file, from 0. */
uint32_t record_check(enum record_kind kind, uint64_t number, const void *payload, size_t bytes);

#endif
