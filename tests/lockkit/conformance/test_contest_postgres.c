/* The guards of PostgreSQL contend with a typical psycopg2 program. */
#include "contest.h"
#include "lock_world.h"
#include "tests.h"

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTEST("advisory_lock_of_psycopg2_and_pg_advisory_exclude_each_other", "pg-advisory",
                .peer = CONTEST_PYTHON " psycopg2-advisory"),
        CONTEST("advisory_lock_of_psycopg2_and_pg_advisory_xact_exclude_each_other",
                "pg-advisory-xact", .peer = CONTEST_PYTHON " psycopg2-advisory"),
        CONTEST("advisory_lock_of_psycopg2s_transaction_and_pg_advisory_exclude_each_other",
                "pg-advisory", .peer = CONTEST_PYTHON " psycopg2-advisory-xact"),
        CONTEST("leased_row_of_psycopg2_and_sql_unique_exclude_each_other", "sql-unique",
                .peer = CONTEST_PYTHON " psycopg2-lease"),
        CONTEST("row_of_psycopg2_and_sql_unique_forever_exclude_each_other", "sql-unique-forever",
                .peer = CONTEST_PYTHON " psycopg2-row"),
    };
    world = &family_postgres;
    return cmocka_run_group_tests(tests, world_open, world_close);
}
