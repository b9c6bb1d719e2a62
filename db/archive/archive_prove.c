/* Proves the file together with what the store carries. */
#include "archive_part.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct proof {
    struct archive_file file;
    db_reader *reader;
    archive_proof *ret;
    char digest[DB_HASH_LENGTH + 1]; /* of the part before */
    int64_t resources;
    int64_t orders, orders_of_store;
    db_status status;
};

static void add_fault(struct proof *proof, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_fault(struct proof *proof, const char *format, ...)
{
    va_list args;
    if (proof->ret->faults++ > 0)
        return;
    va_start(args, format);
    vsnprintf(proof->ret->first, sizeof proof->ret->first, format, args);
    va_end(args);
}

/* -- parts ------------------------------------------------------------------------------------- */

static int keep_part(void *arg, const void *row)
{
    *(db_archive_part *)arg = *(const db_archive_part *)row;
    return 1;
}

/* Of each part that the store has moved. */
static int check_part(void *arg, const db_archive_part *part)
{
    struct proof *proof = arg;
    db_archive_part mine = {.part = 0};
    int64_t n = 0;
    char digest[DB_HASH_LENGTH + 1];
    archive_rows(&proof->file, &row_types[TABLE_PARTS],
                 "SELECT " PART_COLUMNS " FROM parts WHERE part = ?1", &VALUE_INT(part->part), 1,
                 keep_part, &mine);
    archive_number(&proof->file, "SELECT count(*) FROM ledger WHERE part = ?1",
                   &VALUE_INT(part->part), 1, &n);
    if (part_digest(&proof->file, proof->digest, part->part, digest) != DB_OK)
        return 1;
    memcpy(proof->digest, part->digest, sizeof proof->digest);
    proof->ret->parts++;
    proof->ret->rows += n;
    if (mine.part == 0)
        add_fault(proof, "part %" PRId64 " is missing", part->part);
    else if (strcmp(digest, part->digest) != 0 || strcmp(mine.digest, part->digest) != 0 ||
             n != part->n || mine.n != n || mine.last_id != part->last_id ||
             mine.last_transaction != part->last_transaction)
        add_fault(proof, "part %" PRId64 " has not the rows that were moved", part->part);
    return 0;
}

static void check_parts(struct proof *proof)
{
    int64_t parts = 0, rows = 0;
    proof->status = db_read_parts(proof->reader, check_part, proof);
    archive_number(&proof->file, "SELECT count(*) FROM parts", NULL, 0, &parts);
    archive_number(&proof->file, "SELECT count(*) FROM ledger", NULL, 0, &rows);
    if (parts > proof->ret->parts)
        add_fault(proof,
                  "it has %" PRId64 " parts, but the store has moved %" PRId64
                  "; run seckilld archive again with this file",
                  parts, proof->ret->parts);
    else if (rows != proof->ret->rows)
        add_fault(proof, "it has rows of no part");
}

/* -- rows and sums ------------------------------------------------------------------------------
 */

static bool is_same(const db_carried *one, const db_carried *other)
{
    return one->epoch == other->epoch && one->version_before == other->version_before &&
           one->last_id == other->last_id && strcmp(one->hash, other->hash) == 0 &&
           one->total == other->total && one->moved == other->moved &&
           one->restocked == other->restocked && one->n == other->n;
}

static db_status check_carried(void *arg, const db_carried *carried)
{
    struct proof *proof = arg;
    db_carried of_store = {.n = 0};
    db_status status = db_read_carried_of(proof->reader, carried->resource, &of_store);
    if (status != DB_OK && status != DB_NOT_FOUND)
        return status;
    proof->resources++;
    if (!is_same(carried, &of_store))
        add_fault(proof, "%s: the store carries another sum than its rows have", carried->resource);
    return DB_OK;
}

static int count_carried(void *arg, const db_carried *carried)
{
    (void)carried;
    ++*(int64_t *)arg;
    return 0;
}

static void check_rows(struct proof *proof)
{
    int64_t resources = 0;
    struct part_fold fold = {.file = &proof->file, .each = check_carried, .arg = proof};
    if (proof->status == DB_OK)
        proof->status = part_fold_run(&fold);
    if (proof->status == DB_OK)
        proof->status = db_read_carried(proof->reader, count_carried, &resources);
    if (fold.bad_seq != 0)
        add_fault(proof, "row %" PRId64 " of %s: %s", fold.bad.id, fold.bad.resource, fold.bad_why);
    else if (resources != proof->resources)
        add_fault(proof,
                  "the store carries %" PRId64 " resources, the archive has rows of %" PRId64,
                  resources, proof->resources);
}

static void check_money(struct proof *proof)
{
    db_books books;
    if (part_check_legs(&proof->file, 0, &books) != DB_OK)
        return;
    if (books.unbalanced + books.unchained > 0)
        add_fault(proof, "%" PRId64 " movements of money have not two legs that follow",
                  books.unbalanced + books.unchained);
}

/* The order is carried with this sum. A list of both in one order would need both at once. */
static int check_order(void *arg, const db_carried_order *order)
{
    struct proof *proof = arg;
    const struct value args[] = {VALUE_TEXT(order->order_id), VALUE_INT(order->delta)};
    int64_t found = 0;
    proof->orders_of_store++;
    archive_number(&proof->file, "SELECT count(*) FROM paid WHERE order_id = ?1 AND delta = ?2",
                   args, VALUE_COUNT(args), &found);
    if (found != 1)
        add_fault(proof, "order %s: the store carries another payment than its rows have",
                  order->order_id);
    return proof->file.error.status != DB_OK;
}

static int keep_order(void *arg, const void *row)
{
    struct proof *proof = arg;
    const db_carried_order *order = row;
    const struct value args[] = {VALUE_TEXT(order->order_id), VALUE_INT(order->delta)};
    proof->orders++;
    return archive_run(&proof->file, "INSERT INTO paid VALUES (?1, ?2)", args, VALUE_COUNT(args)) !=
           DB_OK;
}

static void check_orders(struct proof *proof)
{
    archive_run(&proof->file,
                "CREATE TEMP TABLE paid (order_id TEXT PRIMARY KEY, delta INTEGER) WITHOUT ROWID",
                NULL, 0);
    if (part_orders(&proof->file, 0, keep_order, proof) != DB_OK || proof->status != DB_OK)
        return;
    proof->status = db_read_carried_orders(proof->reader, check_order, proof);
    if (proof->orders != proof->orders_of_store)
        add_fault(proof,
                  "the store carries payments of %" PRId64 " orders, the archive has %" PRId64,
                  proof->orders_of_store, proof->orders);
}

static int has_no_twin(void *arg, const db_ledger_row *row)
{
    struct proof *proof = arg;
    const struct value args[] = {VALUE_TEXT(row->txn_id), VALUE_TEXT(row->resource)};
    int64_t found = 0;
    archive_number(&proof->file, "SELECT count(*) FROM ledger WHERE txn_id = ?1 AND resource = ?2",
                   args, VALUE_COUNT(args), &found);
    if (found > 0)
        add_fault(proof, "row %" PRId64 " of %s: its transaction is in the archive, too", row->id,
                  row->resource);
    return proof->file.error.status != DB_OK;
}

/* No transaction acted once before it was moved, and once after. */
static void check_twins(struct proof *proof)
{
    int64_t twins = 0;
    archive_number(&proof->file,
                   "SELECT count(*) FROM (SELECT 1 FROM ledger GROUP BY txn_id, resource"
                   " HAVING count(*) > 1)",
                   NULL, 0, &twins);
    if (twins > 0)
        add_fault(proof, "%" PRId64 " transactions acted twice on one resource", twins);
    if (proof->status == DB_OK)
        proof->status = proof->reader->engine->read_money(proof->reader, has_no_twin, proof, NULL);
}

db_status archive_prove(db_reader *reader, const char *path, archive_proof *ret, db_error *error)
{
    struct proof proof = {.reader = reader, .ret = ret};
    *ret = (archive_proof){.parts = 0};
    if (archive_open(&proof.file, path, false) == DB_OK) {
        archive_run(&proof.file, "BEGIN", NULL, 0);
        check_parts(&proof);
        check_rows(&proof);
        check_money(&proof);
        check_orders(&proof);
        check_twins(&proof);
    }
    archive_close(&proof.file);
    if (proof.file.error.status != DB_OK)
        return db_fail(error, proof.file.error.status, "%s", proof.file.error.message);
    return proof.status == DB_OK
               ? DB_OK
               : db_fail(error, proof.status, "the store: %s", db_status_text(proof.status));
}

/* -- its money ----------------------------------------------------------------------------------
 */

struct show {
    int (*each)(void *arg, const db_ledger_row *row);
    void *arg;
};

static int show_row(void *arg, const void *row)
{
    const struct show *show = arg;
    return show->each(show->arg, row);
}

db_status archive_read_money(const char *path, int (*each)(void *arg, const db_ledger_row *row),
                             void *arg, db_error *error)
{
    struct archive_file file;
    struct show show = {each, arg};
    if (archive_open(&file, path, false) == DB_OK)
        archive_rows(&file, &row_types[TABLE_LEDGER],
                     "SELECT " LEDGER_COLUMNS " FROM ledger WHERE " ARCHIVE_IS_MONEY
                     " ORDER BY txn_id, seq",
                     NULL, 0, show_row, &show);
    archive_close(&file);
    return file.error.status == DB_OK ? DB_OK
                                      : db_fail(error, file.error.status, "%s", file.error.message);
}
