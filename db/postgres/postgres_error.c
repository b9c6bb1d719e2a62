/* Records errors of a connection and of its statements. */
#include "postgres.h"

#include <string.h>

void session_clear(struct session *session)
{
    if (!session->lost)
        session->trouble.status = DB_OK;
    session->again = session->missed = false;
    session->gather.n = 0;
}

db_status session_lose(struct session *session, const char *why)
{
    if (session->trouble.status == DB_OK)
        db_fail(&session->trouble, DB_UNAVAILABLE, "PostgreSQL: %.*s", (int)strcspn(why, "\n"),
                why);
    session->lost = true;
    return session->trouble.status;
}

void session_interrupt(struct session *session)
{
    if (session->trouble.status == DB_OK)
        db_fail(&session->trouble, DB_INTERRUPTED, "the read was ended by its caller");
    session->lost = true;
}

db_status session_bad_answer(struct session *session, const char *what)
{
    if (session->trouble.status == DB_OK)
        db_fail(&session->trouble, DB_FAILED, "PostgreSQL: the server gave %s", what);
    return session->trouble.status;
}

db_status session_damage(struct session *session, const struct column *column)
{
    if (session->trouble.status == DB_OK)
        db_fail(&session->trouble, DB_FAILED,
                "PostgreSQL: column %.60s holds what this program never stores", column->name);
    return session->trouble.status;
}

db_status session_run_again(struct session *session, const char *why)
{
    if (session->trouble.status == DB_OK) {
        db_fail(&session->trouble, DB_BUSY, "PostgreSQL: %s", why);
        session->again = true;
    }
    return session->trouble.status;
}

/* By SQLSTATE (PostgreSQL documentation, appendix A). */
static db_status status_of(const char *code)
{
    static const struct {
        const char *prefix;
        db_status status;
    } known[] = {
        {"40001", DB_BUSY},        /* serialization failure */
        {"40P01", DB_BUSY},        /* deadlock */
        {"55P03", DB_BUSY},        /* lock_timeout */
        {"57014", DB_BUSY},        /* statement_timeout */
        {"08", DB_UNAVAILABLE},    /* connection */
        {"53100", DB_FULL},        /* disk full */
        {"53300", DB_CROWDED},     /* too many connections */
        {"57P", DB_UNAVAILABLE},   /* shutting down, starting up */
        {"25006", DB_READ_ONLY},   /* a standby, or default_transaction_read_only */
        {"25P03", DB_UNAVAILABLE}, /* ended by idle_in_transaction_session_timeout */
        {"22021", DB_INVALID},     /* text that is not UTF-8 */
        {"22023", DB_INVALID},     /* a transaction that this server has not begun yet */
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(code, known[i].prefix, strlen(known[i].prefix)) == 0)
            return known[i].status;
    return DB_FAILED;
}

void session_refused(struct session *session)
{
    const char *why = PQerrorMessage(session->handle), *code = strstr(why, ":  ");
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    session_lose(session, why);
    if (code && strspn(code + 3, letters) == 5 && status_of(code + 3) == DB_CROWDED)
        session->trouble.status = DB_CROWDED;
}

void session_note_error(struct session *session, const PGresult *result, bool of_many)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (!code || !severity) { /* an error of libpq itself: the connection broke */
        session_lose(session, PQerrorMessage(session->handle));
        return;
    }
    if (session->trouble.status == DB_OK) {
        bool taken = of_many && strcmp(code, "23505") == 0;
        db_fail(&session->trouble, taken ? DB_CONFLICT : status_of(code),
                "PostgreSQL: %.200s (SQLSTATE %.5s)", text ? text : "?", code);
        session->missed |= taken;
        session->again = strcmp(code, "40001") == 0 || strcmp(code, "40P01") == 0;
    }
    if (strcmp(severity, "ERROR") != 0) /* FATAL, PANIC: the server ends the connection */
        session->lost = true;
}
