/* The museum as a teacher gets it: the lab records, `loadgen site` makes the pages, and a browser
 * opens them as files. One per test program. */
#ifndef MUSEUM_RIG_H
#define MUSEUM_RIG_H

#include "browser.h"

enum { MUSEUM_WAIT_MS = 60000, MUSEUM_TEXT_MAX = 4096, MUSEUM_PATH_MAX = 700 };

extern struct museum_rig {
    struct sandbox *sandbox;
    struct browser browser;
    json_t *lab; /* what was recorded */
    char folder[SANDBOX_TEXT_MAX + 16];
    char output[MUSEUM_TEXT_MAX]; /* of the last program */
} museum;

/* Group set-up and tear-down: records the runs of all scenes and of the opening, makes the site. */
int museum_open(void **state);
int museum_close(void **state);
/* Group set-up of a program that makes the site itself: sandbox, folder and browser. */
int museum_open_empty(void **state);

/* Runs build/NAME with these arguments, NULL-terminated. Returns its exit status. */
int museum_run(const char *name, const char *const *args);
/* `loadgen site` with this recording; a folder in the sandbox. Returns its exit status. */
int museum_site(const json_t *lab, const char *folder);

/* Loads a page ("zh/index.html#late/3"), by its address as a file, and waits for its player. */
bool museum_go(const char *page);

/* The one QR code on the screen of the current window, as a program reads it that knows nothing of
 * how it was made. False: it does not read exactly one. */
bool museum_read_code(char *ret_text, size_t size);

#endif
