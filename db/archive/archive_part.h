/* A part in the archive file: how it is made, and what it carries. */
#ifndef ARCHIVE_PART_H
#define ARCHIVE_PART_H

#include "archive_file.h"

/* Its digest: the SHA-256 of the digest of the part before, and of id and hash of each row. */
db_status part_digest(struct archive_file *file, const char *before, int64_t part,
                      char ret[DB_HASH_LENGTH + 1]);

/* The newest part of the file; part 0 if there is none. */
db_status part_newest(struct archive_file *file, db_archive_part *ret);

/* Goes through the rows of a part, resource by resource, and adds them to what the store carries.
 * part 0: through all rows, from nothing on. */
struct part_fold {
    struct archive_file *file;
    db_reader *reader; /* reads what is carried; NULL: nothing is */
    int64_t part;
    /* Called with each resource, when its rows are added. Returns a status that ends all. */
    db_status (*each)(void *arg, const db_carried *carried);
    void *arg;
    /* out: the first row, in the order of the feed, that does not follow; 0: all do */
    int64_t bad_seq;
    const char *bad_why;
    db_ledger_row bad;
    /* used by part_fold_run() */
    db_carried carried;
    bool skips; /* the rest of this resource */
    db_status status;
};
db_status part_fold_run(struct part_fold *fold);

/* Whether both legs of each movement are there and follow from each other. part 0: in all rows. */
db_status part_check_legs(struct archive_file *file, int64_t part, db_books *ret);

/* The money that rows of buyers' accounts have of each order, unless it is 0. part 0: all rows. */
db_status part_orders(struct archive_file *file, int64_t part, int (*each)(void *arg, const void *),
                      void *arg);

#endif
