/* An archive file beside the rows of the store. It is read as it is, by SQL. */
#include "torture_store_rep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                    \
    "id, resource, epoch, txn_id, delta, before, after, version_before, fence, guard, instance,"   \
    " kind, order_id, counterpart, reason, reference, at_us, hash"

enum { MOVED_COLUMNS = 19, PART_COLUMNS = 4 };

static const char read_moved[] = "SELECT part, " COLUMNS " FROM ledger ORDER BY seq";
static const char read_parts[] = "SELECT part, n, last_id, digest FROM parts ORDER BY part";

/* -- a store in SQLite ------------------------------------------------------------------------- */

static int add_to_sqlite(struct torture_store *store, const char *file, char *message, size_t size)
{
    static const char views[] =
        "CREATE TEMP TABLE moved AS SELECT part, " COLUMNS " FROM archived.ledger;"
        "CREATE TEMP TABLE parts AS SELECT part, n, last_id, digest FROM archived.parts;"
        "CREATE TEMP TABLE ledger AS SELECT " COLUMNS " FROM main.ledger"
        " UNION ALL SELECT " COLUMNS " FROM archived.ledger;"
        "CREATE INDEX temp.all_txn ON ledger (txn_id);"
        "CREATE INDEX temp.all_resource ON ledger (resource);";
    char *attach = sqlite3_mprintf("ATTACH %Q AS archived", file), *why = NULL;
    int code =
        attach == NULL ? SQLITE_NOMEM : sqlite3_exec(store->sqlite, attach, NULL, NULL, &why);
    if (code == SQLITE_OK)
        code = sqlite3_exec(store->sqlite, views, NULL, NULL, &why);
    if (code != SQLITE_OK)
        snprintf(message, size, "%s: %s", file, why != NULL ? why : sqlite3_errstr(code));
    sqlite3_free(why);
    sqlite3_free(attach);
    return code == SQLITE_OK ? 0 : -1;
}

/* -- a store in PostgreSQL --------------------------------------------------------------------- */

static int run(PGconn *postgres, const char *sql, int n, const char *const *values, char *message,
               size_t size)
{
    PGresult *result =
        n == 0 ? PQexec(postgres, sql) : PQexecPrepared(postgres, sql, n, values, NULL, NULL, 0);
    const bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!done)
        snprintf(message, size, "%s%.200s", PQerrorMessage(postgres), sql);
    PQclear(result);
    return done ? 0 : -1;
}

/* Each row that the SQL reads from the file becomes the arguments of a prepared statement. */
static int copy(sqlite3 *file, const char *sql, PGconn *postgres, const char *insert, int columns,
                char *message, size_t size)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(file, sql, -1, &statement, NULL), result = 0;
    while (code == SQLITE_OK || (code == SQLITE_ROW && result == 0)) {
        const char *values[MOVED_COLUMNS] = {NULL};
        code = sqlite3_step(statement);
        for (int i = 0; code == SQLITE_ROW && i < columns; i++)
            values[i] = (const char *)sqlite3_column_text(statement, i);
        if (code == SQLITE_ROW)
            result = run(postgres, insert, columns, values, message, size);
    }
    sqlite3_finalize(statement);
    if (code != SQLITE_DONE && result == 0) {
        snprintf(message, size, "the archive: %s", sqlite3_errmsg(file));
        result = -1;
    }
    return result;
}

static int prepare(PGconn *postgres, const char *name, const char *sql, char *message, size_t size)
{
    PGresult *result = PQprepare(postgres, name, sql, 0, NULL);
    const bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!done)
        snprintf(message, size, "%s%.200s", PQerrorMessage(postgres), sql);
    PQclear(result);
    return done ? 0 : -1;
}

static int add_to_postgres(PGconn *postgres, sqlite3 *file, char *message, size_t size)
{
    static const char begin[] =
        "BEGIN;"
        "CREATE TEMP TABLE moved AS SELECT 0::bigint AS part, " COLUMNS " FROM public.ledger"
        " LIMIT 0;"
        "CREATE TEMP TABLE parts (part bigint, n bigint, last_id bigint, digest text)";
    static const char unite[] = "CREATE TEMP TABLE ledger AS SELECT " COLUMNS " FROM public.ledger"
                                " UNION ALL SELECT " COLUMNS " FROM moved;"
                                "CREATE INDEX all_txn ON ledger (txn_id);"
                                "CREATE INDEX all_resource ON ledger (resource);"
                                "COMMIT; ANALYZE ledger";
    const bool done =
        run(postgres, begin, 0, NULL, message, size) == 0 &&
        prepare(postgres, "put_moved",
                "INSERT INTO moved VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,"
                " $14, $15, $16, $17, $18, $19)",
                message, size) == 0 &&
        prepare(postgres, "put_part", "INSERT INTO parts VALUES ($1, $2, $3, $4)", message, size) ==
            0 &&
        copy(file, read_moved, postgres, "put_moved", MOVED_COLUMNS, message, size) == 0 &&
        copy(file, read_parts, postgres, "put_part", PART_COLUMNS, message, size) == 0 &&
        run(postgres, unite, 0, NULL, message, size) == 0;
    return done ? 0 : -1;
}

int torture_store_add_archive(struct torture_store *store, const char *file, char *message,
                              size_t size)
{
    sqlite3 *archive = NULL;
    if (store->sqlite != NULL)
        return add_to_sqlite(store, file, message, size);
    int result = -1;
    if (sqlite3_open_v2(file, &archive, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        snprintf(message, size, "%s: %s", file, sqlite3_errmsg(archive));
    else
        result = add_to_postgres(store->postgres, archive, message, size);
    sqlite3_close(archive);
    return result;
}
