/* Many threads of one client, each with a key of its own: each must find its own token there. So no
 * thread gets the answer to another one's command. */
#ifndef TEST_OWN_KEYS_H
#define TEST_OWN_KEYS_H

#include "lockkit.h"

/* 64 threads acquire, inspect and release 30 times each. Fails the test if one of them is refused,
 * or gets another answer. */
void own_keys_test(lk_client *client, int64_t lease_ms, int64_t wait_ms);

#endif
