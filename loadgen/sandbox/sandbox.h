/*
 * Private real servers in a temporary folder, on loopback and free ports; for the demo, the lab and
 * the tests.
 *
 * Everything a sandbox started is stopped and reaped, and its folder removed, on every way out:
 * sandbox_close(), exit(), a fatal signal, and the kill -9 of this process: a guardian process is
 * the servers' parent, sees this process end, and ends them. Should the guardian be killed, the
 * servers die with it (PR_SET_PDEATHSIG). No signal handler is installed, and only processes that
 * the sandbox itself started are ever signalled, by pid.
 *
 * Servers get the environment of sandbox_open()'s time and this process's working directory then.
 * Threading: one thread uses a sandbox at a time.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SANDBOX_TEXT_MAX = 256, SANDBOX_SERVERS_MAX = 64, SANDBOX_ARGS_MAX = 64 };

struct sandbox;

/* One child process: a lock server, or an instance of the service. */
struct sandbox_server {
    char name[32];
    pid_t pid;                     /* 0: not running */
    int port;                      /* loopback TCP port; 0: none */
    int port_fd;                   /* holds it while the server is down; -1: nothing does */
    char socket[SANDBOX_TEXT_MAX]; /* unix socket path; "": none */
    char url[SANDBOX_TEXT_MAX]; /* what a client is given: "redis://127.0.0.1:PORT", "http://..." */
    char log[SANDBOX_TEXT_MAX]; /* its stdout and stderr */
    struct sandbox *sandbox;
    char args[2048]; /* its command line, to start it again (NUL-separated) */
    int n_args;
    size_t args_length;                           /* bytes used of args */
    bool args_overflow;                           /* more than fits: it will not be started */
    int ready_ms;                                 /* it answers within this, or is given up */
    long log_start;                               /* where its present life begins in the log */
    bool (*ready)(struct sandbox_server *server); /* asks it; per kind of server */
};

/* Makes the folder (under $TMPDIR or /tmp). Returns 0, or -1 with a message on stderr. */
int sandbox_open(struct sandbox **ret);
/* Stops everything (SIGTERM, then SIGKILL after 5 s), reaps, removes the folder. NULL is allowed.
 */
void sandbox_close(struct sandbox *sandbox);
const char *sandbox_dir(const struct sandbox *sandbox);

/* Each start returns once the server answers (PING, GET /readyz), after 10 s at most (PostgreSQL:
 * 40), and gives NULL with a message and the log's last lines on stderr otherwise. The struct lives
 * until sandbox_close(). */

/* Redis without persistence on a free port and a unix socket; extra: NULL-terminated further
 * arguments ("--maxmemory", "1mb"), may be NULL. */
struct sandbox_server *sandbox_redis(struct sandbox *sandbox, const char *const *extra);

/* Redis whose wall clock can be set, and no other clock: shim is the path of libclockshim.so. */
struct sandbox_server *sandbox_redis_with_clock(struct sandbox *sandbox, const char *shim);
/* Its clock is ahead of the real one by so much, from now on. Returns 0 or -1. */
int sandbox_set_clock(struct sandbox_server *server, int64_t ahead_us);

/* A Redis master with one replica and three Sentinels, which agree that the replica could take
 * over. A master killed is replaced within about a second and a half. */
#define SANDBOX_MASTER_NAME "mymaster"
enum { SANDBOX_SENTINELS = 3, SANDBOX_CLUSTER_MASTERS = 3 };

struct sandbox_sentinel {
    struct sandbox_server *master, *replica; /* as they were at the start */
    struct sandbox_server *sentinel[SANDBOX_SENTINELS];
    char url[SANDBOX_TEXT_MAX]; /* "redis+sentinel://HOST:PORT,HOST:PORT,HOST:PORT/mymaster" */
};

/* Fills *ret; its servers live until sandbox_close(). Returns 0, or -1 with a message on stderr. */
int sandbox_sentinel(struct sandbox *sandbox, struct sandbox_sentinel *ret);

/* A Redis Cluster: master[i] has the ith third of the slots, replica[i] copies it. A master killed
 * is replaced within about two seconds if it has a replica; the others go on meanwhile. */
struct sandbox_cluster {
    struct sandbox_server *master[SANDBOX_CLUSTER_MASTERS]; /* as they were at the start */
    struct sandbox_server *replica[SANDBOX_CLUSTER_MASTERS];
    int n_replicas;             /* 0: replica[] is NULLs */
    char url[SANDBOX_TEXT_MAX]; /* "redis+cluster://HOST:PORT,..." of the masters */
};

/* As sandbox_sentinel(). */
int sandbox_cluster(struct sandbox *sandbox, bool replicas, struct sandbox_cluster *ret);

/* PostgreSQL with a new, empty cluster that trusts everybody who reaches its port; user and
 * database are "postgres". A crash of the server loses nothing that was committed, a crash of the
 * machine may (fsync is off). Started by root, it runs as the user postgres, to whom the sandbox's
 * folder is then opened for passing through. extra: NULL-terminated further arguments ("-c",
 * "max_connections=20"), may be NULL. */
struct sandbox_server *sandbox_postgres(struct sandbox *sandbox, const char *const *extra);

/* ZooKeeper: one server, or three that elect a leader. Sessions of 200 ms and more. What was
 * committed survives a kill of every server; a server that is killed and started again serves once
 * a majority runs, which sandbox_restart() does not wait for. */
enum { SANDBOX_ZOOKEEPERS_MAX = 3, SANDBOX_ZOOKEEPER_TICK_MS = 100 };

struct sandbox_zookeeper {
    int n;
    struct sandbox_server *server[SANDBOX_ZOOKEEPERS_MAX];
    char url[SANDBOX_TEXT_MAX]; /* "127.0.0.1:PORT,..." */
};

/* n is 1 or 3. Fills *ret; the servers live until sandbox_close(). Returns 0 when all of them
 * serve, or -1 with a message on stderr. */
int sandbox_zookeeper(struct sandbox *sandbox, int n, struct sandbox_zookeeper *ret);
/* Waits until every server that runs serves. Returns 0 or -1, as above. */
int sandbox_zookeeper_agree(const struct sandbox_zookeeper *set);
/* Which of them leads now; 0 when it is alone; -1: none. */
int sandbox_zookeeper_leader(const struct sandbox_zookeeper *set);

/* memcached; url is "127.0.0.1:PORT". extra: NULL-terminated further arguments ("-m", "1"), may be
 * NULL. */
struct sandbox_server *sandbox_memcached(struct sandbox *sandbox, const char *const *extra);

/* The service: binary is seckilld's path, --listen with a free port is added, args NULL-terminated.
 * Ready when its log says "listening on http://127.0.0.1:PORT" and /readyz answers 200. */
struct sandbox_server *sandbox_seckilld(struct sandbox *sandbox, const char *binary,
                                        const char *const *args);
/* Starts one that has ended again, with other arguments and on another port. Returns 0 or -1. */
int sandbox_seckilld_anew(struct sandbox_server *server, const char *binary,
                          const char *const *args);

/* Signals the server; SIGKILL and SIGTERM also reap it (pid becomes 0; SIGKILL follows when SIGTERM
 * has not ended it within 30 s), SIGSTOP returns when it stands still. Returns its wait status, or
 * 0 for other signals; -1 when it is not running. */
int sandbox_signal(struct sandbox_server *server, int signal);
/* Starts a stopped server again with the same arguments, port and folder; waits until it answers.
 * Returns 0 or -1. */
int sandbox_restart(struct sandbox_server *server);
/* False, and reaped, if it has died by itself. */
bool sandbox_alive(struct sandbox_server *server);

/* A loopback port that was free a moment ago, and that no sandbox holds. */
int sandbox_free_port(void);
/* From now on no other sandbox of this machine is given the port, until the descriptor that is
 * returned is closed or the process ends. -1: another one holds it. */
int sandbox_hold_port(int port);

#endif
