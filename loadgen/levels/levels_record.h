/* Records all schedules of all levels, from a private service with a private Redis. The levels are
 * those that the service itself serves (/web/levels.json). */
#ifndef LEVELS_RECORD_H
#define LEVELS_RECORD_H

#include <jansson.h>
#include <stdatomic.h>

/* seckilld: path of the service. only: id of one level; NULL: all. told: called after each level.
 * Returns what the service serves, each level with its "tree"; NULL after a message on stderr. */
json_t *levels_record(const char *seckilld, const char *only, const atomic_bool *stop,
                      void (*told)(const json_t *level));

#endif
