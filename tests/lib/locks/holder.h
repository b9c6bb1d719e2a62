/*
 * Another process that holds a lock or waits for it. It can be killed or stopped.
 *
 * It is the test binary itself, executed again: the test's main() begins with
 *     if (argc > 1) return holder_main(argc, argv);
 */
#ifndef TEST_HOLDER_H
#define TEST_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct holder {
    pid_t pid;
    int in, out; /* its standard input and output */
};

struct holder_plan {
    const char *guard, *endpoints, *key;
    int64_t lease_ms; /* 0: the default, renewed by the watchdog */
    int64_t default_lease_ms;
    int64_t wait_ms;
    const char *die_at; /* named point at which it kills itself; NULL: none */
    bool tells_loss;    /* prints lk_loss_text() when its hold is lost */
};

int holder_main(int argc, char **argv);

bool holder_start(struct holder *holder, const struct holder_plan *plan);
/* Waits for its next word. False if it is another word, or there is none within a minute. Words:
 *
 * - "waiting": refused for the second time, so it really waits
 *
 * - "held": it holds the lock until holder_release()
 *
 * - "released", or the text of a status
 */
bool holder_says(struct holder *holder, const char *word);
/* Makes it release. */
void holder_release(struct holder *holder);
/* kill -9, then reaps it. Allowed after it has ended by itself. */
void holder_kill(struct holder *holder);
/* Reaps it once it has ended by itself. */
void holder_wait(struct holder *holder);

#endif
