/*
 * A migration, as SQL text of each engine. In one transaction: the old tables get the prefix old_,
 * schema.c makes the new ones, the rows are copied, and the old tables are dropped. So a migrated
 * store has the tables of a new one, to the letter.
 *
 * Versions: 1 had no orders.counted_user, 2 no column of the ledger after at_us, and no chain; 3
 * had no table of the archive. From 3 on nothing is copied: the ledger keeps its rows, hashes and
 * ids.
 *
 * The ledger is copied row by row, because each row's hash covers the one before it. What an old
 * row does not say is found by its transaction id and by the answer of its key:
 *
 *   - kind and order_id: from the text of the request. A movement of money whose answer is gone is
 *     a change, or a transfer if another account has a row with its transaction id.
 *   - counterpart: from the kind. Rows of the shop's sides are appended, dated as the payment.
 *   - A reset had before = after. It gets the difference that it made.
 *
 * To raise SCHEMA_VERSION, give the old tables of that version here, and a fixture to
 * tests/db/old_stores.h.
 */
#ifndef DB_MIGRATION_H
#define DB_MIGRATION_H

#include "schema.h"

struct migration {
    const char *in_place;    /* not NULL: all that is to be done, no row is copied */
    const char *set_aside;   /* renames the old tables */
    const char *copy;        /* all rows but the ledger's */
    const char *copy_ledger; /* SQLite: SELECT LEDGER_COLUMNS of the old ledger, by resource, id */
    const char *finish;      /* the chain of items and accounts; drops the old tables */
};
/* From this version to SCHEMA_VERSION. NULL: there is none. */
const struct migration *sqlite_migration(int64_t version);
const struct migration *postgres_migration(int64_t version);

#endif
