/*
 * Statements to a database and its answers: what the SQL guards need of it, whichever it is.
 *
 * Endpoints:
 *     sqlite:FILE                           a file of its own, made when missing
 *     postgres://USER@HOST:PORT/DATABASE    as libpq takes it, plus pool=N: connections that one
 *                                           client opens at most (default 8; 40 where each hold
 *                                           and each waiter has its own)
 *
 * A guard gives its statements once, as texts per engine. Parameters are written $1, $2 ... and are
 * bound, never pasted into the text: a key is data whatever it says. Each statement is a
 * transaction of its own, so a guard whose rule is one statement is right at READ COMMITTED, the
 * level that is set.
 *
 * Threading: every function may be called from any thread.
 */
#ifndef LOCKKIT_SQL_CONN_H
#define LOCKKIT_SQL_CONN_H

#include "provider.h"

enum { LK_SQL_ARGS_MAX = 3, LK_SQL_COLUMNS_MAX = 4, LK_SQL_STATEMENTS_MAX = 12 };

enum lk_sql_engine { LK_SQL_SQLITE, LK_SQL_POSTGRES, LK_SQL_ENGINES };

typedef struct lk_sql_statement {
    const char *types;                /* of its parameters: 't' text, 'n' number */
    const char *text[LK_SQL_ENGINES]; /* NULL: not offered there */
} lk_sql_statement;

/* The tables of all guards on PostgreSQL: one schema of their own beside whatever the database
 * holds. fillfactor: room for the row's next version on its page. */
#define LK_SQL_POSTGRES_SCHEMA                                                                     \
    "CREATE SCHEMA IF NOT EXISTS lockkit;"                                                         \
    "CREATE TABLE IF NOT EXISTS lockkit.locks (key text COLLATE \"C\" PRIMARY KEY, token text,"    \
    " until_ms bigint NOT NULL, fence bigint NOT NULL) WITH (fillfactor = 50);"                    \
    "CREATE TABLE IF NOT EXISTS lockkit.rows (key text COLLATE \"C\" PRIMARY KEY,"                 \
    " token text NOT NULL);"                                                                       \
    "CREATE SEQUENCE IF NOT EXISTS lockkit.fence"

/* The counter of $1 becomes at least $2. */
#define LK_SQL_RAISE_FENCE(LOCKS)                                                                  \
    "INSERT INTO " LOCKS " AS l (key, token, until_ms, fence) VALUES ($1, NULL, 0, $2) "           \
    "ON CONFLICT (key) DO UPDATE SET fence = excluded.fence WHERE l.fence < excluded.fence"

/* Beyond it a counter could overflow before anybody noticed. */
#define LK_SQL_FENCE_MAX ((uint64_t)1 << 62)

typedef struct lk_sql_set {
    const char *schema[LK_SQL_ENGINES]; /* makes what is missing; changes nothing that is there */
    uint32_t settled; /* bits 1 << statement: after LK_UNKNOWN of these lk_sql_settle() is called,
                         again until it is LK_OK */
    int n;
    lk_sql_statement statements[LK_SQL_STATEMENTS_MAX];
} lk_sql_set;

typedef struct lk_sql_arg {
    const char *text; /* NULL: a number */
    int64_t number;
} lk_sql_arg;

/* Valid during the call that it is given to. */
typedef struct lk_sql_row {
    const char *text[LK_SQL_COLUMNS_MAX]; /* "" for NULL and for columns beyond the last */
    int64_t number[LK_SQL_COLUMNS_MAX];   /* 0 likewise, and for what is no number */
} lk_sql_row;

/* Anything but 0 stops. Must not call lockkit. */
typedef int lk_sql_each(void *arg, const lk_sql_row *row);

typedef struct lk_sql lk_sql;

/* Takes context->endpoints; set must outlive it. Opens a SQLite file at once, connects to
 * PostgreSQL on first use. LK_OK, LK_INVALID with a message that holds no password, LK_NO_MEMORY.
 */
lk_status lk_sql_open(const lk_context *context, const lk_sql_set *set, lk_sql **ret,
                      lk_error *error);
/* No call may be under way. */
void lk_sql_close(lk_sql *sql);

/*
 * Runs one statement; args as its types say. each() may be NULL; what it was given counts only if
 * LK_OK is returned.
 * LK_OK: done. LK_UNAVAILABLE: certainly not done. LK_UNKNOWN: no answer, it may have been done.
 * LK_PROTOCOL: refused by a database that is not as the guard's schema says, or broken.
 * Returns within the command timeout, twice that if it had to connect first.
 */
lk_status lk_sql_run(lk_sql *sql, int statement, const lk_sql_arg *args, lk_sql_each *each,
                     void *arg);

/*
 * Ends what may still come of the set's settled statements whose outcome was unknown: a statement
 * that was given up by this side may wait in the server, and be done later. `statement` is the
 * set's LK_SQL_POSTGRES_END_BACKEND.
 * LK_OK: each of them is done, and the next statement sees it, or it never will be. LK_UNKNOWN: one
 * may still be done. Takes as long as lk_sql_run() for each of them.
 */
lk_status lk_sql_settle(lk_sql *sql, int statement);

/* "ntn": ends the session with this process number and application_name, waits so many
 * milliseconds for its end; one row with 1 if it has ended, 0 if not; no row: there is none. A
 * session that waits in its COMMIT has written when it ends. */
#define LK_SQL_POSTGRES_END_BACKEND                                                                \
    "SELECT pg_terminate_backend(pid, $3)::int FROM pg_stat_activity"                              \
    " WHERE pid = $1 AND application_name = $2"

/* -- the engines: sql_sqlite.c, sql_postgres.c ------------------------------------------------ */

struct lk_sql_backend {
    const char *const *schemes; /* "sqlite:"; NULL-terminated */
    /* address: the whole endpoint. */
    lk_status (*open)(const lk_context *context, const char *address, const lk_sql_set *set,
                      void **ret_self, lk_error *error);
    void (*close)(void *self);
    lk_status (*run)(void *self, int statement, const lk_sql_arg *args, lk_sql_each *each,
                     void *arg);
    lk_status (*settle)(void *self, int statement);
};

extern const struct lk_sql_backend lk_sqlite_backend, lk_postgres_backend;

#endif
