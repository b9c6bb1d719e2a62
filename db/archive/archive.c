/* Moving parts: see the head of archive.h. */
#include "archive_part.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PART_ROWS = 1000 }; /* of a part; more if legs are further apart */

/* Clocks differ by less. A row that is dated further ahead is dated wrongly. */
#define DAY_US INT64_C(86400000000)

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

static db_status give_file_error(struct move *move)
{
    return db_fail(move->error, move->file.error.status, "%s", move->file.error.message);
}

/* -- step 1: the rows in the file -------------------------------------------------------------- */

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static int take_row(void *arg, const db_ledger_row *row)
{
    static const char sql[] = "INSERT INTO ledger (seq, part, " LEDGER_COLUMNS
                              ") VALUES (?, ?, " ARGUMENTS(LEDGER_ROW) ")";
    struct move *move = arg;
    struct value values[ROW_COLUMNS_MAX + 2] = {VALUE_INT(move->seq + 1),
                                                VALUE_INT(move->next.part)};
    if (row->at_us >= move->before_us && row->at_us <= now_us() + DAY_US) {
        move->closed_end = true;
        return 1;
    }
    const size_t n = 2 + row_values(&row_types[TABLE_LEDGER], row, values + 2);
    move->seq++;
    move->n++;
    return archive_run(&move->file, sql, values, n) != DB_OK;
}

static db_status read_rows(struct move *move)
{
    db_feed_place place = {move->last.last_transaction, move->last.last_id};
    bool more = true;
    db_status status = DB_OK;
    move->n = 0;
    move->closed_end = move->feed_end = false;
    while (status == DB_OK && move->n < move->limit && !move->closed_end && !move->feed_end) {
        const int64_t before = move->n, rest = move->limit - move->n;
        status =
            db_read_ledger(move->reader, &place, rest < DB_PAGE_MAX ? (size_t)rest : DB_PAGE_MAX,
                           take_row, move, &place, &more);
        move->feed_end = !move->closed_end && (move->n == before || !more);
        move->waits = move->feed_end && more;
        if (move->file.error.status != DB_OK)
            return give_file_error(move);
    }
    return status == DB_OK ? DB_OK
                           : db_fail(move->error, status, "the ledger: %s", db_status_text(status));
}

/* The rows from this one on stay in the store. */
static db_status cut(struct move *move, int64_t seq)
{
    const struct value args[] = {VALUE_INT(move->next.part), VALUE_INT(seq)};
    archive_run(&move->file, "DELETE FROM ledger WHERE part = ?1 AND seq >= ?2", args,
                VALUE_COUNT(args));
    return move->file.error.status;
}

/* The first row whose movement of money has its other leg outside; 0: there is none. */
static db_status find_lone_leg(struct move *move, int64_t *ret)
{
    return archive_number(&move->file,
                          "SELECT min(first) FROM (SELECT min(seq) AS first FROM ledger"
                          " WHERE part = ?1 AND " ARCHIVE_IS_MONEY
                          " GROUP BY txn_id HAVING count(*) <> 2 OR sum(delta) <> 0)",
                          &VALUE_INT(move->next.part), 1, ret);
}

static void hold(struct move *move, const db_ledger_row *row, const char *why)
{
    snprintf(move->ret->held, sizeof move->ret->held, "row %" PRId64 " of %s: %s", row->id,
             row->resource, why);
}

/* Leaves only rows that follow what is carried, and whole movements. */
static db_status cut_to_sound(struct move *move)
{
    struct part_fold fold = {.file = &move->file, .reader = move->reader, .part = move->next.part};
    int64_t lone;
    for (;;) {
        db_status status = find_lone_leg(move, &lone);
        if (status == DB_OK)
            status = part_fold_run(&fold);
        if (move->file.error.status != DB_OK)
            return give_file_error(move);
        if (status != DB_OK)
            return db_fail(move->error, status, "what is carried: %s", db_status_text(status));
        if (lone == 0 && fold.bad_seq == 0)
            return DB_OK;
        const bool by_leg = fold.bad_seq == 0 || (lone != 0 && lone < fold.bad_seq);
        if (by_leg && move->ret->held[0] == '\0')
            snprintf(move->ret->held, sizeof move->ret->held,
                     "a movement of money has its other leg behind them");
        else if (!by_leg)
            hold(move, &fold.bad, fold.bad_why);
        if (cut(move, by_leg ? lone : fold.bad_seq) != DB_OK)
            return give_file_error(move);
    }
}

/* The legs that are left are pairs. The hash of the shop's one must follow. */
static db_status check_legs(struct move *move)
{
    db_books books;
    if (part_check_legs(&move->file, move->next.part, &books) != DB_OK)
        return give_file_error(move);
    if (books.unbalanced == 0 && books.unchained == 0)
        return DB_OK;
    return db_fail(move->error, DB_INVALID,
                   "%" PRId64
                   " movements of money in these months are not sound, so nothing more is "
                   "moved; see GET /v1/audit",
                   books.unbalanced + books.unchained);
}

static int keep_row(void *arg, const void *row)
{
    *(db_ledger_row *)arg = *(const db_ledger_row *)row;
    return 1;
}

/* Describes the part as it is now; n is 0 if no row is left. */
static db_status describe(struct move *move)
{
    db_archive_part *part = &move->next;
    db_ledger_row row = {.id = 0};
    archive_number(&move->file, "SELECT count(*) FROM ledger WHERE part = ?1",
                   &VALUE_INT(part->part), 1, &part->n);
    archive_rows(&move->file, &row_types[TABLE_LEDGER],
                 "SELECT " LEDGER_COLUMNS " FROM ledger WHERE part = ?1 ORDER BY seq DESC LIMIT 1",
                 &VALUE_INT(part->part), 1, keep_row, &row);
    if (part_digest(&move->file, move->last.digest, part->part, part->digest) != DB_OK)
        return give_file_error(move);
    part->last_id = row.id;
    if (part->n == 0)
        return DB_OK;
    db_status status =
        move->reader->engine->feed_transaction(move->reader, row.id, &part->last_transaction);
    return status == DB_OK ? DB_OK
                           : db_fail(move->error, status, "the ledger: %s", db_status_text(status));
}

/* The feed shows no row behind a transaction that runs. */
static void hold_for_transaction(struct move *move)
{
    const db_engine *engine = move->reader->engine;
    char who[DB_MESSAGE_MAX] = "";
    if (engine->feed_blocker != NULL)
        engine->feed_blocker(move->reader, who);
    snprintf(move->ret->held, sizeof move->ret->held,
             "they wait for %.180s; end it, and run this again",
             who[0] != '\0' ? who : "a transaction that has ended meanwhile");
}

/* Fills the part with rows, within a transaction of the file. */
static db_status make_rows(struct move *move)
{
    archive_number(&move->file, "SELECT max(seq) FROM ledger", NULL, 0, &move->seq);
    move->ret->held[0] = '\0';
    db_status status = read_rows(move);
    /* SQLite gives the number after the greatest one, so the newest row is never moved. */
    if (status == DB_OK && move->feed_end && move->n > 0) {
        snprintf(move->ret->held, sizeof move->ret->held, "the newest one, and its other leg");
        if (cut(move, move->seq) != DB_OK)
            status = give_file_error(move);
    }
    if (status == DB_OK)
        status = cut_to_sound(move);
    if (status == DB_OK)
        status = describe(move);
    if (status == DB_OK && move->waits)
        hold_for_transaction(move);
    return status;
}

static db_status undo(struct move *move, db_status status)
{
    archive_run(&move->file, "ROLLBACK", NULL, 0);
    return move->file.error.status == DB_OK || status != DB_OK ? status : give_file_error(move);
}

static db_status keep_part(struct move *move)
{
    struct value values[ROW_COLUMNS_MAX];
    const size_t n = row_values(&row_types[TABLE_PARTS], &move->next, values);
    db_status status = check_legs(move);
    if (status != DB_OK)
        return undo(move, status);
    archive_run(&move->file,
                "INSERT INTO parts (" PART_COLUMNS ") VALUES (" ARGUMENTS(PART_ROW) ")", values, n);
    return archive_commit(&move->file) == DB_OK ? DB_OK : give_file_error(move);
}

/* Writes the next part to the file. *ret_end: there is none. */
static db_status make_part(struct move *move, bool *ret_end)
{
    move->next = (db_archive_part){.part = move->last.part + 1, .before_us = move->before_us};
    for (move->limit = PART_ROWS;; move->limit *= 2) {
        if (archive_run(&move->file, "BEGIN IMMEDIATE", NULL, 0) != DB_OK)
            return give_file_error(move);
        db_status status = make_rows(move);
        if (status != DB_OK)
            return undo(move, status);
        *ret_end = move->next.n == 0;
        if (!*ret_end)
            return keep_part(move);
        status = undo(move, DB_OK);
        if (status != DB_OK || move->closed_end || move->feed_end)
            return status;
    }
}

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
        return give_file_error(move);
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
    return move->file.error.status == DB_OK ? DB_OK : give_file_error(move);
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
        return give_file_error(move);
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
        return give_file_error(move);
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
            return give_file_error(move);
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
        return give_file_error(move);
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
        status = make_part(move, &end);
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
        status = give_file_error(&move);
    if (status == DB_OK)
        status = move_all(&move);
    archive_close(&move.file);
    if (move.reader != NULL)
        db_reader_close(move.reader);
    db_close(move.store);
    return status;
}
