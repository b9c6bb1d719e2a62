/* Clients of Sentinels and clusters, and looking at what their nodes say. */
#ifndef TEST_REDIS_SET_H
#define TEST_REDIS_SET_H

#include "lockkit.h"
#include "sandbox.h"

enum {
    SET_TIMEOUT_MS = 400,  /* one command */
    SET_SWITCH_MS = 120000 /* a failover, at the very most: a Sentinel that a busy machine kept
                              waiting for two seconds does nothing for thirty (TILT) */
};

/* A client of the guard, with SET_TIMEOUT_MS unless options say otherwise. NULL with a message. */
lk_client *set_client(const char *guard, const char *url, const lk_options *options);

lk_status set_acquire(lk_client *client, const char *key, int64_t wait_ms, lk_hold *hold);
/* Acquires and releases until both succeed; false when they did not within wait_ms, or a call took
 * longer than three command timeouts and a little. *ret_took_ms (may be NULL): until they did. */
bool set_recovers(lk_client *client, const char *key, int64_t wait_ms, int64_t *ret_took_ms);

/* For wait_until(): arg is a struct sandbox_server. */
bool set_is_master(void *server);
bool set_is_replica(void *server);
/* Somebody listens there for a lock. */
bool set_is_heard(void *server);

/* For wait_until(): arg is a struct sandbox_sentinel. All Sentinels name its replica as the master:
 * from here on a client can find it. */
bool set_is_switched(void *set);

/* The nth key whose slot belongs to this master of a sandbox's cluster. Fills ret and returns it.
 */
const char *set_key_on(int master, int n, char ret[32]);

/* How often the server was asked a command ("wait", "cluster|slots"); -1: it does not say. */
int64_t set_calls_of(const struct sandbox_server *server, const char *command);

/* From now on the replica gets nothing from its master, which stays as it is. False: did not work.
 */
bool set_cut_off(const struct sandbox_server *master, const struct sandbox_server *replica);
/* The replica has all that the master has. False: not soon. */
bool set_caught_up(const struct sandbox_server *master, const struct sandbox_server *replica);

#endif
