/*
 * Private real servers in a temporary folder, on loopback and free ports, for the demo, the lab
 * and the tests.
 *
 * A sandbox stops and reaps everything it started and removes its folder, however the process
 * ends: sandbox_close(), exit(), a fatal signal, or kill -9. A guardian process is the parent of
 * the servers. When this process ends, the guardian ends them. If the guardian is killed, the
 * servers die with it (PR_SET_PDEATHSIG). No signal handler is installed. Only processes that the
 * sandbox itself started are signalled, by pid.
 *
 * Redis, Sentinel, memcached, ZooKeeper and PostgreSQL want the one password of this process. It
 * stands in files that only this user can read, and in the environment that lockkit, the service
 * and the tests log in with; never on a command line.
 *
 * What stays open to other users of the machine:
 * - They can connect, and so use up connections, and sessions of ZooKeeper.
 * - ZooKeeper tells them about itself ("envi", "srvr", /zookeeper/config), and which nodes exist if
 *   they guess a name. The ports on which three ZooKeepers speak to each other want no password.
 * - If a server is down, another program can take its port and be sent the password.
 *
 * Servers get the environment and working directory that this process has at sandbox_open().
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
    int port_fd;                   /* holds the port while the server is down; -1: it is not held */
    char socket[SANDBOX_TEXT_MAX]; /* unix socket path; "": none */
    char url[SANDBOX_TEXT_MAX];    /* for clients: "redis://127.0.0.1:PORT", "http://..." */
    char log[SANDBOX_TEXT_MAX];    /* its stdout and stderr */
    struct sandbox *sandbox;
    char args[2048]; /* its command line, to start it again (NUL-separated) */
    int n_args;
    size_t args_length;                           /* bytes used of args */
    bool args_overflow;                           /* too many or too long: it is not started */
    int ready_ms;                                 /* longest time until it answers */
    long log_start;                               /* where the log of the running process begins */
    bool (*ready)(struct sandbox_server *server); /* asks the server; per kind of server */
};

/* Makes the folder (under $TMPDIR or /tmp). The first call of a process chooses the password and
 * sets LOCKKIT_REDIS_AUTH, LOCKKIT_SENTINEL_AUTH, LOCKKIT_MEMCACHED_AUTH and LOCKKIT_ZOOKEEPER_AUTH
 * to it, and PGPASSWORD if that is not set (setenv(3): before other threads start). Returns 0, or
 * -1 with a message on stderr. */
int sandbox_open(struct sandbox **ret);
/* The password of its servers. The file DIR/password has it, too. */
const char *sandbox_password(void);
#define SANDBOX_USER "sandbox" /* where a server wants a user's name with it */
/* Stops everything (SIGTERM, SIGKILL after 5 s), reaps it, removes the folder. NULL is allowed. */
void sandbox_close(struct sandbox *sandbox);
const char *sandbox_dir(const struct sandbox *sandbox);

/* Each start returns once the server answers (PING, GET /readyz), after 10 s at most (PostgreSQL:
 * 40, a ZooKeeper server: 30). On failure the message and the log's last lines are on stderr, and
 * it returns NULL, or -1 for a set of servers. A server's struct lives until sandbox_close(). */

/* Redis without persistence on a free port and a unix socket, both with the password. extra:
 * NULL-terminated further arguments ("--maxmemory", "1mb"), may be NULL. */
struct sandbox_server *sandbox_redis(struct sandbox *sandbox, const char *const *extra);

/* Redis with a wall clock that can be set. Its other clocks are real. shim: the path of
 * libclockshim.so. */
struct sandbox_server *sandbox_redis_with_clock(struct sandbox *sandbox, const char *shim);
/* Sets its wall clock ahead of the real one by this much. Returns 0 or -1. */
int sandbox_set_clock(struct sandbox_server *server, int64_t ahead_us);

/* A Redis master with one replica and three Sentinels, all with the password. All Sentinels know
 * that the replica can take over. A killed master is replaced within about a second and a half. */
#define SANDBOX_MASTER_NAME "mymaster"
enum { SANDBOX_SENTINELS = 3, SANDBOX_CLUSTER_MASTERS = 3 };

struct sandbox_sentinel {
    struct sandbox_server *master, *replica; /* as they were at the start */
    struct sandbox_server *sentinel[SANDBOX_SENTINELS];
    char url[SANDBOX_TEXT_MAX]; /* "redis+sentinel://HOST:PORT,HOST:PORT,HOST:PORT/mymaster" */
};

/* Fills *ret; its servers live until sandbox_close(). Returns 0, or -1 with a message on stderr. */
int sandbox_sentinel(struct sandbox *sandbox, struct sandbox_sentinel *ret);

/* A Redis Cluster: master[i] has the i-th third of the slots, replica[i] copies it. A killed
 * master with a replica is replaced within about two seconds. The others keep serving. */
struct sandbox_cluster {
    struct sandbox_server *master[SANDBOX_CLUSTER_MASTERS]; /* as they were at the start */
    struct sandbox_server *replica[SANDBOX_CLUSTER_MASTERS];
    int n_replicas;             /* 0: replica[] is NULLs */
    char url[SANDBOX_TEXT_MAX]; /* "redis+cluster://HOST:PORT,..." of the masters */
};

/* As sandbox_sentinel(). */
int sandbox_cluster(struct sandbox *sandbox, bool replicas, struct sandbox_cluster *ret);

/* PostgreSQL with a new, empty cluster. User and database are "postgres", the password is that of
 * PGPASSWORD, which libpq reads. A crash of the server loses no committed data, a crash of the
 * machine may (fsync is off). Started by root, it runs as the user postgres, and the sandbox's
 * folder is opened for it to pass through. extra: NULL-terminated further arguments ("-c",
 * "max_connections=20"), may be NULL. */
struct sandbox_server *sandbox_postgres(struct sandbox *sandbox, const char *const *extra);

/* ZooKeeper: one server, or three that elect a leader. Only the password gives access to "/" and to
 * "/zookeeper"; the ACL of a node is its creator's. Sessions last 200 ms or more. Committed
 * data survives a kill of every server. A restarted server serves once a majority runs;
 * sandbox_restart() does not wait for that. */
enum { SANDBOX_ZOOKEEPERS_MAX = 3, SANDBOX_ZOOKEEPER_TICK_MS = 100 };

struct sandbox_zookeeper {
    int n;
    struct sandbox_server *server[SANDBOX_ZOOKEEPERS_MAX];
    char url[SANDBOX_TEXT_MAX]; /* "127.0.0.1:PORT,..." */
};

/* n is 1 or 3. Fills *ret; the servers live until sandbox_close(). Returns 0 when all of them
 * serve, or -1 with a message on stderr. */
int sandbox_zookeeper(struct sandbox *sandbox, int n, struct sandbox_zookeeper *ret);
/* Waits until every running server serves. Returns 0 or -1, as above. */
int sandbox_zookeeper_agree(const struct sandbox_zookeeper *set);
/* The index of the leader; 0 for a single server; -1: none leads. */
int sandbox_zookeeper_leader(const struct sandbox_zookeeper *set);

/* memcached with the password; url is "127.0.0.1:PORT". extra: NULL-terminated further arguments
 * ("-m", "1"), may be NULL. */
struct sandbox_server *sandbox_memcached(struct sandbox *sandbox, const char *const *extra);

/* The service. binary: the path of seckilld. args: NULL-terminated; --listen with a free port is
 * added. Ready when its log says "listening on http://127.0.0.1:PORT" and /readyz answers 200. */
struct sandbox_server *sandbox_seckilld(struct sandbox *sandbox, const char *binary,
                                        const char *const *args);
/* Starts an ended instance again, with other arguments and on another port. Returns 0 or -1. */
int sandbox_seckilld_anew(struct sandbox_server *server, const char *binary,
                          const char *const *args);

/* Signals the server. Returns -1 if it is not running, 0, or the wait status:
 * - SIGKILL: reaps it and returns its wait status; pid becomes 0
 * - SIGTERM: the same; SIGKILL follows if it has not ended within 30 s
 * - SIGSTOP: returns 0 when the process is stopped; if it has ended instead, as after SIGKILL
 * - others: returns 0 */
int sandbox_signal(struct sandbox_server *server, int signal);
/* Starts an ended server again with the same arguments, port and folder. Waits until it answers.
 * Returns 0 or -1. */
int sandbox_restart(struct sandbox_server *server);
/* False if it has died by itself; then it is reaped. */
bool sandbox_alive(struct sandbox_server *server);

/* A loopback port that was free a moment ago and that no sandbox holds; -1: none found. */
int sandbox_free_port(void);
/* Reserves the port among all sandboxes of this machine, until the returned descriptor is closed
 * or the process ends. -1: another sandbox holds it. */
int sandbox_hold_port(int port);

#endif
