/* How the tables of a store are described, to compare a migrated store with a new one. */
#ifndef SCHEMA_TEXT_H
#define SCHEMA_TEXT_H

#include "fixture.h"

/* All there is to say about tables, indexes, triggers and functions, as one text. The caller frees
 * it. */
static inline char *schema_text(struct fixture *fixture)
{
    if (pg_server)
        return pg_value(
            fixture->url,
            "SELECT string_agg(line, E'\\n' ORDER BY line) FROM (SELECT concat_ws(' ', relname,"
            " attname, attnum, format_type(atttypid, atttypmod), attnotnull, attidentity,"
            " attcollation, reloptions, pg_get_expr(adbin, adrelid)) AS line FROM pg_attribute"
            " JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid"
            " AND adnum = attnum WHERE relnamespace = current_schema()::regnamespace AND"
            " attnum > 0 AND relkind IN ('r', 'i', 'S')"
            " UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()"
            " UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname,"
            " pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace ="
            " current_schema()::regnamespace UNION ALL SELECT pg_get_triggerdef(oid)"
            " FROM pg_trigger UNION ALL SELECT proname || prosrc FROM pg_proc"
            " WHERE pronamespace = current_schema()::regnamespace) AS lines");
    sqlite3 *handle;
    sqlite3_stmt *statement;
    assert_int_equal(SQLITE_OK, sqlite3_open(fixture->file, &handle));
    assert_int_equal(SQLITE_OK,
                     sqlite3_prepare_v2(handle,
                                        "SELECT group_concat(type || name || tbl_name || ' ' ||"
                                        " coalesce(sql, ''), char(10)) FROM"
                                        " (SELECT * FROM sqlite_schema ORDER BY name)",
                                        -1, &statement, NULL));
    assert_int_equal(SQLITE_ROW, sqlite3_step(statement));
    char *text = strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return text;
}

#endif
