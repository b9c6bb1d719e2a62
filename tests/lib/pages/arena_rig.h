/* The arena of `loadgen serve`: one run under one fault. Each tile is compared with what this test
 * asks the service itself: the audit, the lock, the reports of the load. */
#ifndef ARENA_RIG_H
#define ARENA_RIG_H

#include "page_rig.h"

enum { ARENA_RUN_MS = 2 * PAGE_SALE_MS };

#define TILE(guard) "document.querySelector('.tile[data-guard=" guard "]')"
/* Its text about the fault matches. */
#define TILE_TOLD(guard, words)                                                                    \
    "/" words "/.test(" TILE(guard) ".querySelector('.story').textContent)"
#define TILE_IS(guard, state) TILE(guard) ".dataset.state === '" state "'"
#define ARENA_OVER                                                                                 \
    "/^Over/.test(document.getElementById('summary').textContent) && "                             \
    "!document.getElementById('start').disabled"

/* Loads the arena with these settings ("fault=pause"), starts, and waits for the end. False: none
 * within ARENA_RUN_MS; the page's text is then printed. */
bool arena_run(const char *settings);
bool arena_await_end(void);
/* How many tiles are not as they should be. Prints them. */
size_t arena_contradictions(void);

#endif
