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
    struct sim_memcached *server = &at.server;
    for (size_t i = 0; i < server->n;)
        if (server->items[i].until_s != 0 &&
            server->items[i].until_s <= sim_memcached_now_s(server))
            server->items[i] = server->items[--server->n]; /* it has ended anyway */
        else
            i++;
    const size_t forgotten = all || server->n == 0 ? server->n : 1;
    if (!all && server->n > 0)
        server->items[sim_below((uint32_t)server->n)] = server->items[server->n - 1];
    server->n -= forgotten;
    return forgotten;
}
