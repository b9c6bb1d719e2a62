/*
 * A PostgreSQL server for the simulation, behind libpq's functions: db/postgres and lockkit/sql run
 * as they are.
 *
 *   sim_pg_client.c      libpq's calls (-Wl,--wrap): connections, messages, results
 *   sim_pg_server.c      the server: its processes, restarts, crashes, faults
 *   sim_pg_backend.c     one server process: messages in, answers out
 *   sim_pg_transaction.c its transactions, settings, the setup of the schema
 *   sim_pg_run.c         runs a statement: SELECT, UPDATE, INSERT ...
 *   sim_pg_step.c        its steps: which rows it sees, waits for, rechecks, changes
 *   sim_pg_result.c      answers as results of libpq
 *   sim_pg_sql.c         takes a statement's text apart
 *   sim_pg_rows.c        versions of rows, transactions, snapshots
 *   sim_pg_locks.c       locks of rows, who waits for whom, deadlocks
 *   sim_pg_advisory.c    advisory locks, and a sequence
 *
 * Rows are kept in a SQLite database in memory, every version of each, and SQLite evaluates the
 * expressions of the statements. Which version is seen, locked or rechecked is decided here.
 */
#ifndef SIM_PG_H
#define SIM_PG_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_pg_faults {
    uint32_t cut_commit; /* one COMMIT in so many loses its connection; 0: none */
    uint32_t cut;        /* the same of other statements */
    uint32_t slow;       /* one statement in so many takes long */
};

void sim_pg_begin(void);
void sim_pg_faults(const struct sim_pg_faults *faults);
/* The process has ended: its connections are closed. */
void sim_pg_kill(int group);
/* Ends one of its processes, as pg_terminate_backend(). False: there is none. */
bool sim_pg_terminate_one(void);
/* Ends all of them and refuses connections until then. crash: without ending their commits. */
void sim_pg_restart(bool crash, int64_t until_us);
void sim_pg_refuse(int64_t until_us); /* new connections */
/* Deletes the rows of sql-unique-forever that stood at the last call already. Returns how many. */
size_t sim_pg_free_rows(void);
/* Waits until no transaction is open, then gives what is committed, as tables. */
sqlite3 *sim_pg_judge(void);

#endif
