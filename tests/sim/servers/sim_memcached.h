/*
 * A memcached in memory, asked in bytes: the text protocol as lockkit speaks it (memcached's
 * doc/protocol.txt). lockkit/memcached runs as it is. test_memcached_model compares the answers
 * with those of a real memcached.
 */
#ifndef SIM_MEMCACHED_H
#define SIM_MEMCACHED_H

#include "sim_net.h"

enum { SIM_MEMCACHED_ITEMS_MAX = 256, SIM_MEMCACHED_TEXT_MAX = 256, SIM_MEMCACHED_PORT = 11211 };

struct sim_memcached_item {
    char key[SIM_MEMCACHED_TEXT_MAX], value[SIM_MEMCACHED_TEXT_MAX];
    uint64_t cas;
    int64_t until_s; /* of its own clock; 0: none */
};

struct sim_memcached {
    struct sim_host host; /* the first member */
    uint64_t last_cas;
    size_t n;
    struct sim_memcached_item items[SIM_MEMCACHED_ITEMS_MAX];
};

/* Its clock, in whole seconds: it ticks once a second, and begins anywhere within one. */
int64_t sim_memcached_now_s(const struct sim_memcached *server);
/* One command, if all of it is there: what was asked is taken, the answer added. False: more must
 * come. Aborts at commands that lockkit does not send. */
bool sim_memcached_run(struct sim_memcached *server, struct sim_bytes *asked,
                       struct sim_bytes *answer);

/* -- sim_memcached_server.c -------------------------------------------------------------------- */

void sim_memcached_start(void); /* within sim_run() */
struct sim_memcached *sim_memcached(void);
/* It is down, and has forgotten everything, when it is back. */
void sim_memcached_kill(void);
void sim_memcached_restart(void);
/* Forgets one or all of its keys, as under memory pressure or flush_all. Returns how many. */
size_t sim_memcached_forget(bool all);

#endif
