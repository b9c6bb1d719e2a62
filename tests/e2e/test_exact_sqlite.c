/* Two instances on one SQLite file: sale, accounts and transfers are exact under every safe guard,
 * with the locks of sql-unique in PostgreSQL, where pg-advisory needs them, and in SQLite. */
#include "exactness.h"

#include <stdio.h>
#include <stdlib.h>

static const char *file_in(const struct sandbox *sandbox)
{
    static char db[SANDBOX_TEXT_MAX + 32];
    snprintf(db, sizeof db, "sqlite:%s/shop.db", sandbox_dir(sandbox));
    return db;
}

static void on_sqlite(const struct sandbox *sandbox, const struct all_servers *servers,
                      const char *ret_args[ALL_ARGS_MAX + 1])
{
    const char *const args[] = {"--db",   file_in(sandbox), "--db-shared",          "--sync",
                                "normal", "--lock-db",      servers->postgres->url, NULL};
    for (size_t i = 0; i < sizeof args / sizeof args[0]; i++)
        ret_args[i] = args[i];
}

static void on_sqlite_alone(const struct sandbox *sandbox, const struct all_servers *servers,
                            const char *ret_args[ALL_ARGS_MAX + 1])
{
    (void)servers;
    const char *const args[] = {"--db",   file_in(sandbox), "--db-shared", "--sync",
                                "normal", "--guard",        "sql-unique",  NULL};
    for (size_t i = 0; i < sizeof args / sizeof args[0]; i++)
        ret_args[i] = args[i];
}

int main(void)
{
    setenv("TMPDIR", "/dev/shm", 0); /* nobody pulls the plug: disk flushes are not the point */
    return exactness_main(&(struct exactness){.store = on_sqlite}) +
           exactness_main(&(struct exactness){.store = on_sqlite_alone, .only = "sql-unique"});
}
