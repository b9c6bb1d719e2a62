/* What the store keeps of rows that were moved to an archive. */
#include "db_archive.h"
#include "engine.h"

#include <string.h>

enum { PAGE_ROWS = 500 };

/* -- adding rows ------------------------------------------------------------------------------ */

static const char *add_of_shop(db_carried *carried, const db_ledger_row *row)
{
    if (__builtin_add_overflow(carried->total, row->delta, &carried->total))
        return "its sum leaves 64 bits";
    carried->moved = carried->total;
    return NULL;
}

static bool is_first(const db_carried *carried)
{
    return carried->n == 0;
}

static const char *check_follows(const db_carried *carried, const db_ledger_row *row)
{
    char hash[DB_HASH_LENGTH + 1];
    const bool reset = row->kind == DB_KIND_RESET;
    const int64_t version = is_first(carried) ? 0 : carried->version_before + 1;
    db_ledger_hash(row, carried->hash, hash);
    if (strcmp(hash, row->hash) != 0)
        return "its hash does not follow from the row before it";
    if (row->version_before != version)
        return "it does not continue the version of the row before it";
    if (row->epoch != carried->epoch + reset || row->epoch < 1)
        return "it is of another epoch than the row before it";
    if (row->before != carried->total)
        return "it does not begin with the value that the row before it left";
    if (row->after < 0)
        return "it leaves a negative value";
    return NULL;
}

static const char *add_to_chain(db_carried *carried, const db_ledger_row *row)
{
    const char *wrong = check_follows(carried, row);
    if (wrong != NULL)
        return wrong;
    if (row->kind == DB_KIND_RESET)
        carried->moved = carried->restocked = 0;
    else if (__builtin_add_overflow(carried->moved, row->delta, &carried->moved) ||
             (row->kind == DB_KIND_RESTOCK &&
              __builtin_add_overflow(carried->restocked, row->delta, &carried->restocked)))
        return "its sum leaves 64 bits";
    carried->total = row->after;
    return NULL;
}

const char *db_carried_add(db_carried *carried, const db_ledger_row *row)
{
    db_carried next = *carried;
    const bool of_shop = strncmp(row->resource, "shop:", 5) == 0;
    const char *wrong = of_shop ? add_of_shop(&next, row) : add_to_chain(&next, row);
    if (wrong != NULL)
        return wrong;
    next.epoch = row->epoch;
    next.version_before = row->version_before;
    /* Rows of a shop's side have no lock, so PostgreSQL's ids are not in the order of the feed. */
    if (!of_shop || row->id > carried->last_id) {
        next.last_id = row->id;
        memcpy(next.hash, row->hash, sizeof next.hash);
    }
    next.n++;
    *carried = next;
    return NULL;
}

/* -- reading ---------------------------------------------------------------------------------- */

static int keep_part(void *arg, const void *row)
{
    *(db_archive_part *)arg = *(const db_archive_part *)row;
    return 1;
}

db_status db_read_newest_part(db_reader *reader, db_archive_part *ret)
{
    db_archive_part part = {.part = 0};
    db_status status =
        reader->engine->read_list(reader, LIST_NEWEST_PART, &VALUE_INT(1), 1, keep_part, &part);
    if (status == DB_OK)
        *ret = part;
    return status == DB_OK && part.part == 0 ? DB_NOT_FOUND : status;
}

/* Goes through a table, page by page. */
struct walk {
    int (*part)(void *arg, const db_archive_part *part);
    int (*carried)(void *arg, const db_carried *carried);
    int (*order)(void *arg, const db_carried_order *order);
    void *arg;
    int64_t last_part;
    char last[DB_RESOURCE_MAX + 1];
    int n;
    bool ended;
};

static int show_part(void *arg, const void *row)
{
    struct walk *walk = arg;
    walk->n++;
    walk->last_part = ((const db_archive_part *)row)->part;
    walk->ended = walk->part(walk->arg, row) != 0;
    return walk->ended;
}

static int show_carried(void *arg, const void *row)
{
    struct walk *walk = arg;
    walk->n++;
    memcpy(walk->last, ((const db_carried *)row)->resource, DB_RESOURCE_MAX + 1);
    walk->ended = walk->carried(walk->arg, row) != 0;
    return walk->ended;
}

static int show_order(void *arg, const void *row)
{
    struct walk *walk = arg;
    walk->n++;
    memcpy(walk->last, ((const db_carried_order *)row)->order_id, DB_ID_MAX + 1);
    walk->ended = walk->order(walk->arg, row) != 0;
    return walk->ended;
}

static db_status walk_through(db_reader *reader, struct walk *walk, enum db_list list,
                              int (*show)(void *arg, const void *row))
{
    db_status status = DB_OK;
    do {
        const struct value args[] = {list == LIST_PARTS ? VALUE_INT(walk->last_part)
                                                        : VALUE_TEXT(walk->last),
                                     VALUE_INT(PAGE_ROWS)};
        walk->n = 0;
        status = reader->engine->read_list(reader, list, args, VALUE_COUNT(args), show, walk);
    } while (status == DB_OK && walk->n == PAGE_ROWS && !walk->ended);
    return status;
}

db_status db_read_parts(db_reader *reader, int (*each)(void *arg, const db_archive_part *part),
                        void *arg)
{
    struct walk walk = {.part = each, .arg = arg};
    return walk_through(reader, &walk, LIST_PARTS, show_part);
}

db_status db_read_carried(db_reader *reader, int (*each)(void *arg, const db_carried *carried),
                          void *arg)
{
    struct walk walk = {.carried = each, .arg = arg};
    return walk_through(reader, &walk, LIST_CARRIED, show_carried);
}

db_status db_read_carried_orders(db_reader *reader,
                                 int (*each)(void *arg, const db_carried_order *order), void *arg)
{
    struct walk walk = {.order = each, .arg = arg};
    return walk_through(reader, &walk, LIST_CARRIED_ORDERS, show_order);
}

static int keep_carried(void *arg, const void *row)
{
    *(db_carried *)arg = *(const db_carried *)row;
    return 1;
}

db_status db_read_carried_of(db_reader *reader, const char *resource, db_carried *ret)
{
    db_carried carried = {.n = 0};
    if (!db_name_ok(resource, DB_RESOURCE_MAX))
        return DB_NOT_FOUND;
    db_status status = reader->engine->read_list(reader, LIST_CARRIED_OF, &VALUE_TEXT(resource), 1,
                                                 keep_carried, &carried);
    if (status == DB_OK)
        *ret = carried;
    return status == DB_OK && carried.resource[0] == '\0' ? DB_NOT_FOUND : status;
}

db_status db_read_chain_start(db_reader *reader, const char *resource, db_chain_place *ret)
{
    db_carried carried;
    db_status status = db_read_carried_of(reader, resource, &carried);
    if (status == DB_OK)
        *ret = (db_chain_place){carried.epoch, carried.version_before, carried.last_id};
    return status;
}

/* -- moving ----------------------------------------------------------------------------------- */

db_status db_tx_put_carried(db_tx *tx, const db_carried *carried)
{
    if (!db_name_ok(carried->resource, DB_RESOURCE_MAX) ||
        !db_text_ok(carried->hash, DB_HASH_LENGTH) || tx->engine->tx_put_carried == NULL)
        return DB_INVALID;
    return tx->engine->tx_put_carried(tx, carried);
}

db_status db_tx_carry_order(db_tx *tx, const char *order_id, int64_t delta)
{
    if (!db_name_ok(order_id, DB_ID_MAX) || tx->engine->tx_carry_order == NULL)
        return DB_INVALID;
    return tx->engine->tx_carry_order(tx, order_id, delta);
}

db_status db_tx_move_part(db_tx *tx, const db_archive_part *part)
{
    if (part->part < 1 || part->n < 1 || !db_name_ok(part->digest, DB_HASH_LENGTH) ||
        tx->engine->tx_move_part == NULL)
        return DB_INVALID;
    return tx->engine->tx_move_part(tx, part);
}
