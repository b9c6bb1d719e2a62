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
void browser_dark(struct browser *browser, bool dark); /* what the user is said to prefer */
void browser_go(struct browser *browser, const char *url);
/* Runs a function body in the page; what it returns, to be released with json_decref(). */
json_t *browser_run(struct browser *browser, const char *script);
bool browser_is(struct browser *browser, const char *expression);
int64_t browser_number(struct browser *browser, const char *expression);
/* Until the expression is true in the page; false: not within wait_ms. */
bool browser_await(struct browser *browser, const char *expression, int64_t wait_ms);
/* What the browser counts of the page's thread: "ScriptDuration", "TaskDuration" in seconds of CPU
 * time, from the first call on (Chrome DevTools Protocol, Performance.getMetrics). */
double browser_metric(struct browser *browser, const char *name);
/* Types keys as a user does, wherever the focus is. */
void browser_type(struct browser *browser, const char *keys);
/* Messages of the console at level SEVERE since the last call, printed; how many. */
size_t browser_errors(struct browser *browser);
/* Writes what is to be seen as PNG; the whole page with its scrolled-off part. */
void browser_picture(struct browser *browser, const char *file);

#endif
