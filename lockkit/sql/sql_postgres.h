/*
 * Connections to one PostgreSQL database, 14 or later, for locks that are rows (sql_postgres.c) and
 * for locks that are connections (pg_hold.c).
 *
 * The socket never blocks: each wait has a deadline, after which the connection is given up,
 * because a late answer would be taken for the next statement's. What is not answered is unknown;
 * an error that the server answers is a statement that has done nothing. READ COMMITTED and
 * synchronous_commit=on are set whatever the server's defaults: a grant that a crash of the server
 * forgets is none. A connection must be the server's own: not a pooler's that hands a session to
 * others between two transactions.
 *
 * Both ends give up on a peer from which nothing is heard for about LK_PG_SILENCE_S seconds, on
 * TCP; what the URL says of keepalives goes before for our end.
 *
 * Deadlines (until_us, deadline_us) are instants of lk_monotonic_us().
 */
#ifndef LOCKKIT_SQL_POSTGRES_H
#define LOCKKIT_SQL_POSTGRES_H

#include "monotonic.h"
#include "sql_conn.h"

#include <pthread.h>

/* After so long the server closes an idle connection: other clients may need its place. */
#define LK_PG_IDLE_MS 5000
/* After so long a connection that is not made is given up: the server's end may be gone. */
#define LK_PG_CONNECT_MS 5000

enum {
    LK_PG_POOL_MAX = 1024, /* of the parameter pool=N */
    LK_PG_POOL_ROWS = 8,   /* the default where a connection is used for a statement */
    LK_PG_POOL_HOLDS = 40, /* ... and where it is for a hold: two clients fit 100 connections */
    LK_PG_URI_MAX = 1024,
    LK_PG_NAME_MAX = 48, /* "lockkit " and the client's id */
    LK_PG_UNKNOWN_MAX =
        2 * LK_PG_POOL_MAX, /* sessions that may still be at a statement we gave up */
    LK_PG_SILENCE_S = 11
};

/* -- one connection: sql_postgres_connect.c, sql_postgres_conn.c ------------------------------- */

/* Used by one thread at a time. */
typedef struct lk_pg_conn lk_pg_conn;

typedef struct lk_pg_target {
    const lk_context *context;
    const lk_sql_set *set;
    bool blocks;  /* statements may wait in the server as long as lock_timeout lets them */
    int pool_max; /* 0: the default */
    char name[LK_PG_NAME_MAX]; /* application_name: of this client's sessions alone */
    char uri[LK_PG_URI_MAX];   /* for libpq; may hold a password */
} lk_pg_target;

/* sql_postgres_url.c. Takes "postgres://..." apart. LK_OK, or LK_INVALID with a message that holds
 * no password. */
lk_status lk_pg_target_parse(const char *address, lk_pg_target *ret, lk_error *error);

/* Connects until the deadline, makes the schema if it is missing, prepares the statements. LK_OK;
 * of a server that is there LK_BUSY (it takes no more) or LK_LOST (it refused or hung up); else
 * LK_UNAVAILABLE, LK_PROTOCOL, LK_NO_MEMORY. *inout is NULL at first.
 *
 * LK_TIMEOUT: the server has accepted the connection and is not done with it, for less than
 * LK_PG_CONNECT_MS. *inout is half made: the next call goes on with it, or lk_pg_disconnect() ends
 * it. A busy server would begin again with each new one, and never be done. */
lk_status lk_pg_connect(const lk_pg_target *target, int64_t deadline_us, lk_pg_conn **inout);
void lk_pg_disconnect(lk_pg_conn *conn); /* the server frees what the connection held */

/* The server has hung up, as far as this machine knows. */
bool lk_pg_has_ended(const lk_pg_conn *conn);
int lk_pg_socket(const lk_pg_conn *conn);
int lk_pg_process(const lk_pg_conn *conn); /* its server process's number */

/* Sends; the answer is lk_pg_receive()'s to take. LK_OK, or LK_UNKNOWN: of no more use. */
lk_status lk_pg_send(lk_pg_conn *conn, int statement, const lk_sql_arg *args);
/* Returns when the server has something to say, perhaps the answer; or then. */
void lk_pg_await(lk_pg_conn *conn, int64_t until_us);
/* LK_TIMEOUT: no answer until then, ask again. Else what lk_sql_run() returns, and LK_BUSY: ended
 * by lock_timeout. */
lk_status lk_pg_receive(lk_pg_conn *conn, int64_t until_us, lk_sql_each *each, void *arg);
/* Both, within the command timeout. After LK_UNKNOWN the connection is of no more use. */
lk_status lk_pg_run(lk_pg_conn *conn, int statement, const lk_sql_arg *args, lk_sql_each *each,
                    void *arg);

/* -- a client's connections: sql_postgres.c --------------------------------------------------- */

typedef struct lk_pg_pool {
    lk_pg_target target;
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    int n_open, n_idle, n_half_made, n_unknown;
    int unknown[LK_PG_UNKNOWN_MAX]; /* processes whose last statement may still be done */
    struct lk_pg_idle {
        lk_pg_conn *conn;
        int64_t since_us;
    } idle[LK_PG_POOL_MAX];                /* used last on top */
    lk_pg_conn *half_made[LK_PG_POOL_MAX]; /* of lk_pg_connect(); counted in n_open */
} lk_pg_pool;

lk_status lk_pg_pool_open(lk_pg_pool *pool, const lk_context *context, const lk_sql_set *set,
                          bool blocks, lk_error *error);
void lk_pg_pool_close(lk_pg_pool *pool); /* all have been given back */

/* A connection on which nothing is under way, within the command timeout. LK_BUSY: all pool=N
 * stayed in use, or those that the server allows; LK_UNAVAILABLE, LK_PROTOCOL, LK_NO_MEMORY. */
lk_status lk_pg_take(lk_pg_pool *pool, lk_pg_conn **ret);
void lk_pg_give(lk_pg_pool *pool, lk_pg_conn *conn); /* for the next one */
void lk_pg_drop(lk_pg_pool *pool, lk_pg_conn *conn); /* disconnects */

/* One statement on any connection; returns as lk_sql_run(). */
lk_status lk_pg_pool_run(lk_pg_pool *pool, int statement, const lk_sql_arg *args, lk_sql_each *each,
                         void *arg);
#endif
