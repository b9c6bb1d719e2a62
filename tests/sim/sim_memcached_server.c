/* The server on the simulated net. */
#include "sim_memcached.h"
#include "sim_threads.h"

#include <stdlib.h>
#include <string.h>

static struct {
    struct sim_memcached server;
    int64_t tick_us; /* where in a second its clock ticks */
} at;

struct sim_memcached *sim_memcached(void)
{
    return &at.server;
}

int64_t sim_memcached_now_s(const struct sim_memcached *server)
{
    (void)server;
    return 2 + (sim_now_us() + at.tick_us) / 1000000; /* it begins with 2, as the real one does */
}

static void on_bytes(struct sim_host *host, struct sim_wire *wire)
{
    struct sim_memcached *server = (struct sim_memcached *)host;
    struct sim_bytes answer = {0};
    while (sim_memcached_run(server, &wire->asked, &answer))
        continue;
    if (answer.n > 0)
        sim_net_answer(wire, answer.at, answer.n);
    free(answer.at);
}

void sim_memcached_start(void)
{
    memset(&at, 0, sizeof at);
    at.tick_us = sim_below(1000000);
    at.server.host =
        (struct sim_host){.name = "127.0.0.9", .port = SIM_MEMCACHED_PORT, .on_bytes = on_bytes};
    sim_net_add(&at.server.host);
}

void sim_memcached_kill(void)
{
    at.server.host.down = true;
    at.server.n = 0;
    sim_net_break(&at.server.host);
}

/* Its clock begins anew, too: nothing that it keeps is older. */
void sim_memcached_restart(void)
{
    at.server.host.down = false;
    at.server.host.stopped_until_us = 0;
    at.tick_us = sim_below(1000000);
}

size_t sim_memcached_forget(bool all)
{
    size_t forgotten = 0;
    for (size_t i = 0; i < at.server.n;)
        if (all || sim_one_in(2)) {
            at.server.items[i] = at.server.items[--at.server.n];
            forgotten++;
        } else {
            i++;
        }
    return forgotten;
}
