/* Step 1 of an archive: the rows of a part in the file. See the head of archive.h. */
#include "archive_make.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { PART_ROWS = 1000 }; /* of a part; more if legs are further apart */

/* Clocks differ by less. A row that is dated further ahead is dated wrongly. */
#define DAY_US INT64_C(86400000000)

db_status move_file_error(struct move *move)
{
    return db_fail(move->error, move->file.error.status, "%s", move->file.error.message);
}

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
            return move_file_error(move);
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
            return move_file_error(move);
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
            return move_file_error(move);
    }
}

/* The legs that are left are pairs. The hash of the shop's one must follow. */
static db_status check_legs(struct move *move)
{
    db_books books;
    if (part_check_legs(&move->file, move->next.part, &books) != DB_OK)
        return move_file_error(move);
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
        return move_file_error(move);
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
            status = move_file_error(move);
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
    return move->file.error.status == DB_OK || status != DB_OK ? status : move_file_error(move);
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
    return archive_commit(&move->file) == DB_OK ? DB_OK : move_file_error(move);
}

db_status move_make_part(struct move *move, bool *ret_end)
{
    move->next = (db_archive_part){.part = move->last.part + 1, .before_us = move->before_us};
    for (move->limit = PART_ROWS;; move->limit *= 2) {
        if (archive_run(&move->file, "BEGIN IMMEDIATE", NULL, 0) != DB_OK)
            return move_file_error(move);
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
