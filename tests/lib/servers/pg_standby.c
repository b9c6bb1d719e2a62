#include "pg_standby.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int ask(PGconn *sql, const char *text)
{
    PGresult *result = PQexec(sql, text);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fprintf(stderr, "%s: %s", text, PQerrorMessage(sql));
    int value = PQntuples(result) > 0 ? (int)strtol(PQgetvalue(result, 0, 0), NULL, 10) : -1;
    PQclear(result);
    return value;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Backends notice the setting with a delay. Commits repeatedly until a commit waits. */
static void wait_until_in_force(PGconn *sql, PGconn *probe)
{
    char waits[128], ends[64];
    snprintf(waits, sizeof waits,
             "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid = %d",
             PQbackendPID(probe));
    snprintf(ends, sizeof ends, "SELECT pg_terminate_backend(%d)::int", PQbackendPID(probe));
    for (bool waiting = false; !waiting;) {
        PQsendQuery(probe, "SELECT pg_logical_emit_message(true, 'probe', '')");
        while (PQconsumeInput(probe) && PQisBusy(probe) && !waiting) {
            waiting = ask(sql, waits) > 0;
            sleep_ms(1);
        }
        for (PGresult *result; !waiting && (result = PQgetResult(probe)) != NULL;)
            PQclear(result);
    }
    ask(sql, ends);
}

bool pg_standby_set(const char *url, const char *name)
{
    char text[96];
    PGconn *sql = PQconnectdb(url), *probe = PQconnectdb(url);
    bool ok = PQstatus(sql) == CONNECTION_OK && PQstatus(probe) == CONNECTION_OK;
    if (ok) {
        snprintf(text, sizeof text, "ALTER SYSTEM SET synchronous_standby_names = '%s'", name);
        ask(sql, text);
        ask(sql, "SELECT pg_reload_conf()::int");
        if (name[0] != '\0')
            wait_until_in_force(sql, probe);
    } else {
        fprintf(stderr, "%s: %s", url, PQerrorMessage(sql));
    }
    PQfinish(probe);
    PQfinish(sql);
    return ok;
}
