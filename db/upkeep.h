/* Looking after a store. Threading: as in db.h; what takes a URL opens the store itself. */
#ifndef DB_UPKEEP_H
#define DB_UPKEEP_H

#include "db.h"

/* Copies a SQLite store, as it is at one moment, to a new file with mode 0600. A service may sell
 * meanwhile. The copy gets its name once it is whole and flushed. Until then it is
 * FILE.partial-XXXXXX, which stays if the process is killed.
 * Returns DB_OK; DB_INVALID (the file exists; no store of this service; a shared file; PostgreSQL:
 * the message names pg_dump); or what db_open() returns when a file fails. */
db_status db_backup(const char *url, const char *file, db_error *error);

/* -- old answers of idempotency keys ----------------------------------------------------------
 *
 * A sweep goes through all keys in ascending order, a bite at a time. No index is needed for it, so
 * an order pays nothing. */

enum { DB_BITE = 64 }; /* keys */

typedef struct db_bite {
    char last[DB_KEY_MAX + 1]; /* its largest key; "": no key is left */
    int64_t n, old;            /* its keys; those with an answer from before the time given */
} db_bite;

/* The next keys above `after`; "": from the smallest on. Returns as the other reads. */
db_status db_read_bite(db_reader *reader, const char *after, int64_t before_us, db_bite *ret);

/* Prunes answers from before this time, of the keys above `after` up to `last`. A refusal moved
 * nothing: its row goes, and the key can be used again. Of any other answer the row stays for ever,
 * with its status and an empty request and body: the key never acts twice. */
db_status db_tx_prune_bite(db_tx *tx, const char *after, const char *last, int64_t before_us);

#endif
