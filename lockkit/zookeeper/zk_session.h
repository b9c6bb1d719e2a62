/*
 * One session with a ZooKeeper ensemble, shared by all threads of a client, over libzookeeper_mt.
 *
 * That library has a thread that talks to the servers and a thread that delivers answers and
 * events. Our callbacks in these threads only note and signal. A caller waits on a condition
 * variable, with a bound.
 *
 * A session is numbered by its epoch. When ZooKeeper says that the session has expired, all nodes
 * that it owned are gone, the epoch is over for good, and the next turn opens a new session. If
 * only the connection is lost, the library tries every server in turn, and the session may survive.
 *
 * If LOCKKIT_ZOOKEEPER_AUTH holds "user:password", each session adds it (scheme "digest") before
 * its first request, and nodes are created for this login alone. The library adds it again whenever
 * it reconnects. Without the variable nodes are open to every client, and so need no login.
 *
 * How long a holder may trust its session: ZooKeeper ends a session no sooner than its timeout
 * after the last request that reached a server. So an answered request proves the session alive
 * until one timeout after the request was sent. The library does not show its own pings, so the
 * watchdog asks for each hold every third of the timeout.
 */
#ifndef LOCKKIT_ZK_SESSION_H
#define LOCKKIT_ZK_SESSION_H

#include "login.h"
#include "monotonic.h"
#include "provider.h"

#include <pthread.h>
#include <zookeeper/zookeeper.h>

enum {
    LK_ZK_SESSION_MS_MIN = 200, /* shortest asked for: the C library does not keep shorter ones */
    LK_ZK_CLEANUPS_MAX = 1024,  /* nodes whose removal failed; one more ends the session */
    LK_ZK_PATH_MAX = 1280       /* bytes of a path: escaped key and token, with the NUL */
};

struct lk_zk_connection;
struct lk_zk_cleanup;

/* A call that waits for a change of a node. */
typedef struct lk_zk_waiter {
    char path[LK_ZK_PATH_MAX];
    bool watching; /* the waiter's own: the watch is set, or has fired */
    bool fired;
    pthread_cond_t woken;
    struct lk_zk_waiter *prev, *next;
} lk_zk_waiter;

typedef struct lk_zk {
    const lk_context *context;
    const void *recipe;               /* of the guard */
    char login[2 * LK_LOGIN_MAX + 2]; /* "user:password"; "": none */
    const struct ACL_vector *access;  /* to the nodes that are created */
    _Atomic uint64_t n_tokens;        /* tokens made */
    _Atomic uint32_t epoch;           /* of the session that lives; 0: none */

    pthread_mutex_t lock;                /* of all that follows */
    pthread_cond_t changed;              /* connection, session, cleanups, closing */
    struct lk_zk_connection *connection; /* the present session; NULL: none yet, or being opened */
    uint32_t last_epoch;
    bool opening, closing;
    lk_zk_waiter *waiters;
    struct lk_zk_cleanup *cleanups;
    bool has_janitor;
    pthread_t janitor;
} lk_zk;

/* A series of requests in one session. Together they may take command_timeout_ms. */
typedef struct lk_zk_turn {
    lk_zk *zk;
    uint32_t epoch;
    int64_t session_ms; /* the timeout that was agreed on */
    int64_t until_us;   /* on the system's clock */
} lk_zk_turn;

/* Endpoints "host:port[,host:port...][/folder]"; the folder must exist. Connects to nothing. LK_OK,
 * LK_INVALID (also for a login of a wrong form), LK_NO_MEMORY. */
lk_status lk_zk_open(const lk_context *context, lk_zk **ret, lk_error *error);
/* Ends the session, so that all its nodes go; bounded (some seconds when the server hangs). */
void lk_zk_close(lk_zk *zk);

/* Connects in the present session or a new one. LK_UNAVAILABLE: not within command_timeout_ms of
 * the call, or of the loss of the connection, so that callers do not pile up before a dead
 * ensemble. */
lk_status lk_zk_begin(lk_zk *zk, lk_zk_turn *ret);
/* Connects in the session of this epoch. LK_LOST: it has ended; LK_UNAVAILABLE. */
lk_status lk_zk_resume(lk_zk *zk, uint32_t epoch, lk_zk_turn *ret);

/* A watch fires the waiters of its path. The end of the session fires all. Enter before the watch
 * is set, so that no event is missed. */
void lk_zk_enter(lk_zk *zk, lk_zk_waiter *waiter, const char *path);
void lk_zk_leave(lk_zk *zk, lk_zk_waiter *waiter);
/* Waits until fired, at most left_us. True: it was, and the mark is cleared. */
bool lk_zk_sleep(lk_zk *zk, lk_zk_waiter *waiter, int64_t left_us);

/* lk_note() of this ensemble; returns status. */
lk_status lk_zk_note(const lk_zk *zk, lk_status status, const char *what);

/* -- zk_call.c: one request, one answer ------------------------------------------------------- */

typedef struct lk_zk_answer {
    int code; /* ZOK, ZNONODE, ZNODEEXISTS or ZNOTEMPTY */
    struct Stat stat;
    char text[LK_ZK_PATH_MAX]; /* the path created; a node's data, cut to fit */
    char **names;              /* of children: one block, to be freed; NULL when n is 0 */
    size_t n;
} lk_zk_answer;

/* LK_OK: the server answered, see code. LK_LOST: the session has ended. LK_UNAVAILABLE: not sent,
 * or the login may not do it. LK_UNKNOWN: no answer. LK_PROTOCOL: any other code. LK_NO_MEMORY: not
 * sent. */
lk_status lk_zk_create(const lk_zk_turn *turn, const char *path, const char *data, int mode,
                       lk_zk_answer *ret);
lk_status lk_zk_delete(const lk_zk_turn *turn, const char *path, lk_zk_answer *ret);
lk_status lk_zk_get(const lk_zk_turn *turn, const char *path, bool watch, lk_zk_answer *ret);
lk_status lk_zk_children(const lk_zk_turn *turn, const char *path, lk_zk_answer *ret);
/* LK_OK: the server has caught up with all earlier changes, including a request of ours whose
 * answer was lost with another server's connection. */
lk_status lk_zk_sync(const lk_zk_turn *turn, const char *path, lk_zk_answer *ret);

/* -- zk_cleanup.c: what could not be removed -------------------------------------------------- */

/* Removes what a hold, or an attempt of unknown outcome, left on the server: lk_provider.release().
 */
typedef lk_status lk_zk_undo(lk_zk *zk, lk_hold *hold);
/* Calls undo(). If it fails, a thread repeats it while the ensemble can be reached, until the node
 * or the session is gone: a session that lives on would keep its orphans for ever. Returns the
 * status of the first undo(). */
lk_status lk_zk_release(lk_zk *zk, lk_hold *hold, lk_zk_undo *undo);
void lk_zk_stop_janitor(lk_zk *zk); /* for lk_zk_close() */

/* Ends the session. */
void lk_zk_abandon(lk_zk *zk, uint32_t epoch);

/* zk_session.c's and zk_call.c's; under zk->lock. */
struct lk_zk_connection {
    lk_zk *zk;
    zhandle_t *handle;
    uint32_t epoch;
    bool connected, ended;
    int64_t away_since_us; /* while not connected */
    int64_t session_ms;
};

#endif
