/* A private Redis, clients of its guards, and looking at what stands in it. */
#ifndef TEST_LOCK_WORLD_H
#define TEST_LOCK_WORLD_H

#include "../../lockkit/lockkit.h"
#include "../../loadgen/sandbox.h"

#include <stdarg.h>

extern struct sandbox *world_sandbox;
extern struct sandbox_server *world_redis;

/* Group set-up and tear-down of cmocka. */
int world_open(void **state);
int world_close(void **state);

/* A client of the guard, on the world's Redis or on another loopback port. NULL with a message. */
lk_client *world_client(const char *guard, const lk_options *options);
lk_client *world_client_at(const char *guard, int port, const lk_options *options);

/* One attempt or more, exact or default lease (lease_ms 0), no owner. */
lk_status world_acquire(lk_client *client, const char *key, int64_t lease_ms, int64_t wait_ms,
                        lk_hold *hold);

/* One command in hiredis format: its integer; 0 for nil, 1 for any other text; INT64_MIN for an
 * error. */
int64_t world_ask(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* ... its text, "" for nil or none. */
void world_ask_text(char *ret, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* True as soon as the command's integer is want; false when it was not within wait_ms. */
bool world_becomes(int64_t want, int64_t wait_ms, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
