/* Finds the events that bear out what a scene tells. */
#ifndef BIND_H
#define BIND_H

#include "museum.h"
#include "scenes.h"

/* For each beat the index of its event in the record's timeline. */
struct bound {
    int n;
    size_t at[SCENE_BEATS_MAX];
};

/* record: one of the results of `hazards run --json`. The record's own outcome is compared, too.
 * 0, or -1 with message: what the record does not bear out. */
int scene_bind(const struct scene *scene, const json_t *record, struct bound *ret,
               char message[MUSEUM_MESSAGE_MAX]);

/* The scene's record among the results; NULL: it was not recorded. */
const json_t *scene_record(const struct scene *scene, const json_t *results);

#endif
