/* The archive file: a SQLite database of its own. */
#ifndef ARCHIVE_FILE_H
#define ARCHIVE_FILE_H

#include "archive.h"
#include "engine.h"

#include <sqlite3.h>

struct archive_file {
    sqlite3 *handle;
    const char *path; /* borrowed */
    db_error error;   /* the first one */
};

/* Opens the file. write: makes it if there is none. DB_INVALID: it is something else. */
db_status archive_open(struct archive_file *file, const char *path, bool write);
void archive_close(struct archive_file *file);

/* Runs SQL with arguments "?1", ... that answers with nothing. */
db_status archive_run(struct archive_file *file, const char *sql, const struct value *args,
                      size_t n);
/* Calls each() with the rows that the SQL answers with, until it returns non-zero. */
db_status archive_rows(struct archive_file *file, const struct row_type *type, const char *sql,
                       const struct value *args, size_t n, int (*each)(void *arg, const void *row),
                       void *arg);
/* SQL that answers with one number; NULL is 0. */
db_status archive_number(struct archive_file *file, const char *sql, const struct value *args,
                         size_t n, int64_t *ret);
/* Commits, and flushes the file and its folder. */
db_status archive_commit(struct archive_file *file);
/* Flushes the file and its folder: what was committed by a process that was killed may not be. */
db_status archive_flush(struct archive_file *file);

/* Movements of money, as AUDIT_MONEY_SQL (audit_sql.h) has them. */
#define ARCHIVE_IS_MONEY                                                                           \
    "(resource < 'item:' OR resource >= 'item;') AND NOT (kind = 'setting' AND delta = 0)"

#endif
