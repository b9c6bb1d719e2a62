/* Two instances on one SQLite file: sale, accounts and transfers are exact under every safe guard.
 * The locks' database is PostgreSQL, for the guards that need it. */
#include "../lib/exactness.h"

#include <stdio.h>

static void on_sqlite(const struct sandbox *sandbox, const struct all_servers *servers,
                      const char *ret_args[ALL_ARGS_MAX + 1])
{
    static char db[SANDBOX_TEXT_MAX + 32];
    snprintf(db, sizeof db, "sqlite:%s/shop.db", sandbox_dir(sandbox));
    const char *const args[] = {
        "--db", db, "--db-shared", "--lock-db", servers->postgres->url, "--sync", "normal", NULL};
    for (size_t i = 0; i < sizeof args / sizeof args[0]; i++)
        ret_args[i] = args[i];
}

int main(void)
{
    return exactness_main(on_sqlite, NULL);
}
