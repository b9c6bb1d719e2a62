#include "sql_postgres.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lk_status take_pool(const char *value, lk_pg_target *target, lk_error *error)
{
    char *end;
    long number = strtol(value, &end, 10);
    if (end == value || *end != '\0' || number < 1 || number > LK_PG_POOL_MAX)
        return lk_fail(error, LK_INVALID, "postgres: pool=%.40s is not a number from 1 to %d",
                       value, LK_PG_POOL_MAX);
    target->pool_max = (int)number;
    return LK_OK;
}

/* Takes our parameter, leaves the others to libpq. isolation= is the service's store's, which may
 * be given by the same URL: every level will do for it, but not for a lock. */
static lk_status take_query(char *query, lk_pg_target *target, lk_error *error)
{
    char *rest;
    const char *mark = "?";
    lk_status status = LK_OK;
    for (char *one = strtok_r(query, "&", &rest); one && status == LK_OK;
         one = strtok_r(NULL, "&", &rest)) {
        size_t used = strlen(target->uri);
        if (strncmp(one, "pool=", 5) == 0) {
            status = take_pool(one + 5, target, error);
        } else if (strncmp(one, "isolation=", 10) != 0) {
            snprintf(target->uri + used, sizeof target->uri - used, "%s%s", mark, one);
            mark = "&";
        }
    }
    return status;
}

lk_status lk_pg_target_parse(const char *address, lk_pg_target *ret, lk_error *error)
{
    lk_pg_target target = {.pool_max = 0};
    char copy[LK_PG_URI_MAX];
    if (strlen(address) >= sizeof copy)
        return lk_fail(error, LK_INVALID, "postgres: URL longer than %zu characters",
                       sizeof copy - 1);
    snprintf(copy, sizeof copy, "%s", address);
    char *query = strchr(copy, '?');
    if (query != NULL)
        *query++ = '\0';
    snprintf(target.uri, sizeof target.uri, "%s", copy);
    lk_status status = query != NULL ? take_query(query, &target, error) : LK_OK;
    if (status != LK_OK)
        return status;

    char *why = NULL; /* may repeat the password: not passed on */
    PQconninfoOption *parsed = PQconninfoParse(target.uri, &why);
    bool readable = parsed != NULL;
    PQfreemem(why);
    PQconninfoFree(parsed);
    if (!readable)
        return lk_fail(error, LK_INVALID,
                       "postgres: give postgres://USER@HOST:PORT/DATABASE; libpq cannot read this "
                       "URL");
    *ret = target;
    return LK_OK;
}
