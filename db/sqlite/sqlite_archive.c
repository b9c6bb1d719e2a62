/* Moving a part of the ledger out of the file, see db_archive.h. */
#include "schema.h"
#include "sqlite.h"

db_status sqlite_put_carried(db_tx *tx, const db_carried *carried)
{
    struct value values[ROW_COLUMNS_MAX];
    const size_t n = row_values(&row_types[TABLE_CARRIED], carried, values);
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    return status == DB_OK ? conn_run(conn, conn_bind(conn, SQL_PUT_CARRIED, values, n)) : status;
}

db_status sqlite_carry_order(db_tx *tx, const char *order_id, int64_t delta)
{
    const struct value values[] = {VALUE_TEXT(order_id), VALUE_INT(delta)};
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status == DB_OK)
        status = conn_run(conn, conn_bind(conn, SQL_CARRY_ORDER, values, VALUE_COUNT(values)));
    if (status == DB_OK)
        status = conn_run(conn, conn_bind(conn, SQL_DROP_EVEN_ORDER, values, 1));
    return status;
}

/* The trigger is dropped and made again in this transaction, so no other one ever lacks it. */
static db_status delete_rows(struct conn *conn, int64_t last_id, int64_t *ret_n)
{
    db_status status = conn_exec(conn, "DROP TRIGGER " SCHEMA_KEEPS_ROWS);
    if (status == DB_OK)
        status = conn_run(conn, conn_bind(conn, SQL_DELETE_PART, &VALUE_INT(last_id), 1));
    *ret_n = sqlite3_changes64(conn->handle);
    if (status == DB_OK)
        status = conn_exec(conn, "%s", sqlite_keeps_rows_sql);
    return status;
}

db_status sqlite_move_part(db_tx *tx, const db_archive_part *part)
{
    struct value values[ROW_COLUMNS_MAX];
    const size_t n = row_values(&row_types[TABLE_PARTS], part, values);
    struct conn *conn;
    int64_t deleted = 0;
    db_status status = tx_begin_write(tx, &conn);
    if (status == DB_OK)
        status = conn_run(conn, conn_bind(conn, SQL_INSERT_PART, values, n));
    if (status == DB_OK && sqlite3_changes(conn->handle) != 1)
        return DB_CONFLICT;
    if (status == DB_OK)
        status = delete_rows(conn, part->last_id, &deleted);
    return status == DB_OK && deleted != part->n ? DB_CONFLICT : status;
}
