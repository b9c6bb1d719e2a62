/* Moving a part of the ledger out of the database, see db_archive.h. */
#include "postgres.h"

db_status pg_put_carried(db_tx *tx, const db_carried *carried)
{
    struct value values[ROW_COLUMNS_MAX];
    const size_t n = row_values(&row_types[TABLE_CARRIED], carried, values);
    return tx_write(tx, SQL_PUT_CARRIED, values, n, false);
}

db_status pg_carry_order(db_tx *tx, const char *order_id, int64_t delta)
{
    const struct value values[] = {VALUE_TEXT(order_id), VALUE_INT(delta)};
    db_status status = tx_write(tx, SQL_CARRY_ORDER, values, VALUE_COUNT(values), false);
    return status == DB_OK ? tx_write(tx, SQL_DROP_EVEN_ORDER, values, 1, false) : status;
}

/* The part is recorded first: that is what lets this transaction delete its rows. */
db_status pg_move_part(db_tx *tx, const db_archive_part *part)
{
    struct value values[ROW_COLUMNS_MAX];
    const size_t n = row_values(&row_types[TABLE_PARTS], part, values);
    const struct value last[] = {VALUE_INT(part->last_transaction), VALUE_INT(part->last_id)};
    struct session *session;
    int64_t deleted = 0;
    db_status status = tx_session(tx, &session);
    if (status == DB_OK)
        status = tx_write(tx, SQL_INSERT_PART, values, n, true);
    if (status == DB_REFUSED)
        return DB_CONFLICT;
    if (status == DB_OK) { /* the books of years, if their legs are that far apart */
        const int64_t answer_ms = session_take_longer(session);
        status = session_read_number(session, SQL_DELETE_PART, last, VALUE_COUNT(last), &deleted);
        session->answer_ms = answer_ms;
    }
    return status == DB_OK && deleted != part->n ? DB_CONFLICT : status;
}
