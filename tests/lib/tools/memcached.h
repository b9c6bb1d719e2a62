/* Asking the sandbox's memcached by hand. */
#ifndef TEST_MEMCACHED_H
#define TEST_MEMCACHED_H

#include "sandbox.h"

enum { MEMCACHED_LINE_MAX = 512 };

/* One command; the first line of its answer, without its end. False when there was none. */
bool memcached_ask(const struct sandbox_server *server, char ret[MEMCACHED_LINE_MAX],
                   const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Keys that stand in it; -1: it did not say. */
int memcached_count(const struct sandbox_server *server);

#endif
