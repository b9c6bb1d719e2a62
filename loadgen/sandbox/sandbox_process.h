/*
 * Private to the sandbox: one guardian process per sandbox is the parent of all its servers.
 *
 * Why a process and not signal handlers:
 * - It outlives the program in every case. So closing, exit(), a crash and kill -9 take the same
 *   path (end_all() in sandbox_guardian.c).
 * - It has one thread. So a server's death signal is bound to a thread that lives as long as the
 *   sandbox, and starting a server never forks the program with its threads and descriptors.
 * - As parent it alone reaps. So a pid that it knows cannot belong to another process.
 */
#ifndef SANDBOX_PROCESS_H
#define SANDBOX_PROCESS_H

#include "sandbox.h"

#include <stdint.h>

enum {
    SANDBOX_READY_MS = 30000,   /* a server answers within this, on a busy machine, too */
    SANDBOX_MAKE_MS = 120000,   /* ... or this, if it first makes a database cluster */
    SANDBOX_STOP_MS = 5000,     /* at closing: from SIGTERM to SIGKILL */
    SANDBOX_DRAIN_MS = 30000,   /* the same for sandbox_signal(SIGTERM): the service drains first */
    SANDBOX_PORT_TRIES_MAX = 5, /* tries when another program takes the port before the bind */
    SANDBOX_TAIL_MAX = 2000,    /* bytes of a log that are shown */
    SANDBOX_ARGS_BYTES_MAX = 2048,
    SANDBOX_UNIX_PATH_MAX = 107 /* bytes of a unix socket's path */
};

/* -- sandbox_guardian.c: between the program and the guardian, over a socket; one answer per
 * question ---
 */

enum guardian_verb {
    GUARDIAN_READY,  /* the folder exists (answer only) */
    GUARDIAN_START,  /* args, log -> pid */
    GUARDIAN_SIGNAL, /* pid, signal -> status if it was reaped */
    GUARDIAN_LOOK,   /* pid -> running? */
    GUARDIAN_CLOSE   /* no answer: the guardian ends all servers, then itself */
};

struct guardian_request {
    enum guardian_verb verb;
    pid_t pid;
    int signal, n_args;
    char log[SANDBOX_TEXT_MAX];
    char args[SANDBOX_ARGS_BYTES_MAX]; /* n_args texts, each with its NUL */
};

struct guardian_reply {
    int error; /* errno; 0: done */
    pid_t pid;
    bool running;
    int status; /* wait status, when not running */
};

/* The guardian's main function, in a forked child. Only async-signal-safe calls. */
_Noreturn void guardian_main(int socket, int program_pidfd, const char *dir);

/* -- sandbox_process.c: the program's side --------------------------------------------------------
 */

struct guardian {
    pid_t pid;
    int socket;
};

/* Starts the guardian, which makes dir. Returns 0 or an errno. */
int guardian_open(struct guardian *guardian, const char *dir);
/* Returns the reply's error, or EPIPE if the guardian is gone. */
int guardian_ask(const struct guardian *guardian, const struct guardian_request *request,
                 struct guardian_reply *ret);
/* Returns once all servers are gone and the folder is removed; -1 if that failed. */
int guardian_close(struct guardian *guardian);

/* -- sandbox.c: for the files that know one kind of server ----------------------------------------
 */

/* True once the server answers; must return within a second. */
typedef bool sandbox_ready(struct sandbox_server *server);

/* A new server of the sandbox with a name ("redis-1"), a log and no arguments. NULL: the sandbox
 * is full, or no memory. */
struct sandbox_server *sandbox_add(struct sandbox *sandbox, const char *kind, sandbox_ready *ready);
/* Appends one argument, printf-style. sandbox_start() reports too many or too long ones. */
void sandbox_arg(struct sandbox_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Writes a file of the sandbox's folder that only this user can read, printf-style, unless it is
 * there. Returns 0, or -1 with a message on stderr. */
int sandbox_secret(const struct sandbox *sandbox, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Starts it and waits until it is ready. -1: it is not running; the reason is on stderr. */
int sandbox_start(struct sandbox_server *server);
/* Calls fill(server, arg) with a new server->port until sandbox_start() succeeds, or fails for
 * another reason than the port. Each time, fill sets all arguments. */
int sandbox_start_on_free_port(struct sandbox_server *server,
                               void (*fill)(struct sandbox_server *server, const void *arg),
                               const void *arg);

/* -- sandbox_redis.c ----------------------------------------------------------------------------
 */

/* Does a Redis or a Sentinel answer PING over its unix socket, to the password? */
bool sandbox_redis_answers(const struct sandbox_server *server);
/* One command over the server's unix socket, its words separated by single blanks. The caller
 * frees the reply (freeReplyObject()). NULL: no answer within half a second. */
struct redisReply *sandbox_redis_ask(const struct sandbox_server *server, const char *command);
/* The same for a command that is sent once: NULL with a message on stderr unless the answer is a
 * status or a text within SANDBOX_READY_MS. */
struct redisReply *sandbox_redis_order(const struct sandbox_server *server, const char *command);
/* The connection for it, logged in, with limit_ms for each command. NULL: it failed. */
struct redisContext *sandbox_redis_connect(const struct sandbox_server *server, int limit_ms);
/* Logs in. NULL: that failed, or the connection had; it is freed. */
struct redisContext *sandbox_redis_login(struct redisContext *context);

/* -- sandbox_memcached.c ------------------------------------------------------------------------
 */

enum { SANDBOX_MEMCACHED_LOGIN_MAX = 128 };
#define SANDBOX_MEMCACHED_LOGGED_IN "STORED\r\n" /* its answer */
/* The command that a connection begins with. */
void sandbox_memcached_login(char ret[SANDBOX_MEMCACHED_LOGIN_MAX]);

/* -- sandbox_zookeeper_acl.c --------------------------------------------------------------------
 */

/* Gives "/" and "/zookeeper" of the server's tree to the password alone. False: not done. */
bool sandbox_zookeeper_close_tree(const struct sandbox_server *server);

/* -- sandbox_net.c ------------------------------------------------------------------------------
 */

/* Sets the server's port and holds it; 0: no port. */
void sandbox_take_port(struct sandbox_server *server, int port);
/* Is this loopback port in use? */
bool sandbox_port_taken(int port);
/* Sends question to the unix socket (path NULL: to the loopback port) and waits up to wait_ms for
 * an answer that begins with `wanted`. */
bool sandbox_answers(const char *path, int port, const char *question, const char *wanted,
                     int64_t wait_ms);
/* The same for a question of `length` bytes, which may contain zeros. */
bool sandbox_answers_bytes(const char *path, int port, const void *question, size_t length,
                           const char *wanted, int64_t wait_ms);
/* The answer of a server on a loopback port to a question of `length` bytes, until it closes,
 * `need` bytes have come or wait_ms is over. Returns how many came. */
size_t sandbox_converse(int port, const void *question, size_t length, char *ret, size_t need,
                        int64_t wait_ms);
/* The whole answer of a server on a loopback port that closes after it. *ret gets what arrives
 * within wait_ms, at most size - 1 bytes; "" for nothing. */
void sandbox_ask(int port, const char *question, char *ret, size_t size, int64_t wait_ms);

/* For sandbox_server.ready: /readyz of the service at the server's port answers 200. */
bool sandbox_seckilld_answers(struct sandbox_server *server);

#endif
