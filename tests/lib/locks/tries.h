/* Counts the tries at a key and the threads that make them. One count per test binary. */
#ifndef TEST_TRIES_H
#define TEST_TRIES_H

#include <stdbool.h>

enum { TRIES_THREADS_MAX = 16 };

/* Restarts the count, for this key (borrowed). */
void tries_begin(const char *key);
/* An environment's named-point hook; ctx is not used. */
void tries_note(void *ctx, const char *point, const char *key);

int tries_made(void);
int tries_threads(void); /* threads that made a try; TRIES_THREADS_MAX at most */
/* For wait_until(): at least *(int *)n tries, or threads. */
bool tries_reached(void *n);
bool tries_threads_reached(void *n);

#endif
