/* Answers as results of libpq, made by its own functions. */
#include "sim_pg_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void name_columns(PGresult *result, int n, const char *first, int format)
{
    PGresAttDesc columns[PG_COLUMNS];
    memset(columns, 0, sizeof columns);
    for (int i = 0; i < n; i++)
        columns[i] = (PGresAttDesc){.name = (char *)(i ? "" : first), .format = format};
    if (!PQsetResultAttrs(result, n, columns))
        abort();
}

/* Without rows, PQcmdTuples() is the name of the only column. */
PGresult *pg_new_result(int64_t changed, int n, bool binary)
{
    char text[24];
    PGresult *result = PQmakeEmptyPGresult(NULL, n > 0 ? PGRES_TUPLES_OK : PGRES_COMMAND_OK);
    snprintf(text, sizeof text, "%lld", (long long)changed);
    name_columns(result, n > 0 ? n : 1, text, binary);
    return result;
}

PGresult *pg_result(int64_t changed)
{
    return pg_new_result(changed, 0, true);
}

/* PQresultErrorField() reads them from the columns. */
PGresult *pg_error_result(const struct pg_failure *failure)
{
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_FATAL_ERROR);
    const char *values[] = {failure->code, failure->message, failure->severity};
    name_columns(result, 3, "", 0);
    for (int i = 0; i < 3; i++)
        PQsetvalue(result, 0, i, (char *)values[i], (int)strlen(values[i]));
    return result;
}
