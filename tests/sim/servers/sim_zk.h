/*
 * A ZooKeeper ensemble for the simulation, behind the nine functions of its C library that lockkit
 * calls: sessions, ephemeral and container nodes, sequence numbers, zxids, watches.
 *
 *   sim_zk.c         the ensemble: its tree of nodes, its sessions
 *   sim_zk_client.c  the library (-Wl,--wrap): a thread of the client that connects, asks, pings
 *
 * It answers as one server does: no follower lags behind.
 */
#ifndef SIM_ZK_H
#define SIM_ZK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_zk_faults {
    uint32_t cut_before, cut_after; /* one request in so many loses its connection; 0: none */
};

void sim_zk_begin(void);
void sim_zk_start(void); /* within sim_run(): the fiber that ends sessions */
void sim_zk_faults(const struct sim_zk_faults *faults);
void sim_zk_away(int64_t until_us);            /* no client reaches it; sessions begin anew then */
void sim_zk_part(int group, int64_t until_us); /* this client alone does not reach it */
bool sim_zk_delete_any(void);                  /* an operator removes an ephemeral node */
bool sim_zk_expire_any(void);                  /* ends a session */

/* -- the ensemble, for the client -------------------------------------------------------------- */

struct sim_zk_node {
    char *path, *data;
    int64_t session; /* 0: not ephemeral */
    int64_t czxid, emptied_us;
    int32_t cversion;
    bool container;
};

struct sim_zk_server {
    struct sim_zk_faults faults;
    int64_t away_until_us;
};
extern struct sim_zk_server sim_zk_server;

int64_t sim_zk_session(int64_t timeout_us);
bool sim_zk_heard(int64_t session); /* a sign of life. False: it has ended */
void sim_zk_end_session(int64_t session);

enum sim_zk_mode { ZK_PLAIN, ZK_EPHEMERAL_NODE, ZK_SEQUENTIAL_NODE, ZK_CONTAINER_NODE };
/* Codes of the library. */
int sim_zk_create(int64_t session, const char *path, const char *data, enum sim_zk_mode mode,
                  struct sim_zk_node **ret);
int sim_zk_delete(const char *path);
struct sim_zk_node *sim_zk_find(const char *path);
/* Names of children: of nodes' paths, behind the parent's. Returns how many. */
size_t sim_zk_children(const char *path, char **ret, size_t max);
/* Once: fired(arg) when the node goes. */
void sim_zk_watch(const char *path, void (*fired)(void *arg, const char *path), void *arg);

#endif
