/*
 * Months of the ledger that were moved to an archive file, and what the store keeps of them.
 *
 * Rows leave the ledger in the order of the feed, from its first row on: nothing is moved before
 * what comes before it. They are moved in parts. Both legs of a movement of money are in one part.
 * Of each resource the store keeps what the next row must follow (db_carried), and of each order
 * the money that moved rows say was paid for it. So the audit needs no archive. Orders and the keys
 * of clients are never moved: a key that was used once stays used.
 *
 * archive/archive.h moves parts to a file, and proves the store together with the file.
 */
#ifndef DB_ARCHIVE_H
#define DB_ARCHIVE_H

#include "db.h"

/* Of one resource: its last row that was moved, and the sums of all those. */
typedef struct db_carried {
    char resource[DB_RESOURCE_MAX + 1];
    int64_t epoch, version_before, last_id; /* of the last row */
    char hash[DB_HASH_LENGTH + 1];
    int64_t total; /* of all deltas: the value that the last row left; of a shop's side its sum */
    int64_t moved; /* of the deltas since the reset of `epoch`, without the reset */
    int64_t restocked; /* of those of kind restock */
    int64_t n;         /* rows */
} db_carried;

/* Adds a row, which must follow: its chain, version, epoch and value. The rows of a resource come
 * in the order of its chain. Returns NULL, or what is wrong with the row; *carried is as it was
 * then. carried begins with the resource alone. */
const char *db_carried_add(db_carried *carried, const db_ledger_row *row);

/* The money that moved rows of buyers' accounts have of an order: a payment less refunds, negative.
 */
typedef struct db_carried_order {
    char order_id[DB_ID_MAX + 1];
    int64_t delta; /* not 0 */
} db_carried_order;

/* Rows that were moved together. */
typedef struct db_archive_part {
    int64_t part;                      /* 1, 2, ... */
    int64_t before_us;                 /* its rows are of months before */
    int64_t last_transaction, last_id; /* the place of its last row in the feed */
    int64_t n;                         /* rows */
    char digest[DB_HASH_LENGTH + 1];   /* of the hashes of its rows, and of the part before it */
} db_archive_part;

/* The newest part. DB_NOT_FOUND: nothing was moved. */
db_status db_read_newest_part(db_reader *reader, db_archive_part *ret);
/* All parts, in their order, until each() returns non-zero. In a snapshot, as the next one. */
db_status db_read_parts(db_reader *reader, int (*each)(void *arg, const db_archive_part *part),
                        void *arg);
/* All resources of which rows were moved, in the order of their names. */
db_status db_read_carried(db_reader *reader, int (*each)(void *arg, const db_carried *carried),
                          void *arg);
/* All orders that moved rows have paid, in the order of their ids. */
db_status db_read_carried_orders(db_reader *reader,
                                 int (*each)(void *arg, const db_carried_order *order), void *arg);
/* Of one resource. DB_NOT_FOUND: no row was moved. */
db_status db_read_carried_of(db_reader *reader, const char *resource, db_carried *ret);
/* Of one resource: behind its last row that was moved. DB_NOT_FOUND: no row was moved. */
db_status db_read_chain_start(db_reader *reader, const char *resource, db_chain_place *ret);

/* -- in the transaction that moves a part ------------------------------------------------------ */

/* Stores what is carried of a resource, instead of what was. */
db_status db_tx_put_carried(db_tx *tx, const db_carried *carried);
/* Adds to the money that moved rows of buyers' accounts have of an order. */
db_status db_tx_carry_order(db_tx *tx, const char *order_id, int64_t delta);
/* Records a part and deletes its rows: all up to its last one. DB_CONFLICT: they are not as many as
 * the part has, or it is not the next part. DB_INVALID: the engine cannot do this. */
db_status db_tx_move_part(db_tx *tx, const db_archive_part *part);

#endif
