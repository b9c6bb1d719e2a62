/*
 * The museum: recordings of the lab and of the demo as a folder of static pages that play them. It
 * opens by double click, and needs neither a server nor a network.
 */
#ifndef MUSEUM_H
#define MUSEUM_H

#include <jansson.h>

enum { MUSEUM_MESSAGE_MAX = 512 };

/* lab: JSON of `hazards run --json`. demo: of `loadgen demo --json`, levels: of `loadgen levels
 * --json`, or NULL. */
struct museum_recordings {
    const json_t *lab, *demo, *levels;
};

/* Writes the pages of both languages into the folder out, which is made if it is missing. A scene
 * that was not recorded is named on its page. Returns 0, or -1 with message: a file cannot be
 * written, the lab's JSON has another form, or a recording contradicts what its scene or the lesson
 * tells. */
int museum_make(const struct museum_recordings *recordings, const char *out,
                char message[MUSEUM_MESSAGE_MAX]);

#endif
