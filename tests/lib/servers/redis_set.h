/* Clients of Sentinels and clusters, and queries about the state of their nodes. */
#ifndef TEST_REDIS_SET_H
#define TEST_REDIS_SET_H

#include "lockkit.h"
#include "sandbox.h"

enum {
    SET_TIMEOUT_MS = 400,   /* one command */
    SET_PATIENT_MS = 15000, /* the same where its time is not the point: on a busy machine a command
                               may take longer */
    SET_SWITCH_MS = 120000  /* bound on a failover: a Sentinel that a busy machine delays for 2 s
                               does nothing for 30 s (TILT mode) */
};

/* A client of the guard. options may be NULL; command_timeout_ms 0: SET_TIMEOUT_MS. NULL with a
 * message. */
lk_client *set_client(const char *guard, const char *url, const lk_options *options);

/* The same with SET_PATIENT_MS. For tests in which no server hangs. */
lk_client *set_patient_client(const char *guard, const char *url, const lk_options *options);

lk_status set_acquire(lk_client *client, const char *key, int64_t wait_ms, lk_hold *hold);
/* Acquires and releases until both succeed. False if they did not within wait_ms, or if
 * lk_acquire() took longer than six command timeouts plus a grace. ret_took_ms (may be NULL): time
 * to success. */
bool set_recovers(lk_client *client, const char *key, int64_t wait_ms, int64_t *ret_took_ms);

/* For wait_until(): arg is a struct sandbox_server. */
bool set_is_master(void *server);
bool set_is_replica(void *server);
/* A client is subscribed there to a lock's channel. */
bool set_is_heard(void *server);

/* For wait_until(): arg is a struct sandbox_sentinel. True when all Sentinels name its replica as
 * the master: then a client can find it. */
bool set_is_switched(void *set);

/* For wait_until(): arg is a struct set_takeover. True when the replica has its master's place and
 * all nodes that live name it: then a client can find it, whichever node it asks. */
struct set_takeover {
    const struct sandbox_cluster *set;
    int master; /* the dead one */
};
bool set_is_taken_over(void *takeover);

/* Fills ret with the nth key whose slot belongs to this master of a sandbox's cluster. Returns ret.
 */
const char *set_key_on(int master, int n, char ret[32]);

/* How many calls of a command the server counted ("wait", "cluster|slots"); -1: no answer. */
int64_t set_calls_of(const struct sandbox_server *server, const char *command);

/* Cuts the replica off: it receives nothing more from its master. False on failure. */
bool set_cut_off(const struct sandbox_server *master, const struct sandbox_server *replica);
/* Waits until the replica has all data of the master. False: a timeout. */
bool set_caught_up(const struct sandbox_server *master, const struct sandbox_server *replica);

#endif
