/* Two instances on one PostgreSQL: sale, accounts and transfers are exact under every safe guard.
 */
#include "exactness.h"
#include "tests.h"

#include <stdint.h>
#include <libpq-fe.h>

static void on_postgres(const struct sandbox *sandbox, const struct all_servers *servers,
                        const char *ret_args[ALL_ARGS_MAX + 1])
{
    (void)sandbox;
    ret_args[0] = "--db";
    ret_args[1] = servers->postgres->url;
    ret_args[2] = NULL;
}

/* Each deadlock would have cost a second, and some answers with it. */
static void nobody_waited_in_a_circle(const struct all_servers *servers)
{
    PGconn *handle = PQconnectdb(servers->postgres->url);
    PGresult *result = PQexec(handle, "SELECT sum(deadlocks)::text FROM pg_stat_database");
    assert_int_equal(PQntuples(result), 1);
    assert_string_equal(PQgetvalue(result, 0, 0), "0");
    PQclear(result);
    PQfinish(handle);
}

int main(void)
{
    return exactness_main(
        &(struct exactness){.store = on_postgres, .afterwards = nobody_waited_in_a_circle});
}
