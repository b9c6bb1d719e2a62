/* Moving parts: see the head of archive.h. */
#include "archive_make.h"

#include <inttypes.h>
#include <string.h>

/* -- step 2: out of the store ------------------------------------------------------------------ */

static db_status put_carried(void *tx, const db_carried *carried)
{
    return db_tx_put_carried(tx, carried);
}

struct orders {
    db_tx *tx;
    db_status status;
};

static int carry_order(void *arg, const void *row)
{
    struct orders *orders = arg;
    const db_carried_order *order = row;
    orders->status = db_tx_carry_order(orders->tx, order->order_id, order->delta);
    return orders->status != DB_OK;
}

static db_status work_move(db_tx *tx, void *arg)
{
    struct move *move = arg;
    struct orders orders = {.tx = tx};
    struct part_fold fold = {.file = &move->file,
                             .reader = move->reader,
                             .part = move->next.part,
                             .each = put_carried,
                             .arg = tx};
    db_status status = db_tx_move_part(tx, &move->next);
    if (status == DB_OK)
        status = part_fold_run(&fold);
    if (status == DB_OK && fold.bad_seq != 0)
        status = DB_CONFLICT;
    if (status == DB_OK &&
        (status = part_orders(&move->file, move->next.part, carry_order, &orders)) == DB_OK)
        status = orders.status;
    return status;
}

static db_status finish_part(struct move *move)
{
    db_error why = {.status = DB_OK};
    const db_status status = db_run(move->store, work_move, move, &why);
    if (move->file.error.status != DB_OK)
        return move_file_error(move);
    if (status != DB_OK)
        return db_fail(move->error, status,
                       "part %" PRId64 " is in the archive, and not yet out of the store: %.100s; "
                       "run the same command again",
                       move->next.part, why.message[0] ? why.message : db_status_text(status));
    move->ret->rows += move->next.n;
    move->ret->parts++;
    move->last = move->next;
    return DB_OK;
}

/* -- the file and the store -------------------------------------------------------------------- */

static db_status foreign(struct move *move, const char *why)
{
    return db_fail(move->error, DB_INVALID, "%.120s: %s", move->file.path, why);
}

struct compare {
    struct move *move;
    db_archive_part mine;
    bool same;
};

static int take_part(void *arg, const void *row)
{
    struct compare *compare = arg;
    compare->mine = *(const db_archive_part *)row;
    return 1;
}

/* Each part of the store is in the file, too. The digest of a part covers those before it. */
static db_status check_last(struct move *move, bool *ret_same)
{
    struct compare compare = {.move = move, .mine = {.part = 0}};
    *ret_same = true;
    if (move->last.part == 0)
        return DB_OK;
    archive_rows(&move->file, &row_types[TABLE_PARTS],
                 "SELECT " PART_COLUMNS " FROM parts WHERE part = ?1", &VALUE_INT(move->last.part),
                 1, take_part, &compare);
    *ret_same = strcmp(compare.mine.digest, move->last.digest) == 0 &&
                compare.mine.last_id == move->last.last_id;
    return move->file.error.status == DB_OK ? DB_OK : move_file_error(move);
}

/* The rows of the store that a part in the file should have. */
struct replay {
    struct archive_file *file;
    int64_t part, n;
    bool same;
};

static int compare_row(void *arg, const db_ledger_row *row)
{
    struct replay *replay = arg;
    const struct value args[] = {VALUE_INT(replay->part), VALUE_INT(row->id),
                                 VALUE_TEXT(row->hash)};
    int64_t found = 0;
    archive_number(replay->file,
                   "SELECT count(*) FROM ledger WHERE part = ?1 AND id = ?2 AND hash = ?3", args,
                   VALUE_COUNT(args), &found);
    replay->same &= found == 1;
    replay->n--;
    return replay->n == 0 || !replay->same;
}

/* A part that an earlier call wrote to the file, and did not take out of the store. */
static db_status finish_earlier(struct move *move, const db_archive_part *part)
{
    db_feed_place place = {move->last.last_transaction, move->last.last_id};
    struct replay replay = {&move->file, part->part, part->n, true};
    char digest[DB_HASH_LENGTH + 1];
    bool more = true;
    db_status status = part_digest(&move->file, move->last.digest, part->part, digest);
    if (status != DB_OK)
        return move_file_error(move);
    replay.same = strcmp(digest, part->digest) == 0;
    while (status == DB_OK && replay.n > 0 && replay.same && more)
        status =
            db_read_ledger(move->reader, &place, DB_PAGE_MAX, compare_row, &replay, &place, &more);
    if (status != DB_OK)
        return db_fail(move->error, status, "the ledger: %s", db_status_text(status));
    if (replay.n > 0 || !replay.same)
        return foreign(move, "its newest part does not have the rows that this store would move; "
                             "it belongs to another store, or to another copy of it");
    if (archive_flush(&move->file) != DB_OK)
        return move_file_error(move);
    move->next = *part;
    status = finish_part(move);
    move->ret->finished += status == DB_OK;
    return status;
}

/* The parts that the file has and the store has not: one of a process that was killed, or more
 * after the store was put back from a copy. */
static db_status finish_all_earlier(struct move *move, int64_t newest)
{
    db_status status = DB_OK;
    while (status == DB_OK && move->last.part < newest) {
        struct compare compare = {.move = move, .mine = {.part = 0}};
        archive_rows(&move->file, &row_types[TABLE_PARTS],
                     "SELECT " PART_COLUMNS " FROM parts WHERE part = ?1",
                     &VALUE_INT(move->last.part + 1), 1, take_part, &compare);
        if (move->file.error.status != DB_OK)
            return move_file_error(move);
        if (compare.mine.part == 0)
            return foreign(move, "it lacks a part: the file is damaged");
        status = finish_earlier(move, &compare.mine);
    }
    return status;
}

static db_status join(struct move *move)
{
    db_archive_part newest;
    bool same;
    db_status status = db_read_newest_part(move->reader, &move->last);
    if (status == DB_NOT_FOUND)
        move->last = (db_archive_part){.part = 0};
    else if (status != DB_OK)
        return db_fail(move->error, status, "the store: %s", db_status_text(status));
    if (part_newest(&move->file, &newest) != DB_OK)
        return move_file_error(move);
    if (newest.part < move->last.part)
        return foreign(move,
                       "the store has moved more parts than this file has; give the file that "
                       "has them all");
    if ((status = check_last(move, &same)) != DB_OK)
        return status;
    if (!same)
        return foreign(move, "an archive of another store, or of another copy of this one");
    return finish_all_earlier(move, newest.part);
}

static db_status move_all(struct move *move)
{
    bool end = false;
    db_status status = join(move);
    while (status == DB_OK && !end) {
        status = move_make_part(move, &end);
        if (status == DB_OK && !end)
            status = finish_part(move);
    }
    return status;
}

db_status archive_move(const db_options *options, int64_t before_us, const char *path,
                       archive_moved *ret, db_error *error)
{
    struct move move = {.before_us = before_us, .ret = ret, .error = error};
    db_options existing = *options;
    *ret = (archive_moved){.rows = 0};
    existing.existing = true;
    db_status status = db_open(&existing, &move.store, error);
    if (status == DB_OK)
        status = db_reader_open(move.store, &move.reader, error);
    if (status == DB_OK && archive_open(&move.file, path, true) != DB_OK)
        status = move_file_error(&move);
    if (status == DB_OK)
        status = move_all(&move);
    archive_close(&move.file);
    if (move.reader != NULL)
        db_reader_close(move.reader);
    db_close(move.store);
    return status;
}
