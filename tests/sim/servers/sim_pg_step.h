/* Steps of a statement: which rows it finds, and what it does with one of them. sim_pg_run.c has
 * the statements that are made of these. A step that fails says so in the failure of the backend.
 */
#ifndef SIM_PG_STEP_H
#define SIM_PG_STEP_H

#include "sim_pg_model.h"

enum { PG_FOUND_MAX = 64 }; /* rows that a statement may find */

/* One run of a statement. */
struct pg_run {
    struct pg_backend *backend;
    struct pg_sql *sql;
    const Oid *types;
    const struct pg_arg *args;
    int n, element; /* element: which one of the arrays is bound */
    bool binary;
    PGresult *result;
    int64_t changed;
};

/* Everywhere, now: as it is committed by now, instead of the snapshot. */

int pg_array_size(const struct pg_arg *arg);
/* Fills the table "asked" with the elements of the arguments. */
void pg_fill_asked(struct pg_run *run);
/* Adds the rows of sql->read to the result. */
void pg_read(struct pg_run *run, bool now);
/* The snapshot has a row of sql->read. */
bool pg_finds_any(struct pg_run *run);
/* What sql->find gives: version and row of those that qualify. An INSERT: of those with its key,
 * and by which transaction each was written. */
int pg_find(struct pg_run *run, bool now, int64_t ret[PG_FOUND_MAX][3]);

/* The version of the row that is seen; 0: none. */
int64_t pg_live(struct pg_run *run, int64_t row, bool now);
/* Locks a row that the snapshot has as version vid. *ret_newer: it has a newer version by then.
 * False: failed. */
bool pg_lock_version(struct pg_run *run, int64_t row, int64_t vid, bool *ret_newer);
/* Fails with 40001. Returns false. */
bool pg_conflict(struct pg_run *run);
/* Both evaluate the condition on the newest version first, and leave the row if it does not hold.
 */
void pg_write_version(struct pg_run *run, int64_t row);
void pg_delete_version(struct pg_run *run, int64_t row);
void pg_insert_row(struct pg_run *run);

#endif
