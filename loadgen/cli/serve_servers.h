/* The lock servers of `loadgen serve`: one of each kind that is installed. All kinds start at
 * the same time, each in a thread and a sandbox of its own, because one thread uses a sandbox at a
 * time. PostgreSQL is for locks alone (pg-*, sql-unique, sql-unique-forever): without it, those of
 * sql-* are in the store.
 * Threading: one thread uses a set of servers at a time. */
#ifndef SERVE_SERVERS_H
#define SERVE_SERVERS_H

#include "sandbox.h"

#include <jansson.h>
#include <pthread.h>

enum { SERVE_REDIS_NODES = 3 }; /* redis-* guards use the first, redlock all */
enum serve_kind { SERVE_REDIS, SERVE_MEMCACHED, SERVE_ZOOKEEPER, SERVE_POSTGRES, SERVE_KINDS };
enum { SERVE_ADDRESS_MAX = SERVE_REDIS_NODES * SANDBOX_TEXT_MAX };

/* The servers of one kind. */
struct serve_family {
    enum serve_kind kind;
    struct sandbox *sandbox; /* NULL: not installed */
    pthread_t thread;
    bool threaded;                                     /* the thread is to be joined */
    struct sandbox_server *servers[SERVE_REDIS_NODES]; /* NULL: none */
    int64_t started_ms;                                /* how long it took */
    char address[SERVE_ADDRESS_MAX];                   /* for seckilld; "": it does not run */
};

struct serve_servers {
    struct serve_family families[SERVE_KINDS];
};

/* Starts all kinds and waits until they answer. A kind that is not installed, or does not start,
 * is named on stderr with its guards, and left out. Returns 0, or -1 if Redis does not run. Call
 * serve_servers_close() in both cases. */
int serve_servers_start(struct serve_servers *servers);
/* Ends all of them. */
void serve_servers_close(struct serve_servers *servers);

struct sandbox_server *serve_servers_redis(const struct serve_servers *servers);
/* The i-th option of seckilld that names servers, "--memcached=127.0.0.1:11211". False: there are
 * no more. */
bool serve_servers_option(const struct serve_servers *servers, size_t i, char *ret, size_t size);

/* Does each guard answer whose servers run? guards: from GET /v1/guards. ret_n: how many guards
 * answer. */
bool serve_servers_usable(const struct serve_servers *servers, const json_t *guards, size_t *ret_n);
/* Prints a line for each kind that runs: how long its start took, the memory that it
 * has, its addresses. */
void serve_servers_print(const struct serve_servers *servers);
/* The memory that a process and its children have now; what they share with others is counted in
 * part (PSS). 0: unknown. */
long long serve_servers_memory(const struct sandbox_server *server);

#endif
