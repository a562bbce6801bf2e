/*
 * analyzer.h - included before each source by check_tidy.sh: tells the analyzer that dt_fail returns
 * the code that it was given, so that paths on which it "succeeds" are not followed.
 */
#include "proto/base/error.h"

#define dt_fail(err, code, ...) ((void)(dt_fail)((err), (code), __VA_ARGS__), (code))
