/* Two clients of one guard, for tests that look at one from the other. */
#ifndef TEST_TWO_CLIENTS_H
#define TEST_TWO_CLIENTS_H

#include "lockkit.h"

extern lk_client *client, *other;

/* Empties the servers of the world and opens both. 0, or -1 with a message. */
int two_clients_open(const char *guard);
/* Teardown of a test. */
int two_clients_close(void **state);

#endif
