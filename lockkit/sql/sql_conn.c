#include "sql_conn.h"

#include <stdlib.h>
#include <string.h>

struct lk_sql {
    const struct lk_sql_backend *backend;
    void *self;
};

static bool takes(const struct lk_sql_backend *backend, const char *address)
{
    for (const char *const *scheme = backend->schemes; *scheme != NULL; scheme++)
        if (strncmp(address, *scheme, strlen(*scheme)) == 0)
            return true;
    return false;
}

lk_status lk_sql_open(const lk_context *context, const lk_sql_set *set, lk_sql **ret,
                      lk_error *error)
{
    static const struct lk_sql_backend *const backends[] = {&lk_sqlite_backend,
                                                            &lk_postgres_backend};
    const char *address = context->endpoints != NULL ? context->endpoints : "";
    const struct lk_sql_backend *backend = NULL;
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (takes(backends[i], address))
            backend = backends[i];
    if (backend == NULL)
        return lk_fail(error, LK_INVALID,
                       "a SQL guard wants sqlite:FILE or postgres://USER@HOST:PORT/DATABASE as its "
                       "endpoint");
    lk_sql *sql = malloc(sizeof *sql);
    if (sql == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a SQL guard");
    sql->backend = backend;
    lk_status status = backend->open(context, address, set, &sql->self, error);
    if (status != LK_OK)
        free(sql);
    else
        *ret = sql;
    return status;
}

void lk_sql_close(lk_sql *sql)
{
    sql->backend->close(sql->self);
    free(sql);
}

lk_status lk_sql_run(lk_sql *sql, int statement, const lk_sql_arg *args, lk_sql_each *each,
                     void *arg)
{
    return sql->backend->run(sql->self, statement, args, each, arg);
}

lk_status lk_sql_settle(lk_sql *sql, int statement)
{
    return sql->backend->settle(sql->self, statement);
}
