/* Lists that are read page by page. */
#include "sqlite.h"

db_status conn_read_list(struct conn *conn, enum db_list list, const struct value *args, size_t n,
                         int (*each)(void *arg, const void *row), void *arg)
{
    static const struct {
        enum sqlite_sql sql;
        enum db_table table;
    } lists[LISTS] = {[LIST_FEED] = {SQL_FEED, TABLE_LEDGER},
                      [LIST_STATEMENT] = {SQL_STATEMENT, TABLE_LEDGER},
                      [LIST_ORDERS] = {SQL_ORDERS_OF_USER, TABLE_ORDERS},
                      [LIST_CARRIED] = {SQL_CARRIED, TABLE_CARRIED},
                      [LIST_CARRIED_OF] = {SQL_CARRIED_OF, TABLE_CARRIED},
                      [LIST_CARRIED_ORDERS] = {SQL_CARRIED_ORDERS, TABLE_CARRIED_ORDERS},
                      [LIST_PARTS] = {SQL_PARTS, TABLE_PARTS},
                      [LIST_NEWEST_PART] = {SQL_NEWEST_PART, TABLE_PARTS}};
    sqlite3_stmt *at = conn_bind(conn, lists[list].sql, args, n);
    struct any_row row;
    db_status status;
    while ((status = conn_step(conn, at)) == DB_OK &&
           (status = conn_row(conn, at, &row_types[lists[list].table], row.bytes)) == DB_OK &&
           each(arg, row.bytes) == 0)
        continue;
    conn_done(at);
    return status == DB_NOT_FOUND ? DB_OK : status;
}

/* There is one writer, so the order of ids is that of commits. */
db_status sqlite_feed_transaction(db_reader *reader, int64_t id, int64_t *ret)
{
    (void)reader;
    (void)id;
    *ret = 0;
    return DB_OK;
}

db_status conn_feed_end(struct conn *conn, db_feed_place *ret)
{
    sqlite3_stmt *end = conn->statements[SQL_FEED_END];
    db_status status = conn_step(conn, end);
    if (status != DB_OK)
        return status;
    *ret = (db_feed_place){.id = sqlite3_column_int64(end, 0)};
    conn_done(end);
    return DB_OK;
}
