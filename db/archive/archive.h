/*
 * Closed months of the ledger, moved from a store to an archive file, and proved together with the
 * store.
 *
 * The file is a SQLite database, whatever the engine of the store is. It has the rows of the first
 * part to the last one, and is continued by later months. The store keeps what db_archive.h says.
 *
 * A part is moved in two steps, so a process that is killed loses no row and leaves none twice:
 *
 *   1. The rows, and the part's record with a digest of them, are committed to the file. The file
 *      and its folder are flushed.
 *   2. One transaction of the store records the part, stores what is carried, and deletes the rows.
 *
 * If the file has parts that the store has not, step 2 is missing. The next call compares them with
 * the rows of the store, flushes the file, then does step 2 of each.
 */
#ifndef ARCHIVE_H
#define ARCHIVE_H

#include "db_archive.h"

typedef struct archive_moved {
    int64_t rows, parts;       /* moved by this call */
    int64_t finished;          /* parts of them that an earlier call had written to the file */
    char held[DB_MESSAGE_MAX]; /* why rows of these months stay; "": none does */
} archive_moved;

/* Moves the rows from before this time, in the order of the feed, to the file, which is made with
 * mode 0600 if there is none. A row that is dated in the future, by more than a day, is taken for
 * one of its neighbours' time. The newest row stays. options: of a store that exists; its url and
 * shared_file.
 *
 * Only what is sound is moved: rows whose chain, versions and legs follow. DB_INVALID: the file is
 * no archive of this store, or lacks a part of it; the store has rows that are not sound, or none
 * of this service. Else returns as db_open() and db_run(). What was moved before stays moved. */
db_status archive_move(const db_options *options, int64_t before_us, const char *file,
                       archive_moved *ret, db_error *error);

typedef struct archive_proof {
    int64_t parts, rows;
    int64_t faults;             /* 0: proved */
    char first[DB_MESSAGE_MAX]; /* fault */
} archive_proof;

/* Proves that the file has each row that the store has moved, as it was: the chain of each resource
 * from its first row on, both legs of each movement of money, and that the sums are those which the
 * store carries. The reader is in a snapshot. With db_audit() and db_audit_books() of the same
 * snapshot this proves the whole ledger. Reads each row of the file a fixed number of times.
 * Returns DB_OK with *ret; DB_INVALID: no archive; else as the reads. */
db_status archive_prove(db_reader *reader, const char *file, archive_proof *ret, db_error *error);

/* As db_read_money(), of the rows in the file. */
db_status archive_read_money(const char *file, int (*each)(void *arg, const db_ledger_row *row),
                             void *arg, db_error *error);

#endif
