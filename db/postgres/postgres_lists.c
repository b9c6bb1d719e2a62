/* Lists that are read page by page. */
#include "postgres.h"

db_status session_read_list(struct session *session, enum db_list list, const struct value *args,
                            size_t n, int (*each)(void *arg, const void *row), void *arg)
{
    static const struct {
        enum postgres_sql sql;
        enum db_table table;
    } lists[LISTS] = {[LIST_FEED] = {SQL_FEED, TABLE_LEDGER},
                      [LIST_STATEMENT] = {SQL_STATEMENT, TABLE_LEDGER},
                      [LIST_ORDERS] = {SQL_ORDERS_OF_USER, TABLE_ORDERS},
                      [LIST_CARRIED] = {SQL_CARRIED, TABLE_CARRIED},
                      [LIST_CARRIED_OF] = {SQL_CARRIED_OF, TABLE_CARRIED},
                      [LIST_CARRIED_ORDERS] = {SQL_CARRIED_ORDERS, TABLE_CARRIED_ORDERS},
                      [LIST_PARTS] = {SQL_PARTS, TABLE_PARTS},
                      [LIST_NEWEST_PART] = {SQL_NEWEST_PART, TABLE_PARTS}};
    PGresult *page = NULL;
    struct any_row row;
    db_status status = session_ask(session, lists[list].sql, args, n, &page);
    for (int i = 0; status == DB_OK && i < PQntuples(page); i++) {
        status = session_row(session, page, i, &row_types[lists[list].table], row.bytes);
        if (status == DB_OK && each(arg, row.bytes) != 0)
            break;
    }
    PQclear(page);
    return status == DB_NOT_FOUND ? DB_OK : status;
}

db_status session_read_number(struct session *session, enum postgres_sql sql,
                              const struct value *args, size_t n, int64_t *ret)
{
    PGresult *result = NULL;
    db_status status = session_ask(session, sql, args, n, &result);
    if (status == DB_OK) {
        *ret = cell_int(session, result, 0, 0);
        status = session->trouble.status;
    }
    PQclear(result);
    return status;
}
