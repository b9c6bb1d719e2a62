/* Threads of one client that queue locally for a key of the fake lock server, in real time. */
#ifndef TEST_LINE_RIG_H
#define TEST_LINE_RIG_H

#include "lk_fake.h"
#include "lock_hooks.h"

#define LINE_KEY "lock:item:1"

enum { LINE_MAX_WAITERS = 8, LINE_PATIENCE_MS = 20000, LINE_FAR_MS = 60000 };

struct line_rig {
    struct fake fake;
    lk_client *client;
    lk_hold hold; /* of the test itself */
    struct asker waiters[LINE_MAX_WAITERS];
    int n_waiters;
};

/* One for all tests of a binary: a failed assertion may leave threads running. line_open() sets
 * options.local_queue. */
extern struct line_rig line;
void line_open(lk_options options);

/* Tries to acquire the key for the test itself. */
lk_status line_take(int64_t lease_ms);
/* Starts one more waiter. When it returns, the waiter sleeps in the queue. */
struct asker *line_join(int64_t wait_ms, int64_t lease_ms);
/* Grants and releases the lock for each waiter in turn, then closes the client. */
void line_serve_all(void);
/* For wait_until(): this waiter's acquisition has ended. */
bool line_has_ended(void *waiter);
lk_stats line_stats(void);

#endif
