/*
 * Other clients of the same recipes, run as shell commands. Each excludes lockkit, lockkit excludes
 * each, and neither frees the other's lock.
 */
#include "foreign.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"

#define KEY "lock:item:1"

enum {
    LEASE_MS = 300,
    HELD_MS = 600000, /* a lease that does not end during a test, on a busy machine either */
    PATIENCE_MS = 60000
};

static lk_client *client;

/* -- redis-cli and SET NX PX: https://redis.io/docs/latest/commands/set/ (Patterns) ---------------
 */

#define REDIS_CLI "REDISCLI_AUTH=\"$LOCKKIT_REDIS_AUTH\" redis-cli"
#define COMPARE_AND_DELETE                                                                         \
    "'if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) "          \
    "else return 0 end'"

static int open_with(const struct lock_family *family, const char *guard)
{
    world = family;
    if (world_open(NULL) != 0)
        return -1;
    client = world_client(guard, &world_patient);
    return client != NULL ? 0 : -1;
}

static int close_world(void **state)
{
    lk_close(client);
    return world_close(state);
}

static int open_redis(void **state)
{
    (void)state;
    return open_with(&family_redis, "redis-token");
}

static bool cli_takes(const struct sandbox_server *redis, int lease_ms)
{
    char said[FOREIGN_TEXT_MAX];
    return foreign_run(said, REDIS_CLI " -p %d SET " KEY " theirs NX PX %d", redis->port,
                       lease_ms) &&
           said[0] == 'O' && said[1] == 'K';
}

TEST_GROUP("token", open_redis, close_world);

TEST_THAT(redis_cli_is_kept_out_and_frees_nothing)
{
    lk_hold hold;
    world->wipe();
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_false(cli_takes(world_redis, HELD_MS));
    assert_true(foreign_says("0", REDIS_CLI " -p %d EVAL " COMPARE_AND_DELETE " 1 " KEY " theirs",
                             world_redis->port));
    assert_int_equal(lk_confirm(&hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(cli_takes(world_redis, HELD_MS));
}

TEST_THAT(redis_cli_keeps_out_and_its_release_lets_in)
{
    lk_hold hold;
    world->wipe();
    assert_true(cli_takes(world_redis, HELD_MS));
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_TIMEOUT);
    assert_true(foreign_says("1", REDIS_CLI " -p %d EVAL " COMPARE_AND_DELETE " 1 " KEY " theirs",
                             world_redis->port));
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_true(foreign_says(hold.token, REDIS_CLI " -p %d GET " KEY, world_redis->port));
    assert_int_equal(lk_release(&hold), LK_OK);
}

TEST_THAT(lease_of_redis_cli_is_waited_for)
{
    lk_hold hold;
    world->wipe();
    assert_true(cli_takes(world_redis, LEASE_MS));
    assert_int_equal(world_acquire(client, KEY, 0, PATIENCE_MS, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
}

TEST_THAT(operator_sees_the_lock_of_redis_cli)
{
    lk_lock_info info;
    world->wipe();
    assert_true(cli_takes(world_redis, HELD_MS));
    assert_int_equal(lk_inspect(client, KEY, &info), LK_OK);
    assert_int_equal(info.holders, 1);
    assert_string_equal(info.token, "theirs");
    assert_int_equal(lk_force_release(client, KEY), LK_OK);
    assert_true(cli_takes(world_redis, HELD_MS));
}

/* -- another client of Redlock ------------------------------------------------------------------
 */

static int open_redlock(void **state)
{
    (void)state;
    return open_with(&family_redlock, "redlock");
}

static int cli_takes_nodes(int n)
{
    int taken = 0;
    for (int i = 0; i < n; i++)
        taken += cli_takes(world_nodes[i], HELD_MS);
    return taken;
}

TEST_GROUP("redlock", open_redlock, close_world);

TEST_THAT(majority_of_another_client_keeps_redlock_out)
{
    lk_hold hold;
    world->wipe();
    assert_int_equal(cli_takes_nodes(WORLD_QUORUM), WORLD_QUORUM);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_TIMEOUT);
    assert_int_equal(world_standing(KEY), WORLD_QUORUM); /* theirs; our votes were removed */
}

TEST_THAT(minority_of_another_client_does_not)
{
    lk_hold hold;
    world->wipe();
    assert_int_equal(cli_takes_nodes(WORLD_QUORUM - 1), WORLD_QUORUM - 1);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(world_standing(KEY), WORLD_QUORUM - 1);
}

TEST_THAT(redlock_keeps_another_client_from_every_majority)
{
    lk_hold hold;
    world->wipe();
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_int_equal(cli_takes_nodes(WORLD_NODES), 0);
    assert_int_equal(lk_release(&hold), LK_OK);
}

/* -- psql and the rows of sql-unique ------------------------------------------------------------
 */

#define PSQL    "psql -qXAt -v ON_ERROR_STOP=1 '%s' -c "
#define THEN_MS "(extract(epoch FROM clock_timestamp()) * 1000)::bigint + %d"

static int open_rows(void **state)
{
    (void)state;
    return open_with(&family_postgres, "sql-unique");
}

/* An UPSERT as a user writes it from the table's layout. */
static bool psql_takes(int lease_ms)
{
    char said[FOREIGN_TEXT_MAX];
    return foreign_run(said,
                       PSQL "\"INSERT INTO lockkit.locks AS l VALUES ('" KEY "', 'theirs', " THEN_MS
                            ", 1) ON CONFLICT (key) DO UPDATE SET token = 'theirs', until_ms = "
                            "excluded.until_ms, fence = l.fence + 1 WHERE l.token IS NULL OR "
                            "l.until_ms <= excluded.until_ms - %d RETURNING l.token\"",
                       world_postgres->url, lease_ms, lease_ms) &&
           said[0] == 't';
}

TEST_GROUP("rows", open_rows, close_world);

TEST_THAT(psql_and_sql_unique_take_turns)
{
    lk_hold hold;
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    uint64_t fence = hold.fence;
    assert_false(psql_takes(HELD_MS));
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(psql_takes(HELD_MS));
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_TIMEOUT);
    assert_true(foreign_says(
        "theirs",
        PSQL "\"UPDATE lockkit.locks l SET token = NULL FROM lockkit.locks was WHERE l.key = '" KEY
             "' AND was.key = l.key AND l.token = 'theirs' RETURNING was.token\"",
        world_postgres->url));
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_int_equal(hold.fence, fence + 2); /* their grant counts, too */
    assert_int_equal(lk_release(&hold), LK_OK);
}

TEST_THAT(lease_of_psql_is_waited_for)
{
    lk_hold hold;
    assert_true(psql_takes(LEASE_MS));
    assert_int_equal(world_acquire(client, KEY, 0, PATIENCE_MS, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
}

/* -- psql and advisory locks --------------------------------------------------------------------
 */

#define ADVISORY "(hashtextextended('" KEY "', 0))"

static int open_advisory(void **state)
{
    (void)state;
    return open_with(&family_postgres, "pg-advisory");
}

static bool is_held(void *key)
{
    return world->exists(key);
}

TEST_GROUP("advisory", open_advisory, close_world);

TEST_THAT(session_of_psql_keeps_out_until_it_ends)
{
    char key[] = KEY, command[FOREIGN_TEXT_MAX];
    lk_hold hold;
    snprintf(command, sizeof command, "psql -qXAt '%s' > /dev/null", world_postgres->url);
    FILE *psql = popen(command, "we");
    assert_non_null(psql);
    assert_true(fprintf(psql, "SELECT pg_advisory_lock" ADVISORY ";\n") > 0);
    fflush(psql);
    assert_true(wait_until(is_held, key, PATIENCE_MS));
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_TIMEOUT);
    assert_int_equal(pclose(psql), 0);
    assert_int_equal(world_acquire(client, KEY, 0, PATIENCE_MS, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
}

TEST_THAT(advisory_lock_keeps_psql_out_and_is_not_its_to_free)
{
    lk_hold hold;
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_true(
        foreign_says("f", PSQL "\"SELECT pg_try_advisory_lock" ADVISORY "\"", world_postgres->url));
    assert_true(foreign_says("f", PSQL "\"SELECT pg_advisory_unlock" ADVISORY "\" 2> /dev/null",
                             world_postgres->url));
    assert_int_equal(lk_confirm(&hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(
        foreign_says("t", PSQL "\"SELECT pg_try_advisory_lock" ADVISORY "\"", world_postgres->url));
}

/* -- another client of memcached ------------------------------------------------------------------
 */

static int open_memcached(void **state)
{
    (void)state;
    return open_with(&family_memcached, "memcached");
}

#define TELL                                                                                       \
    "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d; value=\"${LOCKKIT_MEMCACHED_AUTH/:/ }\"; "            \
    "printf \"set login 0 -1 ${#value}\\r\\n$value\\r\\n\" >&3; read -r -u 3; "                    \
    "printf \"%s\\r\\nquit\\r\\n\" >&3; tr -d \"\\r\" <&3'"

TEST_GROUP("added", open_memcached, close_world);

TEST_THAT(add_by_hand_takes_turns_with_memcached)
{
    lk_hold hold;
    int server = world_memcached->port;
    const char *add = "add " KEY " 0 60 6\\r\\ntheirs", *delete = "delete " KEY;
    assert_true(foreign_says("STORED", TELL, server, add));
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_TIMEOUT);
    assert_true(foreign_says("DELETED", TELL, server, delete));
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_true(foreign_says("NOT_STORED", TELL, server, add));
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(foreign_says("STORED", TELL, server, add));
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_TIMEOUT);
}
