/* The reading half of db.h: checks every argument, then asks the engine. */
#include "engine.h"

#include <assert.h>
#include <string.h>

/* -- reading ---------------------------------------------------------------------------------- */

db_status db_reader_open(db *store, db_reader **ret, db_error *error)
{
    return store->engine->reader_open(store, ret, error);
}

void db_reader_close(db_reader *reader)
{
    if (reader)
        reader->engine->reader_close(reader);
}

db_status db_reader_begin(db_reader *reader)
{
    return reader->engine->reader_begin(reader);
}

void db_reader_end(db_reader *reader)
{
    reader->engine->reader_end(reader);
}

void db_reader_stop_when(db_reader *reader, bool (*stop)(void *arg), void *arg)
{
    reader->stop = stop;
    reader->stop_arg = arg;
}

/* A name that could not have been stored is not found. */
db_status db_read_item(db_reader *reader, const char *id, db_item *ret)
{
    return db_name_ok(id, DB_ID_MAX) ? reader->engine->read_row(reader, TABLE_ITEMS, id, ret)
                                     : DB_NOT_FOUND;
}

db_status db_read_account(db_reader *reader, const char *id, db_account *ret)
{
    return db_name_ok(id, DB_ID_MAX) ? reader->engine->read_row(reader, TABLE_ACCOUNTS, id, ret)
                                     : DB_NOT_FOUND;
}

db_status db_read_order(db_reader *reader, const char *id, db_order *ret)
{
    return db_name_ok(id, DB_ID_MAX) ? reader->engine->read_row(reader, TABLE_ORDERS, id, ret)
                                     : DB_NOT_FOUND;
}

db_status db_read_answer(db_reader *reader, const char *key, db_answer *ret)
{
    return db_name_ok(key, DB_KEY_MAX) ? reader->engine->read_row(reader, TABLE_ANSWERS, key, ret)
                                       : DB_NOT_FOUND;
}

db_status db_find_answers(db_reader *reader, const char *const *keys, size_t n, bool *ret_found)
{
    assert(n >= 1 && n <= DB_KEYS_MAX);
    memset(ret_found, 0, n * sizeof *ret_found);
    return reader->engine->find_answers(reader, keys, n, ret_found);
}

db_status db_read_bought(db_reader *reader, const db_item *item, const char *const *user_ids,
                         size_t n, int64_t *ret_quantities)
{
    assert(n >= 1 && n <= DB_KEYS_MAX);
    bool ok = db_name_ok(item->id, DB_ID_MAX);
    for (size_t i = 0; i < n && ok; i++)
        ok = db_name_ok(user_ids[i], DB_ID_MAX);
    return ok ? reader->engine->read_bought(reader, item, user_ids, n, ret_quantities)
              : DB_NOT_FOUND;
}

db_status db_read_sold(db_reader *reader, const db_item *item, int64_t *ret_quantity)
{
    if (!db_name_ok(item->id, DB_ID_MAX))
        return DB_NOT_FOUND;
    return reader->engine->read_sold(reader, item, ret_quantity);
}

db_status db_read_expired(db_reader *reader, int64_t now_us, const db_expired *after,
                          db_expired *ret, size_t max, size_t *ret_n)
{
    const db_expired oldest = {.expires_us = INT64_MIN};
    if (max > DB_EXPIRED_MAX)
        max = DB_EXPIRED_MAX;
    return reader->engine->read_expired(reader, now_us, after ? after : &oldest, ret, max, ret_n);
}

/* -- lists ------------------------------------------------------------------------------------ */

/* One row more is asked for than is shown, to see whether there is one. */
struct page {
    size_t max, n;
    bool more;
    int (*each)(void *page, const void *row);
    void *arg;
    union {
        int (*ledger)(void *arg, const db_ledger_row *row);
        int (*order)(void *arg, const db_order *row);
    } show;
    int64_t last_id; /* of the ledger rows */
};

static int show_row(void *arg, const void *row)
{
    struct page *page = arg;
    if (page->n == page->max) {
        page->more = true;
        return 1;
    }
    page->n++;
    return page->each(page, row);
}

static int show_ledger_row(void *arg, const void *row)
{
    struct page *page = arg;
    page->last_id = ((const db_ledger_row *)row)->id;
    return page->show.ledger(page->arg, row);
}

static int show_order(void *arg, const void *row)
{
    const struct page *page = arg;
    return page->show.order(page->arg, row);
}

static size_t page_size(size_t max)
{
    return max < DB_PAGE_MAX ? max : DB_PAGE_MAX;
}

/* args without the last one: how many rows. */
static db_status read_page(db_reader *reader, enum db_list list, struct value *args, size_t n,
                           struct page *page)
{
    args[n - 1] = VALUE_INT((int64_t)page->max + 1);
    return reader->engine->read_list(reader, list, args, n, show_row, page);
}

/* DB_ARCHIVED: rows behind this place were moved. */
static db_status check_feed_start(db_reader *reader, const db_feed_place *after,
                                  db_feed_place *ret_next)
{
    db_archive_part part;
    db_status status = db_read_newest_part(reader, &part);
    if (status != DB_OK)
        return status == DB_NOT_FOUND ? DB_OK : status;
    if (after->transaction > part.last_transaction ||
        (after->transaction == part.last_transaction && after->id >= part.last_id))
        return DB_OK;
    *ret_next = (db_feed_place){part.last_transaction, part.last_id};
    return DB_ARCHIVED;
}

static db_status read_feed(db_reader *reader, const db_feed_place *after, struct page *page,
                           db_feed_place *ret_next)
{
    struct value args[] = {VALUE_INT(after->transaction), VALUE_INT(after->id), VALUE_INT(0)};
    db_feed_place next = *after;
    bool waits = false;
    db_status status = check_feed_start(reader, after, ret_next);
    if (status == DB_OK && reader->engine->feed_waits)
        status = reader->engine->feed_waits(reader, &waits);
    if (status == DB_OK)
        status = read_page(reader, LIST_FEED, args, VALUE_COUNT(args), page);
    if (status == DB_OK && page->n > 0) {
        next.id = page->last_id;
        status = reader->engine->feed_transaction(reader, next.id, &next.transaction);
    }
    page->more |= waits;
    if (status == DB_OK)
        *ret_next = next;
    return status;
}

db_status db_read_ledger(db_reader *reader, const db_feed_place *after, size_t max,
                         int (*each)(void *arg, const db_ledger_row *row), void *arg,
                         db_feed_place *ret_next, bool *ret_more)
{
    struct page page = {
        .max = page_size(max), .each = show_ledger_row, .arg = arg, .show.ledger = each};
    db_status status = reader->engine->reader_begin(reader);
    if (status != DB_OK)
        return status;
    status = read_feed(reader, after, &page, ret_next);
    reader->engine->reader_end(reader);
    *ret_more = page.more;
    return status;
}

db_status db_feed_end(db_reader *reader, db_feed_place *ret)
{
    return reader->engine->feed_end(reader, ret);
}

/* DB_ARCHIVED: rows of the resource behind this place were moved. */
static db_status check_chain_start(db_reader *reader, const char *resource,
                                   const db_chain_place *after)
{
    db_chain_place start;
    db_status status = db_read_chain_start(reader, resource, &start);
    if (status != DB_OK)
        return status == DB_NOT_FOUND ? DB_OK : status;
    if (after->epoch != start.epoch)
        return after->epoch > start.epoch ? DB_OK : DB_ARCHIVED;
    if (after->version_before != start.version_before)
        return after->version_before > start.version_before ? DB_OK : DB_ARCHIVED;
    return after->id >= start.id ? DB_OK : DB_ARCHIVED;
}

db_status db_read_statement(db_reader *reader, const char *resource, const db_chain_place *after,
                            size_t max, int (*each)(void *arg, const db_ledger_row *row), void *arg,
                            bool *ret_more)
{
    struct page page = {
        .max = page_size(max), .each = show_ledger_row, .arg = arg, .show.ledger = each};
    struct value args[] = {VALUE_TEXT(resource), VALUE_INT(after->epoch),
                           VALUE_INT(after->version_before), VALUE_INT(after->id), VALUE_INT(0)};
    *ret_more = false;
    if (!db_name_ok(resource, DB_RESOURCE_MAX))
        return DB_OK;
    db_status status = reader->engine->reader_begin(reader);
    if (status != DB_OK)
        return status;
    status = check_chain_start(reader, resource, after);
    if (status == DB_OK)
        status = read_page(reader, LIST_STATEMENT, args, VALUE_COUNT(args), &page);
    reader->engine->reader_end(reader);
    *ret_more = page.more;
    return status;
}

db_status db_read_orders(db_reader *reader, const char *user_id, const char *before, size_t max,
                         int (*each)(void *arg, const db_order *row), void *arg, bool *ret_more)
{
    struct page page = {.max = page_size(max), .each = show_order, .arg = arg, .show.order = each};
    const char *newest = "~"; /* sorts behind every id */
    struct value args[] = {VALUE_TEXT(user_id), VALUE_TEXT(before ? before : newest), VALUE_INT(0)};
    db_status status = DB_OK;
    if (db_name_ok(user_id, DB_ID_MAX) && (!before || db_name_ok(before, DB_ID_MAX)))
        status = read_page(reader, LIST_ORDERS, args, VALUE_COUNT(args), &page);
    *ret_more = page.more;
    return status;
}

db_status db_read_money(db_reader *reader, int (*each)(void *arg, const db_ledger_row *row),
                        void *arg, db_error *error)
{
    if (reader->stop && reader->stop(reader->stop_arg))
        return db_fail(error, DB_INTERRUPTED, "the read was ended by its caller");
    return reader->engine->read_money(reader, each, arg, error);
}

db_status db_audit(db_reader *reader, const char *resource,
                   int (*each)(void *arg, const db_audit_row *row), void *arg, db_error *error)
{
    if (resource && !db_name_ok(resource, DB_RESOURCE_MAX))
        return DB_NOT_FOUND;
    if (reader->stop && reader->stop(reader->stop_arg))
        return db_fail(error, DB_INTERRUPTED, "the read was ended by its caller");
    db_status status = reader->engine->audit(reader, resource, each, arg, error);
    return status == DB_NOT_FOUND && !resource ? DB_OK : status; /* an empty store is no trouble */
}
