/*
 * A process of the load generator that runs one sale. Its output goes to memory files.
 *
 * Threading: one thread calls all of it.
 */
#ifndef DEMO_CHILD_H
#define DEMO_CHILD_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

enum { DEMO_MESSAGE_MAX = 400 };

struct demo_child {
    pid_t pid;    /* 0: none runs */
    int out, err; /* memory files with its output, while pid is not 0 */
};

/* Starts the loadgen beside this program's binary with these arguments, NULL-terminated. It is
 * ended after DEMO_SECONDS_MAX, and when this process ends. False: ret_message says why not. */
bool demo_child_start(struct demo_child *child, char *const *argv,
                      char ret_message[DEMO_MESSAGE_MAX]);
/* True: it has ended. kill: it is ended first. *ret_report is then the JSON that it printed, to be
 * released with json_decref(); or NULL, and ret_message says why. */
bool demo_child_ended(struct demo_child *child, bool kill, json_t **ret_report,
                      char ret_message[DEMO_MESSAGE_MAX]);

#endif
