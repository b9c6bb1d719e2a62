/* The arena of `loadgen serve`: one run under one fault. Each tile is compared with what this test
 * asks the service itself: the audit, the lock, the reports of the load. */
#ifndef ARENA_RIG_H
#define ARENA_RIG_H

#include "page_rig.h"

enum {
    ARENA_RUN_MS = 2 * PAGE_SALE_MS,
    ARENA_SERVE = 23, /* tiles: all guards */
    ARENA_REDIS = 17  /* those that need no server but Redis */
};

#define TILE(guard) "document.querySelector('.tile[data-guard=" guard "]')"
/* Its text about the fault matches. */
#define TILE_TOLD(guard, words)                                                                    \
    "/" words "/.test(" TILE(guard) ".querySelector('.story').textContent)"
#define TILE_IS(guard, state) TILE(guard) ".dataset.state === '" state "'"
#define ARENA_OVER                                                                                 \
    "/^Over/.test(document.getElementById('summary').textContent) && "                             \
    "!document.getElementById('start').disabled"

/* Loads the arena with these settings ("fault=pause") and waits for so many tiles; arena_run() also
 * starts and waits for the end. False: not within ARENA_RUN_MS; the page's text is then printed. */
bool arena_open(int tiles, const char *settings);
bool arena_run(int tiles, const char *settings);
bool arena_await_end(void);
/* How many tiles are not as they should be; one more if they are not so many. Prints them. */
size_t arena_contradictions(int tiles);

#endif
