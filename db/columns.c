/* Rows by their tables of columns: members become values of a statement, and the reverse. */
#include "columns.h"

#include <assert.h>
#include <string.h>

#define ITEM_COLUMN(kind, name)          COLUMN(db_item, kind, name)
#define ACCOUNT_COLUMN(kind, name)       COLUMN(db_account, kind, name)
#define ORDER_COLUMN(kind, name)         COLUMN(db_order, kind, name)
#define ANSWER_COLUMN(kind, name)        COLUMN(db_answer, kind, name)
#define LEDGER_COLUMN(kind, name)        COLUMN(db_ledger_row, kind, name)
#define EXPIRED_COLUMN(kind, name)       COLUMN(db_expired, kind, name)
#define CARRIED_COLUMN(kind, name)       COLUMN(db_carried, kind, name)
#define CARRIED_ORDER_COLUMN(kind, name) COLUMN(db_carried_order, kind, name)
#define PART_COLUMN(kind, name)          COLUMN(db_archive_part, kind, name)
#define ADDED_COLUMN(kind, name)         COLUMN(struct added, kind, name)

static const struct column items[] = {ITEM_ROW(ITEM_COLUMN, ITEM_COLUMN)};
static const struct column accounts[] = {ACCOUNT_ROW(ACCOUNT_COLUMN, ACCOUNT_COLUMN)};
static const struct column orders[] = {ORDER_ROW(ORDER_COLUMN, ORDER_COLUMN)};
static const struct column answers[] = {ANSWER_ROW(ANSWER_COLUMN, ANSWER_COLUMN)};
static const struct column new_ledger[] = {NEW_LEDGER_ROW(LEDGER_COLUMN, LEDGER_COLUMN)};
static const struct column ledger[] = {LEDGER_ROW(LEDGER_COLUMN, LEDGER_COLUMN)};
static const struct column expired[] = {EXPIRED_ROW(EXPIRED_COLUMN, EXPIRED_COLUMN)};
static const struct column carried[] = {CARRIED_ROW(CARRIED_COLUMN, CARRIED_COLUMN)};
static const struct column carried_orders[] = {
    CARRIED_ORDER_ROW(CARRIED_ORDER_COLUMN, CARRIED_ORDER_COLUMN)};
static const struct column parts[] = {PART_ROW(PART_COLUMN, PART_COLUMN)};
static const struct column added[] = {ADDED_ROW(ADDED_COLUMN, ADDED_COLUMN)};

const struct row_type row_types[TABLES] = {
    [TABLE_ITEMS] = ROW_TYPE(db_item, items),
    [TABLE_ACCOUNTS] = ROW_TYPE(db_account, accounts),
    [TABLE_ORDERS] = ROW_TYPE(db_order, orders),
    [TABLE_ANSWERS] = ROW_TYPE(db_answer, answers),
    [TABLE_LEDGER] = ROW_TYPE(db_ledger_row, ledger),
    [TABLE_CARRIED] = ROW_TYPE(db_carried, carried),
    [TABLE_CARRIED_ORDERS] = ROW_TYPE(db_carried_order, carried_orders),
    [TABLE_PARTS] = ROW_TYPE(db_archive_part, parts),
};
const struct row_type new_ledger_type = ROW_TYPE(db_ledger_row, new_ledger);
const struct row_type expired_type = ROW_TYPE(db_expired, expired);
const struct row_type added_type = ROW_TYPE(struct added, added);

/* -- out of a row ----------------------------------------------------------------------------- */

static struct value value_of(const struct column *column, const void *row)
{
    const void *member = (const char *)row + column->at;
    switch (column->kind) {
    case COLUMN_TEXT:
        return VALUE_TEXT(member);
    case COLUMN_INT:
        return VALUE_INT(*(const int64_t *)member);
    case COLUMN_FLAG:
        return VALUE_INT(*(const bool *)member);
    case COLUMN_STATE:
        return VALUE_INT(*(const db_order_state *)member);
    case COLUMN_KIND:
        return VALUE_TEXT(db_kind_text(*(const db_kind *)member));
    case COLUMN_HTTP:
        return VALUE_INT(*(const int32_t *)member);
    default:
        return VALUE_TEXT(*(const bool *)member ? ((const db_order *)row)->user_id : "");
    }
}

size_t row_values(const struct row_type *type, const void *row,
                  struct value ret[static ROW_COLUMNS_MAX])
{
    assert(type->n <= ROW_COLUMNS_MAX);
    for (size_t i = 0; i < type->n; i++)
        ret[i] = value_of(&type->columns[i], row);
    return type->n;
}

/* -- into a row ------------------------------------------------------------------------------- */

bool column_is_text(const struct column *column)
{
    return column->kind == COLUMN_TEXT || column->kind == COLUMN_COUNTED ||
           column->kind == COLUMN_KIND;
}

/* The room has no type of its own, so members are copied into it. */
static void put(const struct column *column, struct any_row *row, const void *member)
{
    assert(column->at + column->size <= sizeof row->bytes);
    memcpy(row->bytes + column->at, member, column->size);
}

static bool take_kind(const struct column *column, struct any_row *row, const char *text,
                      size_t length)
{
    for (db_kind kind = 0; kind < DB_KINDS; kind++) {
        const char *name = db_kind_text(kind);
        if (strlen(name) == length && memcmp(name, text, length) == 0) {
            put(column, row, &kind);
            return true;
        }
    }
    return false;
}

bool row_take_text(const struct column *column, struct any_row *row, const char *text,
                   size_t length)
{
    if (column->kind == COLUMN_COUNTED) {
        put(column, row, &(const bool){length > 0});
        return true;
    }
    if (column->kind == COLUMN_KIND)
        return take_kind(column, row, text, length);
    if (length >= column->size)
        return false;
    assert(column->at + column->size <= sizeof row->bytes);
    memcpy(row->bytes + column->at, text, length);
    row->bytes[column->at + length] = '\0';
    return true;
}

bool row_take_number(const struct column *column, struct any_row *row, int64_t number)
{
    bool is_http = number >= 100 && number <= 599;
    switch (column->kind) {
    case COLUMN_FLAG:
        put(column, row, &(const bool){number != 0});
        return true;
    case COLUMN_STATE:
        put(column, row, &(const db_order_state){(db_order_state)number});
        return number >= DB_RESERVED && number <= DB_REFUNDED;
    case COLUMN_HTTP: /* 0: none that anybody can have stored through db.h */
        put(column, row, &(const int32_t){is_http ? (int32_t)number : 0});
        return true;
    default:
        put(column, row, &number);
        return true;
    }
}
