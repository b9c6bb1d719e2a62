#include "postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static db_status take_isolation(const char *value, struct pg_target *target, db_error *error)
{
    static const char *const levels[][2] = {{"read-committed", "read committed"},
                                            {"repeatable-read", "repeatable read"},
                                            {"serializable", "serializable"}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (strcmp(value, levels[i][0]) == 0) {
            target->isolation = levels[i][1];
            return DB_OK;
        }
    }
    return db_fail(error, DB_INVALID,
                   "postgres: isolation=%.40s is none of read-committed, repeatable-read, "
                   "serializable",
                   value);
}

static db_status take_pool(const char *value, struct pg_target *target, db_error *error)
{
    char *end;
    long number = strtol(value, &end, 10);
    if (end == value || *end != '\0' || number < 1 || number > PG_POOL_MAX)
        return db_fail(error, DB_INVALID, "postgres: pool=%.40s is not a number from 1 to %d",
                       value, PG_POOL_MAX);
    target->pool_max = (int)number;
    return DB_OK;
}

/* Takes our parameters, leaves the others to libpq. */
static db_status take_query(char *query, struct pg_target *target, db_error *error)
{
    char *rest;
    const char *mark = "?";
    db_status status = DB_OK;
    for (char *one = strtok_r(query, "&", &rest); one && status == DB_OK;
         one = strtok_r(NULL, "&", &rest)) {
        size_t used = strlen(target->uri);
        if (strncmp(one, "isolation=", 10) == 0) {
            status = take_isolation(one + 10, target, error);
        } else if (strncmp(one, "pool=", 5) == 0) {
            status = take_pool(one + 5, target, error);
        } else {
            snprintf(target->uri + used, sizeof target->uri - used, "%s%s", mark, one);
            mark = "&";
        }
    }
    return status;
}

/* The URI may hold a password: it is not repeated in messages. */
db_status pg_target_parse(const char *address, struct pg_target *ret, db_error *error)
{
    static const char usage[] = "postgres: give postgres://USER@HOST:PORT/DATABASE";
    struct pg_target target = {.isolation = "read committed", .pool_max = PG_POOL_DEFAULT};
    char copy[PG_URI_MAX];
    if (strncmp(address, "//", 2) != 0)
        return db_fail(error, DB_INVALID, "%s", usage);
    if (strlen(address) + sizeof "postgresql:" > sizeof copy)
        return db_fail(error, DB_INVALID, "postgres: URL longer than %zu characters",
                       sizeof copy - sizeof "postgresql:");
    snprintf(copy, sizeof copy, "postgresql:%s", address);
    char *query = strchr(copy, '?');
    if (query)
        *query++ = '\0';
    snprintf(target.uri, sizeof target.uri, "%s", copy);
    db_status status = query ? take_query(query, &target, error) : DB_OK;
    if (status != DB_OK)
        return status;

    char *why = NULL;
    PQconninfoOption *parsed = PQconninfoParse(target.uri, &why);
    if (!parsed)
        status = db_fail(error, DB_INVALID, "%s; libpq cannot read this URL", usage);
    PQfreemem(why);
    PQconninfoFree(parsed);
    if (status == DB_OK)
        *ret = target;
    return status;
}
