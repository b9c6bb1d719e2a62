/* The inside of a connection to PostgreSQL: sql_postgres_connect.c makes it, sql_postgres_conn.c
 * uses it. */
#ifndef LOCKKIT_SQL_POSTGRES_REP_H
#define LOCKKIT_SQL_POSTGRES_REP_H

#include "sql_postgres.h"

#include <libpq-fe.h>

struct lk_pg_conn {
    const lk_pg_target *target;
    PGconn *handle;
    bool missing;                 /* the last error: a table or schema is not there */
    lk_status heard;              /* of an answer that has begun */
    char message[LK_MESSAGE_MAX]; /* why the last step failed */

    /* While it is made. */
    int64_t since_us; /* when it began */
    PostgresPollingStatusType next;
    bool met;           /* the server has accepted it */
    int due;            /* answers to the statements that are being prepared */
    lk_status prepared; /* the first of them that is not LK_OK */
};

/* Waits for the socket. False: nothing until then. */
bool lk_pg_wait(const lk_pg_conn *conn, short events, int64_t until_us);

/* They note why, for lk_note(), and return the status. */
lk_status lk_pg_failed(lk_pg_conn *conn, lk_status status, const char *text);
lk_status lk_pg_hung_up(lk_pg_conn *conn); /* LK_UNKNOWN */
lk_status lk_pg_too_late(lk_pg_conn *conn, lk_status status);

/* The answer to one statement. LK_TIMEOUT: it has not ended, ask again; else as lk_pg_receive(). */
lk_status lk_pg_answer(lk_pg_conn *conn, int64_t until_us, lk_sql_each *each, void *arg);
/* The same of what was just sent (PQsend... says whether); LK_UNKNOWN if it is late. */
lk_status lk_pg_finish(lk_pg_conn *conn, int sent, int64_t until_us, lk_sql_each *each, void *arg);

/* The name under which a statement of the set is prepared. */
enum { LK_PG_NUMBER_MAX = 24 };
const char *lk_pg_statement_name(int statement, char name[LK_PG_NUMBER_MAX]);

#endif
