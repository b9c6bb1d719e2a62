/*
 * The columns of each table, written once. The engines make from these lists what they send and
 * what they read: lists of columns in SQL text, the types of arguments, readers and binders.
 *
 * A row's list calls FIRST(kind, name) for its first column and NEXT(kind, name) for each other.
 * The column has the name of its member in db.h. The kind says how the two are converted:
 *
 *   kind     member                       stored as
 *   TEXT     char array                   text that fits it; anything longer is damage
 *   INT      int64_t                      number
 *   FLAG     bool                         0 or 1
 *   STATE    db_order_state               number; one that names no state is damage
 *   KIND     db_kind                      its text; another text is damage
 *   HTTP     int32_t                      number; read as 0 if it is no HTTP status
 *   COUNTED  bool, named `limited`        the row's user_id, or '' when it is false
 *
 * README.md has the recipe for a new column.
 */
#ifndef DB_COLUMNS_H
#define DB_COLUMNS_H

#include "db_archive.h"

/* Of the tables, in both engines: a store of another version is refused. Stands in SQL text. */
#define SCHEMA_VERSION 4

/* What a PUT gives, then what the store counts. */
#define ITEM_GIVEN(NEXT)                                                                           \
    NEXT(TEXT, guard)                                                                              \
    NEXT(INT, initial_stock)                                                                       \
    NEXT(INT, stock)                                                                               \
    NEXT(INT, price)                                                                               \
    NEXT(INT, per_user_limit)                                                                      \
    NEXT(INT, reserve_s)                                                                           \
    NEXT(FLAG, fence)
#define ACCOUNT_GIVEN(NEXT)                                                                        \
    NEXT(TEXT, guard)                                                                              \
    NEXT(INT, initial_balance)                                                                     \
    NEXT(INT, balance)                                                                             \
    NEXT(FLAG, fence)
#define COUNTERS(NEXT)                                                                             \
    NEXT(INT, version)                                                                             \
    NEXT(INT, last_fence)                                                                          \
    NEXT(INT, epoch)                                                                               \
    NEXT(TEXT, chain)
#define ITEM_ROW(FIRST, NEXT)    FIRST(TEXT, id) ITEM_GIVEN(NEXT) COUNTERS(NEXT)
#define ACCOUNT_ROW(FIRST, NEXT) FIRST(TEXT, id) ACCOUNT_GIVEN(NEXT) COUNTERS(NEXT)

#define ORDER_ROW(FIRST, NEXT)                                                                     \
    FIRST(TEXT, id)                                                                                \
    NEXT(TEXT, item_id)                                                                            \
    NEXT(TEXT, user_id)                                                                            \
    NEXT(INT, quantity)                                                                            \
    NEXT(INT, amount)                                                                              \
    NEXT(STATE, state)                                                                             \
    NEXT(INT, version)                                                                             \
    NEXT(INT, last_fence)                                                                          \
    NEXT(INT, item_epoch)                                                                          \
    NEXT(INT, created_us)                                                                          \
    NEXT(INT, expires_us)                                                                          \
    NEXT(COUNTED, counted_user)

#define ANSWER_ROW(FIRST, NEXT)                                                                    \
    FIRST(TEXT, key)                                                                               \
    NEXT(TEXT, request)                                                                            \
    NEXT(HTTP, http_status)                                                                        \
    NEXT(TEXT, body)                                                                               \
    NEXT(INT, at_us)

/* A new row has no id yet: the store gives it. Its hash covers the columns before it, in their
 * order. */
#define NEW_LEDGER_ROW(FIRST, NEXT)                                                                \
    FIRST(TEXT, resource)                                                                          \
    NEXT(INT, epoch)                                                                               \
    NEXT(TEXT, txn_id)                                                                             \
    NEXT(INT, delta)                                                                               \
    NEXT(INT, before)                                                                              \
    NEXT(INT, after)                                                                               \
    NEXT(INT, version_before)                                                                      \
    NEXT(INT, fence)                                                                               \
    NEXT(TEXT, guard)                                                                              \
    NEXT(TEXT, instance)                                                                           \
    NEXT(KIND, kind)                                                                               \
    NEXT(TEXT, order_id)                                                                           \
    NEXT(TEXT, counterpart)                                                                        \
    NEXT(TEXT, reason)                                                                             \
    NEXT(TEXT, reference)                                                                          \
    NEXT(INT, at_us)                                                                               \
    NEXT(TEXT, hash)
#define LEDGER_ROW(FIRST, NEXT) NEW_LEDGER_ROW(FIRST, NEXT) NEXT(INT, id)

/* Rows that were moved to an archive (db_archive.h). */
#define CARRIED_ROW(FIRST, NEXT)                                                                   \
    FIRST(TEXT, resource)                                                                          \
    NEXT(INT, epoch)                                                                               \
    NEXT(INT, version_before)                                                                      \
    NEXT(INT, last_id)                                                                             \
    NEXT(TEXT, hash)                                                                               \
    NEXT(INT, total)                                                                               \
    NEXT(INT, moved)                                                                               \
    NEXT(INT, restocked)                                                                           \
    NEXT(INT, n)
#define CARRIED_ORDER_ROW(FIRST, NEXT) FIRST(TEXT, order_id) NEXT(INT, delta)
#define PART_ROW(FIRST, NEXT)                                                                      \
    FIRST(INT, part)                                                                               \
    NEXT(INT, before_us)                                                                           \
    NEXT(INT, last_transaction)                                                                    \
    NEXT(INT, last_id)                                                                             \
    NEXT(INT, n)                                                                                   \
    NEXT(TEXT, digest)

/* What a conditional change leaves: value, version and chain. */
struct added {
    int64_t value, version;
    char chain[DB_HASH_LENGTH + 1];
};
#define ADDED_ROW(FIRST, NEXT) FIRST(INT, value) NEXT(INT, version) NEXT(TEXT, chain)

/* A part of an order: db_read_expired(). */
#define EXPIRED_ROW(FIRST, NEXT)                                                                   \
    FIRST(INT, expires_us)                                                                         \
    NEXT(TEXT, id)                                                                                 \
    NEXT(TEXT, item_id)

/* -- as SQL text ------------------------------------------------------------------------------ */

#define FIRST_NAME(kind, name) #name
#define NEXT_NAME(kind, name)  ", " #name
#define COLUMNS(row)           row(FIRST_NAME, NEXT_NAME)

#define ITEM_COLUMNS          COLUMNS(ITEM_ROW) /* "id, guard, initial_stock, ..." */
#define ACCOUNT_COLUMNS       COLUMNS(ACCOUNT_ROW)
#define ORDER_COLUMNS         COLUMNS(ORDER_ROW)
#define ANSWER_COLUMNS        COLUMNS(ANSWER_ROW)
#define NEW_LEDGER_COLUMNS    COLUMNS(NEW_LEDGER_ROW)
#define LEDGER_COLUMNS        COLUMNS(LEDGER_ROW)
#define EXPIRED_COLUMNS       COLUMNS(EXPIRED_ROW)
#define CARRIED_COLUMNS       COLUMNS(CARRIED_ROW)
#define PART_COLUMNS          COLUMNS(PART_ROW)
#define CARRIED_ORDER_COLUMNS COLUMNS(CARRIED_ORDER_ROW)

/* An argument for each column: "?, ?, ...". */
#define FIRST_ARGUMENT(kind, name) "?"
#define NEXT_ARGUMENT(kind, name)  ", ?"
#define ARGUMENTS(row)             row(FIRST_ARGUMENT, NEXT_ARGUMENT)

/* What a reset does to a row that is there: takes what was given, counts on. */
#define RESET_NAME(kind, name) ", " #name " = excluded." #name
#define RESET_SET(table, given)                                                                    \
    "version = " table ".version + 1, last_fence = 0, epoch = " table ".epoch + 1" given(RESET_NAME)

/* -- as tables -------------------------------------------------------------------------------- */

enum column_kind {
    COLUMN_TEXT,
    COLUMN_INT,
    COLUMN_FLAG,
    COLUMN_STATE,
    COLUMN_KIND,
    COLUMN_HTTP,
    COLUMN_COUNTED
};

struct column {
    const char *name;
    enum column_kind kind;
    size_t at, size; /* of its member in the row's struct */
};

struct row_type {
    const struct column *columns;
    size_t n;
    size_t size; /* of the row's struct */
};
#define ROW_TYPE(row, columns)                                                                     \
    {                                                                                              \
        columns, sizeof(columns) / sizeof *(columns), sizeof(row)                                  \
    }

/* An entry of a column table. A member of another type than its kind asks for does not compile. */
#define COLUMN(row, kind, name) {#name, MEMBER_##kind(row, name)},
#define MEMBER_TEXT(row, name)                                                                     \
    COLUMN_TEXT, _Generic(&((row *)0)->name[0], char * : offsetof(row, name)),                     \
        sizeof(((row *)0)->name)
#define MEMBER_OF(kind, row, name, type)                                                           \
    kind, _Generic(((row *)0)->name, type : offsetof(row, name)), sizeof(type)
#define MEMBER_INT(row, name)     MEMBER_OF(COLUMN_INT, row, name, int64_t)
#define MEMBER_FLAG(row, name)    MEMBER_OF(COLUMN_FLAG, row, name, bool)
#define MEMBER_STATE(row, name)   MEMBER_OF(COLUMN_STATE, row, name, db_order_state)
#define MEMBER_KIND(row, name)    MEMBER_OF(COLUMN_KIND, row, name, db_kind)
#define MEMBER_HTTP(row, name)    MEMBER_OF(COLUMN_HTTP, row, name, int32_t)
#define MEMBER_COUNTED(row, name) MEMBER_OF(COLUMN_COUNTED, row, limited, bool)

/* Of the tables with rows that are read or inserted whole. */
enum db_table {
    TABLE_ITEMS,
    TABLE_ACCOUNTS,
    TABLE_ORDERS,
    TABLE_ANSWERS,
    TABLE_LEDGER,
    TABLE_CARRIED,
    TABLE_CARRIED_ORDERS,
    TABLE_PARTS,
    TABLES
};
extern const struct row_type row_types[TABLES], new_ledger_type, expired_type, added_type;

enum { ROW_COLUMNS_MAX = 24 };

/* Room for a row of any type until it is known to be whole. */
struct any_row {
    _Alignas(max_align_t) char bytes[2048];
};

/* -- conversion, for the engines -------------------------------------------------------------- */

/* One value on its way into a statement. Text is borrowed. */
struct value {
    const char *text; /* NULL: a number */
    int64_t number;
};
#define VALUE_TEXT(given)  ((struct value){.text = (given)})
#define VALUE_INT(given)   ((struct value){.number = (given)})
#define VALUE_COUNT(array) (sizeof(array) / sizeof *(array))

/* The value of each column of a row. Returns how many. */
size_t row_values(const struct row_type *type, const void *row,
                  struct value ret[static ROW_COLUMNS_MAX]);

/* Whether a column is read as text; else it is read as a number. */
bool column_is_text(const struct column *column);
/* Put what was read into the row. False: nothing stores that, so the database is damaged. */
bool row_take_text(const struct column *column, struct any_row *row, const char *text,
                   size_t length);
bool row_take_number(const struct column *column, struct any_row *row, int64_t number);

#endif
