/* What the files of sim_pg.h share. */
#ifndef SIM_PG_MODEL_H
#define SIM_PG_MODEL_H

#include "sim_pg.h"

#include <libpq-fe.h>
#include <stddef.h>

enum {
    PG_COLUMNS = 24,
    PG_SNAPSHOT_MAX = 256,
    PG_XIDS_MAX = 1 << 16,
    PG_BACKENDS_MAX = 512,
    PG_FD_FIRST = 4000000,
    PG_FDS_MAX = 16384,
    PG_SLOW_US = 6000000 /* a slow statement or commit takes at most so long */
};

/* -- sim_pg_rows.c ----------------------------------------------------------------------------- */

enum pg_xid_state { XID_NONE, XID_RUNS, XID_COMMITTED, XID_ABORTED };

struct pg_snapshot {
    int64_t next; /* numbers from here on are not seen */
    int64_t running[PG_SNAPSHOT_MAX];
    size_t n;
};

struct pg_backend;

void pg_rows_begin(void);
sqlite3 *pg_rows(void);
int64_t pg_new_xid(void);
enum pg_xid_state pg_xid_state(int64_t xid); /* XID_NONE: not given yet */
void pg_set_xid_state(int64_t xid, enum pg_xid_state state);
int64_t pg_next_row(void); /* a number for a new row */
void pg_take_snapshot(struct pg_snapshot *ret);
/* Statements evaluate for this backend, with this snapshot; NULL: what is committed by now. */
void pg_look(struct pg_backend *backend, const struct pg_snapshot *snapshot);
struct pg_backend *pg_looking(void);
bool pg_is_seen(int64_t xid);
/* The server has crashed: what was not committed is gone, and numbers may be given again. */
void pg_rows_crash(void);

/* -- sim_pg_sql.c ------------------------------------------------------------------------------ */

enum pg_kind {
    PG_OTHER, /* BEGIN, COMMIT, SET ...: by its text */
    PG_SELECT,
    PG_LOCK,
    PG_UPDATE,
    PG_DELETE,
    PG_INSERT,
    PG_TAKE,     /* a row of a lock: UPDATE of what nobody has locked, or "made" */
    PG_ADVISORY, /* an advisory lock that is waited for */
    PG_END       /* of another session, which is waited for */
};

enum pg_lock { PG_KEY_SHARE, PG_NO_KEY_UPDATE, PG_FOR_UPDATE };

/* A statement of db/postgres or lockkit, and the statements of SQLite that it is run by. */
struct pg_sql {
    char *text;
    enum pg_kind kind;
    char table[32];
    enum pg_lock lock;
    bool of_many; /* its arguments are arrays: run once for each row */
    bool unnests; /* the same, in a query: the table "asked" has the elements */
    bool keyed;   /* the first column is unique */
    bool do_nothing, do_update, returns;
    sqlite3_stmt *read;   /* SELECT, LOCK: the result; of "asked" if it unnests */
    sqlite3_stmt *find;   /* vid, rid of rows that qualify; INSERT: of versions with its key */
    sqlite3_stmt *write;  /* UPDATE, DO UPDATE: the new version of row :rid, if it qualifies */
    sqlite3_stmt *again;  /* DELETE: the version of row :rid, if it qualifies */
    sqlite3_stmt *insert; /* a new row :rid */
    sqlite3_stmt *result; /* RETURNING, of version ?91 */
    sqlite3_stmt *live;   /* the vid of the version of row ?90 that is seen */
    sqlite3_stmt *end;    /* version ?91 is no longer the last */
    struct pg_sql *made;  /* TAKE: the INSERT, if read finds no row */
};

/* Kept for ever. Aborts if it is no statement that the model knows. */
struct pg_sql *pg_sql(const char *text);

/* -- sim_pg_locks.c ---------------------------------------------------------------------------- */

struct pg_failure {
    char code[8]; /* "": none */
    char message[160];
    const char *severity;
};

void pg_locks_begin(void);
/* False: failure says why: deadlock, timeout, end of the process. */
bool pg_lock_row(struct pg_backend *backend, const char *table, int64_t rid, enum pg_lock mode);
bool pg_row_is_locked(const struct pg_backend *backend, const char *table, int64_t row,
                      enum pg_lock mode); /* by another */
bool pg_wait_for(struct pg_backend *backend, int64_t xid);
void pg_unlock_all(int64_t xid);

/* -- sim_pg_advisory.c ------------------------------------------------------------------------- */

void pg_advisory_begin(void);
void pg_advisory_add_functions(sqlite3 *to);
void pg_advisory_show(void); /* fills pg_locks */
/* In the order of arrival. False: failure says why. */
bool pg_advisory_lock(struct pg_backend *backend, int64_t id, bool of_transaction,
                      int64_t patience_ms);
void pg_advisory_end_transaction(const struct pg_backend *backend);
void pg_advisory_end_session(const struct pg_backend *backend);
int64_t pg_advisory_id(const char *key); /* hashtextextended(), which is another one there */

/* -- sim_pg_run.c ------------------------------------------------------------------------------ */

struct pg_arg {
    const char *bytes;
    int length;
};

PGresult *pg_run_sql(struct pg_backend *backend, struct pg_sql *sql, const Oid *types,
                     const struct pg_arg *args, int n, bool binary);
bool pg_fail(struct pg_backend *backend, const char *code, const char *message);

/* -- sim_pg_result.c --------------------------------------------------------------------------- */

PGresult *pg_new_result(int64_t changed, int n_columns, bool binary);
PGresult *pg_result(int64_t changed); /* without rows */
PGresult *pg_error_result(const struct pg_failure *failure);

/* -- sim_pg_backend.c -------------------------------------------------------------------------- */

enum pg_message_kind { PG_QUERY, PG_PREPARE, PG_EXECUTE, PG_SYNC };

struct pg_message {
    struct pg_message *next;
    enum pg_message_kind kind;
    struct pg_sql *sql;
    char name[32];
    const char *text;
    Oid types[PG_COLUMNS];
    struct pg_arg args[PG_COLUMNS];
    int n;
    bool in_text; /* arguments and results, else binary */
    bool alone;   /* not in a pipeline: a transaction of its own, outside of a block */
};

struct pg_answer {
    struct pg_answer *next;
    PGresult *result; /* NULL: the end of a statement's answer */
};

/* A connection: libpq's PGconn is the address of one. */
struct pg_conn {
    int fd, group;
    bool pipeline, closed; /* closed: by the client */
    bool broken;           /* the client gets nothing more than what is in answers */
    bool eof;              /* the server gets nothing more than what is in messages */
    ConnStatusType status;
    int64_t ready_us;          /* connecting until then */
    char error[256], name[64]; /* application_name */
    int unanswered;
    struct pg_message *messages, **messages_end;
    struct pg_answer *answers, **answers_end;
    struct pg_backend *backend;
};

struct pg_backend {
    struct pg_conn *conn;
    int64_t pid, start_us;
    uint32_t era; /* of the server: another one: it has crashed */
    bool terminate, ended;
    struct {
        struct pg_sql *sql;
        char name[32];
        Oid types[PG_COLUMNS];
    } * prepared;
    size_t n_prepared;
    /* settings */
    int64_t lock_timeout_ms, statement_timeout_ms, idle_timeout_ms;
    bool repeatable, async_commit;
    /* the transaction */
    bool in_block, failed, snapshot_kept, tx_repeatable;
    int64_t xid; /* 0: none yet */
    struct pg_snapshot snapshot;
    bool makes_lock_tables;
    int schema_version;
    /* the statement */
    int64_t begun_us;
    int64_t waits_for;
    struct pg_failure failure;
    bool committing;
};

void *pg_backend_live(void *arg);
/* Sleeps. False: the process must end, and failure says why; or the server has crashed. */
bool pg_pause(struct pg_backend *backend, int64_t us);
/* The same, but only a crash of the server ends it. False: crashed. */
bool pg_pause_uninterrupted(struct pg_backend *backend, int64_t us);
bool pg_is_dead(const struct pg_backend *backend); /* with its server */
bool pg_must_end(struct pg_backend *backend);      /* failure says why */

/* -- sim_pg_transaction.c ---------------------------------------------------------------------- */

int64_t pg_backend_xid(struct pg_backend *backend); /* gives it a number if it has none */
/* The commit record goes to the disk, then others see it. Not interrupted. If the server crashes,
 * the record is on the disk or not. False: crashed. */
bool pg_commit(struct pg_backend *backend);
/* Others see what it has changed, or nobody ever. Frees its locks. */
void pg_end_transaction(struct pg_backend *backend, bool committed);
/* A statement of kind PG_OTHER. NULL: the server has crashed. */
PGresult *pg_run_other(struct pg_backend *backend, const char *text);

/* -- sim_pg_server.c --------------------------------------------------------------------------- */

extern struct pg_server {
    struct sim_pg_faults faults;
    struct pg_backend *backends[PG_BACKENDS_MAX];
    size_t n;
    uint32_t era;
    int64_t refuses_until_us, starts_until_us;
    int schema_version;       /* 0: no tables */
    bool lock_tables;         /* of lockkit */
    struct pg_backend *setup; /* has the advisory lock */
} pg_server;

/* NULL, and failure says why. */
struct pg_backend *pg_server_connect(struct pg_conn *conn, struct pg_failure *failure);
void pg_server_leave(struct pg_backend *backend);
bool pg_server_terminate(int64_t pid); /* pg_terminate_backend() */
struct pg_backend *pg_server_find(int64_t pid);

/* -- sim_pg_client.c --------------------------------------------------------------------------- */

void pg_answer(struct pg_conn *conn, PGresult *result);
void pg_break(struct pg_conn *conn); /* for the client */

#endif
