#include "sim_net.h"
#include "sim_poll.h"
#include "sim_threads.h"

#include <stdlib.h>
#include <string.h>

enum {
    USUAL_US = 200,
    SLOW_US = 5000,
    PATIENCE_DOUBLINGS = 10 /* of 1 ms: as long as lockkit waits */
};

enum packet_kind { BYTES, CONNECT, REFUSED, END, RESET };

struct sim_packet {
    struct sim_packet *next;
    int64_t due_us;
    enum packet_kind kind;
    size_t n;
    char bytes[];
};

static struct {
    struct sim_host *hosts[SIM_HOSTS_MAX];
    size_t n_hosts;
    struct sim_wire *wires;
    struct sim_net_faults faults;
    struct sim_net_counts counts;
} net;

void sim_net_begin(void)
{
    memset(&net, 0, sizeof net);
}

void sim_net_add(struct sim_host *host)
{
    if (net.n_hosts == SIM_HOSTS_MAX)
        abort();
    net.hosts[net.n_hosts++] = host;
}

void sim_net_faults(const struct sim_net_faults *faults)
{
    net.faults = *faults;
}

const struct sim_net_counts *sim_net_counts(void)
{
    return &net.counts;
}

/* -- packets ---------------------------------------------------------------------------------- */

static int64_t delay_us(void)
{
    if (net.faults.late > 0 && sim_one_in(net.faults.late)) {
        net.counts.late++;
        return INT64_C(1000) << (sim_one_in(2) ? PATIENCE_DOUBLINGS + sim_below(2)
                                               : sim_below(PATIENCE_DOUBLINGS));
    }
    return 20 + sim_below(sim_one_in(50) ? SLOW_US : USUAL_US);
}

static void put(struct sim_pipe *pipe, enum packet_kind kind, const char *bytes, size_t n)
{
    struct sim_packet *packet = malloc(sizeof *packet + n);
    if (!packet)
        abort();
    *packet = (struct sim_packet){.due_us = sim_now_us() + delay_us(), .kind = kind, .n = n};
    if (n > 0)
        memcpy(packet->bytes, bytes, n);
    if (packet->due_us < pipe->due_us)
        packet->due_us = pipe->due_us;
    pipe->due_us = packet->due_us;
    *pipe->last = packet;
    pipe->last = &packet->next;
    sim_wake(&net, 1);
}

/* Bytes may arrive in two parts. */
static void put_bytes(struct sim_pipe *pipe, const char *bytes, size_t n)
{
    size_t first = n > 1 && sim_one_in(16) ? 1 + sim_below((uint32_t)n - 1) : n;
    put(pipe, BYTES, bytes, first);
    if (first < n)
        put(pipe, BYTES, bytes + first, n - first);
}

static void drop_all(struct sim_pipe *pipe)
{
    while (pipe->first) {
        struct sim_packet *packet = pipe->first;
        pipe->first = packet->next;
        free(packet);
    }
    pipe->last = &pipe->first;
    pipe->due_us = 0;
}

/* -- what arrives ----------------------------------------------------------------------------- */

static void tell_client(struct sim_wire *wire)
{
    if (wire->fd >= 0)
        sim_poll_wake(wire->fd);
    sim_wake(wire, INT32_MAX);
}

static void leave_host(struct sim_wire *wire)
{
    if (wire->accepted && wire->host->on_end)
        wire->host->on_end(wire->host, wire);
    wire->accepted = false;
    wire->asked.n = 0;
}

/* Nothing more arrives at either end, which both notice. */
static void cut(struct sim_wire *wire)
{
    drop_all(&wire->to_host);
    drop_all(&wire->to_client);
    leave_host(wire);
    put(&wire->to_client, RESET, "", 0);
}

static void at_host(struct sim_wire *wire, const struct sim_packet *packet)
{
    struct sim_host *host = wire->host;
    if (packet->kind == CONNECT) {
        wire->accepted = !host->down && wire->port == host->port;
        put(&wire->to_client, wire->accepted ? CONNECT : REFUSED, "", 0);
        net.counts.refused += host->down;
        net.counts.elsewhere += wire->port != host->port;
    } else if (packet->kind == END) {
        leave_host(wire);
    } else if (wire->accepted) {
        if (sim_one_in(net.faults.cut_before)) {
            net.counts.cut_before++;
            cut(wire);
            return;
        }
        if (sim_one_in(net.faults.silent)) {
            net.counts.silent++;
            wire->silent = true;
            return;
        }
        sim_bytes_add(&wire->asked, packet->bytes, packet->n);
        host->on_bytes(host, wire);
        if (sim_one_in(net.faults.cut_after)) {
            net.counts.cut_after++;
            cut(wire);
        }
    }
}

static void at_client(struct sim_wire *wire, const struct sim_packet *packet)
{
    if (packet->kind == BYTES)
        sim_bytes_add(&wire->answered, packet->bytes, packet->n);
    wire->connected = true;
    wire->ended |= packet->kind == END;
    wire->reset |= packet->kind == RESET || packet->kind == REFUSED;
    tell_client(wire);
}

/* SIM_FOREVER: nothing is on the way. */
static int64_t due_us(const struct sim_wire *wire, bool to_host)
{
    const struct sim_packet *packet = to_host ? wire->to_host.first : wire->to_client.first;
    if (!packet || wire->host->unreachable)
        return SIM_FOREVER;
    /* The kernel of a stopped process connects all the same. */
    const int64_t stopped_us = packet->kind == CONNECT ? 0 : wire->host->stopped_until_us;
    return to_host && packet->due_us < stopped_us ? stopped_us : packet->due_us;
}

static void carry_one(struct sim_wire *wire, bool to_host)
{
    struct sim_pipe *pipe = to_host ? &wire->to_host : &wire->to_client;
    struct sim_packet *packet = pipe->first;
    pipe->first = packet->next;
    if (!pipe->first)
        pipe->last = &pipe->first;
    if (!wire->silent && to_host)
        at_host(wire, packet);
    else if (!wire->silent)
        at_client(wire, packet);
    free(packet);
}

/* Both ends have let go of it. */
static void forget_done(void)
{
    for (struct sim_wire **at = &net.wires; *at;) {
        struct sim_wire *wire = *at;
        if (wire->fd >= 0 || wire->accepted || wire->to_host.first) {
            at = &wire->next;
            continue;
        }
        *at = wire->next;
        drop_all(&wire->to_client);
        free(wire->asked.at);
        free(wire->answered.at);
        free(wire);
    }
}

static void *carry(void *arg)
{
    (void)arg;
    for (;;) {
        struct sim_wire *first = NULL;
        bool first_to_host = false;
        int64_t first_us = SIM_FOREVER;
        forget_done();
        for (struct sim_wire *wire = net.wires; wire; wire = wire->next)
            for (int to_host = 0; to_host < 2; to_host++)
                if (due_us(wire, to_host) < first_us) {
                    first_us = due_us(wire, to_host);
                    first = wire;
                    first_to_host = to_host;
                }
        if (first_us > sim_now_us())
            sim_wait(&net, first_us);
        else
            carry_one(first, first_to_host);
    }
    return NULL;
}

void sim_net_start(void)
{
    sim_spawn(SIM_WORLD, "net", carry, NULL);
}

/* -- of a server ------------------------------------------------------------------------------ */

void sim_net_answer(struct sim_wire *wire, const char *bytes, size_t n)
{
    put_bytes(&wire->to_client, bytes, n);
}

void sim_net_hang_up(struct sim_wire *wire)
{
    leave_host(wire);
    put(&wire->to_client, END, "", 0);
}

void sim_net_changed(void)
{
    sim_wake(&net, 1);
}

void sim_net_break(struct sim_host *host)
{
    for (struct sim_wire *wire = net.wires; wire; wire = wire->next)
        if (wire->host == host && wire->accepted)
            cut(wire);
}

void sim_net_each(struct sim_host *host, void (*each)(struct sim_wire *wire, void *arg), void *arg)
{
    for (struct sim_wire *wire = net.wires; wire; wire = wire->next)
        if (wire->host == host && wire->accepted)
            each(wire, arg);
}

/* -- of a client ------------------------------------------------------------------------------ */

struct sim_wire *sim_net_dial(const char *host, int port)
{
    for (size_t i = 0; i < net.n_hosts; i++)
        if (strcmp(net.hosts[i]->name, host) == 0) {
            struct sim_wire *wire = calloc(1, sizeof *wire);
            if (!wire)
                abort();
            *wire = (struct sim_wire){.next = net.wires,
                                      .host = net.hosts[i],
                                      .group = sim_group(),
                                      .fd = -1,
                                      .port = port};
            wire->to_host.last = &wire->to_host.first;
            wire->to_client.last = &wire->to_client.first;
            net.wires = wire;
            put(&wire->to_host, CONNECT, "", 0);
            return wire;
        }
    return NULL;
}

void sim_net_send(struct sim_wire *wire, const char *bytes, size_t n)
{
    put_bytes(&wire->to_host, bytes, n);
}

void sim_net_close(struct sim_wire *wire)
{
    wire->fd = -1;
    put(&wire->to_host, END, "", 0);
}
