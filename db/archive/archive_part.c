#include "archive_part.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

/* Two texts: with "?1 = 0 OR part = ?1" SQLite would read the whole file for one part. */
#define OF_ALL  "?1 = 0"
#define OF_PART "part = ?1"

/* -- digest ----------------------------------------------------------------------------------- */

static int add_to_digest(void *arg, const void *found)
{
    const db_ledger_row *row = found;
    char text[DB_HASH_LENGTH + 32];
    const int length = snprintf(text, sizeof text, "%" PRId64 "\n%s\n", row->id, row->hash);
    sha256_update(arg, (size_t)length, (const uint8_t *)text);
    return 0;
}

db_status part_digest(struct archive_file *file, const char *before, int64_t part,
                      char ret[DB_HASH_LENGTH + 1])
{
    struct sha256_ctx sha;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&sha);
    sha256_update(&sha, strlen(before), (const uint8_t *)before);
    archive_rows(file, &row_types[TABLE_LEDGER],
                 "SELECT " LEDGER_COLUMNS " FROM ledger WHERE part = ?1 ORDER BY seq",
                 &VALUE_INT(part), 1, add_to_digest, &sha);
    sha256_digest(&sha, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
    return file->error.status;
}

static int keep_part(void *arg, const void *row)
{
    *(db_archive_part *)arg = *(const db_archive_part *)row;
    return 1;
}

db_status part_newest(struct archive_file *file, db_archive_part *ret)
{
    *ret = (db_archive_part){.part = 0};
    return archive_rows(file, &row_types[TABLE_PARTS],
                        "SELECT " PART_COLUMNS " FROM parts ORDER BY part DESC LIMIT 1", NULL, 0,
                        keep_part, ret);
}

/* -- what is carried --------------------------------------------------------------------------- */

static void end_resource(struct part_fold *fold)
{
    if (fold->carried.resource[0] != '\0' && !fold->skips && fold->each != NULL &&
        fold->status == DB_OK)
        fold->status = fold->each(fold->arg, &fold->carried);
}

static void begin_resource(struct part_fold *fold, const char *resource)
{
    db_status status = DB_NOT_FOUND;
    end_resource(fold);
    fold->carried = (db_carried){.n = 0};
    fold->skips = false;
    if (fold->reader != NULL)
        status = db_read_carried_of(fold->reader, resource, &fold->carried);
    if (status != DB_OK && status != DB_NOT_FOUND && fold->status == DB_OK)
        fold->status = status;
    memcpy(fold->carried.resource, resource, sizeof fold->carried.resource);
}

static void note_bad(struct part_fold *fold, const db_ledger_row *row, const char *why)
{
    int64_t seq = 0;
    fold->skips = true;
    if (archive_number(fold->file, "SELECT seq FROM ledger WHERE id = ?1", &VALUE_INT(row->id), 1,
                       &seq) != DB_OK)
        return;
    if (fold->bad_seq == 0 || seq < fold->bad_seq) {
        fold->bad_seq = seq;
        fold->bad_why = why;
        fold->bad = *row;
    }
}

static int fold_row(void *arg, const void *found)
{
    struct part_fold *fold = arg;
    const db_ledger_row *row = found;
    if (strcmp(fold->carried.resource, row->resource) != 0)
        begin_resource(fold, row->resource);
    if (fold->skips || fold->status != DB_OK)
        return fold->status != DB_OK;
    const char *why = db_carried_add(&fold->carried, row);
    if (why != NULL)
        note_bad(fold, row, why);
    return 0;
}

db_status part_fold_run(struct part_fold *fold)
{
    fold->bad_seq = 0;
    fold->status = DB_OK;
    fold->carried = (db_carried){.n = 0};
    fold->skips = false;
    const char *sql = fold->part == 0 ? "SELECT " LEDGER_COLUMNS
                                        " FROM ledger ORDER BY resource, epoch, version_before, id"
                                      : "SELECT " LEDGER_COLUMNS " FROM ledger WHERE part = ?1"
                                        " ORDER BY resource, epoch, version_before, id";
    archive_rows(fold->file, &row_types[TABLE_LEDGER], sql, &VALUE_INT(fold->part), fold->part != 0,
                 fold_row, fold);
    end_resource(fold);
    return fold->file->error.status != DB_OK ? fold->file->error.status : fold->status;
}

/* -- money ------------------------------------------------------------------------------------ */

#define MONEY_OF(which)                                                                            \
    "SELECT " LEDGER_COLUMNS " FROM ledger WHERE " which " AND " ARCHIVE_IS_MONEY                  \
    " ORDER BY txn_id, seq"

static int add_leg(void *arg, const void *row)
{
    db_legs_add(arg, row);
    return 0;
}

db_status part_check_legs(struct archive_file *file, int64_t part, db_books *ret)
{
    struct db_legs legs = {.total = 0};
    archive_rows(file, &row_types[TABLE_LEDGER], part == 0 ? MONEY_OF(OF_ALL) : MONEY_OF(OF_PART),
                 &VALUE_INT(part), 1, add_leg, &legs);
    db_legs_finish(&legs);
    *ret = legs.books;
    return file->error.status;
}

/* The plus keeps SQLite from the index of resources, which would read the whole file, too. */
#define ORDERS_OF(which)                                                                           \
    "SELECT order_id, sum(delta) AS delta FROM ledger WHERE " which                                \
    " AND +resource >= 'account:' AND +resource < 'account;' AND order_id <> ''"                   \
    " GROUP BY order_id HAVING sum(delta) <> 0 ORDER BY order_id"

db_status part_orders(struct archive_file *file, int64_t part, int (*each)(void *arg, const void *),
                      void *arg)
{
    return archive_rows(file, &row_types[TABLE_CARRIED_ORDERS],
                        part == 0 ? ORDERS_OF(OF_ALL) : ORDERS_OF(OF_PART), &VALUE_INT(part), 1,
                        each, arg);
}
