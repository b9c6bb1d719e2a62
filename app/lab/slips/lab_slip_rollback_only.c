/* The work ends with ROLLBACK and its connection goes back to the pool: as if an advisory lock of a
 * session ended with a transaction. It stays on the connection, which nobody closes. */
#include "lab_slips.h"
#include "pg_hold.h"
#include "providers.h"

static lk_sql_set statements;

static lk_status open_wrong(const lk_context *context, void **ret_self, lk_error *error)
{
    return lk_pg_hold_open(context, &statements, ret_self, error);
}

void lab_slip_rollback_only(struct seams *seams)
{
    static lk_provider wrong;
    statements = lk_pg_advisory_statements;
    statements.statements[LK_PG_FREE] = (lk_sql_statement){"", {NULL, "ROLLBACK"}};
    wrong = lk_pg_advisory;
    wrong.open = open_wrong;
    lab_slip_provider(seams, &wrong);
}
