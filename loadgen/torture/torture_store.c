#include "torture_store_rep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 16, BUSY_MS = 10000 };

static void ignore_notice(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

struct torture_store *torture_store_open(const char *url, char *message, size_t size)
{
    struct torture_store *store = calloc(1, sizeof *store);
    const char *failed = NULL;
    if (store == NULL) {
        snprintf(message, size, "no memory");
        return NULL;
    }
    if (strncmp(url, "sqlite:", 7) == 0) {
        if (sqlite3_open_v2(url + 7, &store->sqlite, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
            failed = sqlite3_errmsg(store->sqlite);
        else
            sqlite3_busy_timeout(store->sqlite, BUSY_MS);
    } else {
        store->postgres = PQconnectdb(url);
        if (PQstatus(store->postgres) != CONNECTION_OK)
            failed = PQerrorMessage(store->postgres);
        PQsetNoticeProcessor(store->postgres, ignore_notice, NULL);
    }
    if (failed == NULL)
        return store;
    snprintf(message, size, "%s: %s", url, failed);
    torture_store_close(store);
    return NULL;
}

void torture_store_close(struct torture_store *store)
{
    if (store == NULL)
        return;
    sqlite3_close(store->sqlite);
    PQfinish(store->postgres);
    free(store);
}

bool torture_store_is_postgres(const struct torture_store *store)
{
    return store->postgres != NULL;
}

typedef void row_function(void *ctx, const char *const *columns);

static long ask_sqlite(sqlite3 *sqlite, const char *sql, row_function *each, void *ctx,
                       char *message, size_t size)
{
    sqlite3_stmt *statement = NULL;
    long rows = 0;
    int code = sqlite3_prepare_v2(sqlite, sql, -1, &statement, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        const char *columns[COLUMNS_MAX] = {NULL};
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
            break;
        for (int i = 0; i < sqlite3_column_count(statement) && i < COLUMNS_MAX; i++)
            columns[i] = (const char *)sqlite3_column_text(statement, i);
        if (each != NULL)
            each(ctx, columns);
        rows++;
    }
    sqlite3_finalize(statement);
    if (code == SQLITE_DONE)
        return rows;
    snprintf(message, size, "%s: %.200s", sqlite3_errmsg(sqlite), sql);
    return -1;
}

static long ask_postgres(PGconn *postgres, const char *sql, row_function *each, void *ctx,
                         char *message, size_t size)
{
    PGresult *result = PQexec(postgres, sql);
    ExecStatusType status = PQresultStatus(result);
    long rows = -1;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        rows = PQntuples(result);
        for (int row = 0; each != NULL && row < rows; row++) {
            const char *columns[COLUMNS_MAX] = {NULL};
            for (int i = 0; i < PQnfields(result) && i < COLUMNS_MAX; i++)
                columns[i] = PQgetvalue(result, row, i);
            each(ctx, columns);
        }
    } else {
        snprintf(message, size, "%s%.200s", PQerrorMessage(postgres), sql);
    }
    PQclear(result);
    return rows;
}

long torture_store_ask(struct torture_store *store, const char *sql, row_function *each, void *ctx,
                       char *message, size_t size)
{
    return store->postgres != NULL ? ask_postgres(store->postgres, sql, each, ctx, message, size)
                                   : ask_sqlite(store->sqlite, sql, each, ctx, message, size);
}
