/* An archive that runs, and its first step. */
#ifndef ARCHIVE_MAKE_H
#define ARCHIVE_MAKE_H

#include "archive_part.h"

struct move {
    struct archive_file file;
    db *store;
    db_reader *reader;
    int64_t before_us;
    db_archive_part last; /* that the store has; part 0: none */
    db_archive_part next; /* that is made */
    archive_moved *ret;
    db_error *error;
    /* of the part that is made */
    int64_t seq, n, limit;
    bool closed_end; /* no further row of these months comes next */
    bool feed_end;   /* nor any row at all */
    bool waits;      /* the feed shows further rows once a transaction has ended */
};

/* The file's error becomes that of the archive. */
db_status move_file_error(struct move *move);
/* Step 1: writes the next part to the file, flushed. *ret_end: there is none. */
db_status move_make_part(struct move *move, bool *ret_end);

#endif
