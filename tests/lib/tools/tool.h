/* build/lockkit as a child process, on a private Redis: for the tests of the command line. */
#ifndef TEST_TOOL_H
#define TEST_TOOL_H

#include "sandbox.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

enum { TOOL_OUTPUT_MAX = 20000, TOOL_ENDS_WITHIN_MS = 60000 };

extern struct sandbox *tool_sandbox;
extern struct sandbox_server *tool_redis;

/* Group set-up and tear-down of cmocka. LOCKKIT_ENDPOINTS names the Redis from then on. */
int tool_open(void **state);
int tool_close(void **state);
/* Set-up of a test: the Redis is empty. */
int tool_empty(void **state);

struct tool {
    pid_t pid;
    int in; /* its standard input; -1 once closed */
    char output[SANDBOX_TEXT_MAX + 32], messages[SANDBOX_TEXT_MAX + 32]; /* files */
};

/* args: NULL-terminated. Fails the test when it cannot be started. */
struct tool tool_start(const char *const *args);
#define TOOL(...) tool_start((const char *const[]){__VA_ARGS__, NULL})
/* Closes its input; waits for its end; returns its exit status, or 1000 + N when signal N ended it.
 * Fails the test when it does not end. */
int tool_ends(struct tool *tool);
/* Both. */
int tool_run(const char *const *args, struct tool *ret);
#define RUN(ret, ...) tool_run((const char *const[]){__VA_ARGS__, NULL}, (ret))

/* What it has said so far; static, until the next call. */
const char *tool_said(const struct tool *tool);
const char *tool_complained(const struct tool *tool);
/* The same as JSON, the caller's; fails the test when it is none. */
json_t *tool_said_json(const struct tool *tool);
/* True as soon as it has said word. */
bool tool_says(const struct tool *tool, const char *word);

#endif
