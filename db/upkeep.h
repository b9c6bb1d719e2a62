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

typedef struct db_versions {
    int64_t from, to; /* equal: no row was moved */
    bool index_made;  /* of a store that had this version already */
} db_versions;

/* Moves a store of an older version to that of this program, in one transaction: it is whole in the
 * old version or whole in the new one, whenever the process ends. db/migration.h says what an old
 * ledger gets. A store of this version gets the index of refusals if it lacks it. No service may
 * use the store meanwhile. *ret: the version that it had, and that it has.
 * Returns DB_OK, also if there is nothing to do; DB_INVALID: not a store of ours, or of a version
 * that is unknown; or what db_open() returns. Call it again to learn what became of a commit that
 * was not answered. */
db_status db_migrate(const char *url, db_versions *ret, db_error *error);

/* -- old answers of idempotency keys ----------------------------------------------------------
 *
 * What a key promises: an answer of 2xx has moved something, so its row stays for ever, and the key
 * never acts twice. A refusal has moved nothing. While its row is there, it is the answer of its
 * key. It goes when it is too old, or when enough newer refusals are there. Then the key is as if
 * it had never been used: a retry is decided anew, and may be accepted.
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

/* Refusals beyond a number, found by an index that has refusals alone. The newest stay: `keep` of
 * them, and all of the same microsecond as the last of these. What is newest is told by the store's
 * clock: after it has stepped back, a fresh refusal may go before an older one. */
enum { DB_REFUSALS_MAX = 4096 };

typedef struct db_refusals {
    int64_t n;         /* that may go; DB_REFUSALS_MAX at most */
    int64_t before_us; /* they are from before this time */
} db_refusals;

/* keep >= 1. Reads keep + DB_REFUSALS_MAX entries of the index at most. DB_NOT_FOUND: the store
 * lacks the index, so nothing was read; db_migrate() makes it. Else returns as the other reads. */
db_status db_read_refusals(db_reader *reader, int64_t keep, db_refusals *ret);
/* Deletes the oldest refusals from before this time, at most DB_BITE. *ret_n: how many. */
db_status db_tx_prune_refusals(db_tx *tx, int64_t before_us, int64_t *ret_n);

#endif
