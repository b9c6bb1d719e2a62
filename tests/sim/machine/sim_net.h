/*
 * Connections between the simulated processes and the simulated servers: a stream of bytes in each
 * direction, each with a delay. The calls on sockets (sim_sockets.c) stand on it.
 *
 * A server is no fiber: whatever reaches it is handled at once, by the fiber that carries the
 * bytes.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "sim_bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_HOSTS_MAX = 12 };

struct sim_packet;

struct sim_pipe {
    struct sim_packet *first, **last;
    int64_t due_us; /* of the last one: bytes do not overtake bytes */
};

struct sim_host;

struct sim_wire {
    struct sim_wire *next; /* of those under way */
    struct sim_host *host;
    int group, fd;      /* of the client; fd -1: closed */
    int port;           /* that was dialled */
    bool connected;     /* or refused, then reset */
    bool ended, reset;  /* as the client sees it */
    bool accepted;      /* the server has it */
    bool silent;        /* whatever is sent vanishes, and nobody is told */
    int64_t timeout_us; /* of a read; 0: none */
    struct sim_pipe to_host, to_client;
    struct sim_bytes asked, answered; /* arrived, not yet read */
    void *of_host;                    /* the server's own */
};

struct sim_host {
    const char *name;
    int port;
    bool down, unreachable;
    int64_t stopped_until_us;                                       /* as by SIGSTOP */
    void (*on_bytes)(struct sim_host *host, struct sim_wire *wire); /* in wire->asked */
    void (*on_end)(struct sim_host *host, struct sim_wire *wire);
};

/* One in so many packets; 0: none. */
struct sim_net_faults {
    uint32_t cut_before, cut_after, late, silent;
};
struct sim_net_counts {
    uint64_t cut_before, cut_after, late, silent, refused, elsewhere;
};

void sim_net_begin(void); /* no hosts, no wires */
void sim_net_start(void); /* within sim_run(): the fiber that carries */
void sim_net_add(struct sim_host *host);
void sim_net_faults(const struct sim_net_faults *faults);
const struct sim_net_counts *sim_net_counts(void);

/* -- of a server ------------------------------------------------------------------------------ */

void sim_net_answer(struct sim_wire *wire, const char *bytes, size_t n);
void sim_net_hang_up(struct sim_wire *wire); /* after what was answered */
/* down, unreachable or stopped_until_us has changed. */
void sim_net_changed(void);
/* All of its connections break, and what was on the way to it is lost. */
void sim_net_break(struct sim_host *host);
/* Calls each(wire) for the connections that the server has. */
void sim_net_each(struct sim_host *host, void (*each)(struct sim_wire *wire, void *arg), void *arg);

/* -- of a client ------------------------------------------------------------------------------ */

/* NULL: no such host. Refused: it does not listen at this port. */
struct sim_wire *sim_net_dial(const char *host, int port);
void sim_net_send(struct sim_wire *wire, const char *bytes, size_t n);
void sim_net_close(struct sim_wire *wire);

#endif
