/* Commands to the sandbox's memcached. */
#ifndef TEST_MEMCACHED_H
#define TEST_MEMCACHED_H

#include "sandbox.h"

enum { MEMCACHED_LINE_MAX = 512 };

/* Sends one command; ret gets the first line of the answer without its line end. False if there was
 * no answer. */
bool memcached_ask(const struct sandbox_server *server, char ret[MEMCACHED_LINE_MAX],
                   const char *format, ...) __attribute__((format(printf, 3, 4)));

/* How many keys it holds; -1: no answer. */
int memcached_count(const struct sandbox_server *server);

#endif
