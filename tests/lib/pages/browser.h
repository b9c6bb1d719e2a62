/* A headless Chromium, driven through chromedriver (W3C WebDriver: HTTP and JSON). Both end with
 * the sandbox. Calls assert that they succeed. */
#ifndef TEST_BROWSER_H
#define TEST_BROWSER_H

#include "sandbox.h"

#include <jansson.h>
#include <stdbool.h>

struct browser {
    struct sandbox_server *driver;
    char session[64];
};

/* 0, or -1 with a message on stderr. */
int browser_open(struct browser *browser, struct sandbox *sandbox);
void browser_close(struct browser *browser);

void browser_size(struct browser *browser, int width, int height);
void browser_dark(struct browser *browser, bool dark); /* prefers-color-scheme of the user */
void browser_go(struct browser *browser, const char *url);
/* Runs a function body in the page. Returns its result, to be released with json_decref(). */
json_t *browser_run(struct browser *browser, const char *script);
bool browser_is(struct browser *browser, const char *expression);
int64_t browser_number(struct browser *browser, const char *expression);
/* Waits until the expression is true in the page. False: not within wait_ms. */
bool browser_await(struct browser *browser, const char *expression, int64_t wait_ms);
/* A metric of the page's thread: "ScriptDuration" or "TaskDuration", in seconds of CPU time since
 * the first call (Chrome DevTools Protocol, Performance.getMetrics). */
double browser_metric(struct browser *browser, const char *name);
/* Frames that the page draws per second of this time, and the longest gap between two. */
struct browser_frames {
    double per_s, longest_ms;
};
struct browser_frames browser_frames(struct browser *browser, int64_t for_ms);
/* Types keys as a user does, into the focused element. */
void browser_type(struct browser *browser, const char *keys);
/* Prints the console messages of level SEVERE since the last call. Returns how many there were. */
size_t browser_errors(struct browser *browser);
/* Saves the whole page as PNG, with the parts outside the window. */
void browser_picture(struct browser *browser, const char *file);
/* Files that are saved go into this folder, without a question. */
void browser_downloads(struct browser *browser, const char *folder);

/* Windows. Calls act on the current one. */
enum { BROWSER_WINDOW_MAX = 64 };
void browser_window(struct browser *browser, char ret_id[BROWSER_WINDOW_MAX]);
void browser_to_window(struct browser *browser, const char *id);
/* Opens an empty one, and stays in the current one. */
void browser_new_window(struct browser *browser, char ret_id[BROWSER_WINDOW_MAX]);
/* Waits until there is a second window, and goes there. */
void browser_next_window(struct browser *browser, char ret_id[BROWSER_WINDOW_MAX]);
/* Closes the current window, and goes to this one. */
void browser_end_window(struct browser *browser, const char *next);

#endif
