/* Runs build/lockkit as a child process on a private Redis, for the tests of the command. */
#ifndef TEST_TOOL_H
#define TEST_TOOL_H

#include "sandbox.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

enum { TOOL_OUTPUT_MAX = 20000, TOOL_ENDS_WITHIN_MS = 60000 };

extern struct sandbox *tool_sandbox;
extern struct sandbox_server *tool_redis;

/* Group set-up and tear-down of cmocka. tool_open() sets LOCKKIT_ENDPOINTS to the Redis. */
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
/* Closes its input and waits for its end. Returns its exit status, or 1000 + N if signal N ended
 * it. Fails the test if it does not end. */
int tool_ends(struct tool *tool);
/* tool_start() and tool_ends(). */
int tool_run(const char *const *args, struct tool *ret);
#define RUN(ret, ...) tool_run((const char *const[]){__VA_ARGS__, NULL}, (ret))

/* Its standard output and standard error so far; static, until the next call. */
const char *tool_said(const struct tool *tool);
const char *tool_complained(const struct tool *tool);
/* Its standard output as JSON; the caller releases it. Fails the test if it is no JSON. */
json_t *tool_said_json(const struct tool *tool);
/* Waits until its standard output contains word. */
bool tool_says(const struct tool *tool, const char *word);

#endif
