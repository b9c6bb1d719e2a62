/* Threads of one client that line up for a key of a lock server in memory, in real time. */
#ifndef TEST_LINE_RIG_H
#define TEST_LINE_RIG_H

#include "lk_fake.h"
#include "lock_hooks.h"

#define LINE_KEY "lock:item:1"

enum { LINE_MAX_WAITERS = 8, LINE_PATIENCE_MS = 20000, LINE_FAR_MS = 60000 };

struct line_rig {
    struct fake fake;
    lk_client *client;
    lk_hold hold; /* the test's own */
    struct asker waiters[LINE_MAX_WAITERS];
    int n_waiters;
};

/* One for all tests of a binary: a failed assertion may leave threads behind. options.local_queue
 * is set. */
extern struct line_rig line;
void line_open(lk_options options);

/* The test's own attempt at the key. */
lk_status line_take(int64_t lease_ms);
/* One more waiter, asleep in line when it returns. */
struct asker *line_join(int64_t wait_ms, int64_t lease_ms);
/* Each waiter is granted in turn, and releases; then the client is closed. */
void line_serve_all(void);
/* For wait_until(): this waiter's acquisition has ended. */
bool line_has_ended(void *waiter);
lk_stats line_stats(void);

#endif
