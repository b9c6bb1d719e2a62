/* sql-unique and sql-unique-forever, in a SQLite file and in PostgreSQL. */
#include "providers.h"
#include "holder.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <string.h>

#define KEY "lock:item:1"

enum { SHORT_MS = 2000, LONG_MS = 20000, GRACE_MS = 3000 };

static lk_client *client;

/* The provider without the core around it. */
struct bare {
    char endpoints[WORLD_ENDPOINTS_MAX];
    _Atomic uint64_t commands;
    lk_options options;
    lk_context context;
    void *self;
};

static void bare_open(struct bare *bare)
{
    *bare = (struct bare){.options = {.command_timeout_ms = 5000}};
    world->endpoints(bare->endpoints, sizeof bare->endpoints, 0);
    bare->context = (lk_context){.env = lk_env_system(),
                                 .options = &bare->options,
                                 .endpoints = bare->endpoints,
                                 .commands = &bare->commands};
    assert_int_equal(lk_sql_unique.open(&bare->context, &bare->self, NULL), LK_OK);
}

static uint64_t granted_fence(const char *key)
{
    lk_hold hold;
    assert_int_equal(world_acquire(client, key, 0, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    return hold.fence;
}

static int open_sqlite(void **state)
{
    world = &family_sqlite;
    return world_open(state);
}

static int open_postgres(void **state)
{
    world = &family_postgres;
    return world_open(state);
}

TEST_GROUP("sqlite", open_sqlite, world_close);
TEST_GROUP("postgres", open_postgres, NULL);

TEST_THAT(fence_survives_release_and_its_client)
{
    assert_int_equal(granted_fence(KEY), 1);
    assert_int_equal(granted_fence(KEY), 2);
    lk_close(client);
    client = world_client("sql-unique", NULL);
    assert_int_equal(granted_fence(KEY), 3);
    assert_int_equal(granted_fence("lock:item:2"), 1);
}

TEST_THAT(fence_rises_when_a_lease_was_taken_over_and_when_it_was_broken)
{
    lk_hold first, second, third;
    assert_int_equal(world_acquire(client, KEY, SHORT_MS, 0, &first), LK_OK);
    assert_int_equal(world_acquire(client, KEY, LONG_MS, LONG_MS, &second), LK_OK);
    assert_int_equal(lk_force_release(client, KEY), LK_OK);
    assert_int_equal(world_acquire(client, KEY, LONG_MS, 0, &third), LK_OK);
    assert_true(first.fence < second.fence && second.fence < third.fence);
    assert_int_equal(lk_release(&first), LK_LOST);
    assert_int_equal(lk_release(&second), LK_LOST);
    assert_int_equal(lk_release(&third), LK_OK);
}

TEST_THAT(raised_fence_is_never_lowered)
{
    lk_hold hold;
    assert_int_equal(lk_raise_fence(client, KEY, 1000), LK_OK); /* the key was never held */
    assert_int_equal(granted_fence(KEY), 1001);
    assert_int_equal(lk_raise_fence(client, KEY, 5), LK_OK);
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
    assert_int_equal(hold.fence, 1002);
    assert_int_equal(lk_raise_fence(client, KEY, INT64_C(1) << 53), LK_OK);
    assert_int_equal(lk_check(&hold, NULL), LK_OK); /* raising the fence frees no lock */
    assert_int_equal(lk_confirm(&hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(granted_fence(KEY), (INT64_C(1) << 53) + 1);
    assert_int_equal(lk_raise_fence(client, KEY, UINT64_MAX), LK_INVALID);
}

/* Calls the provider directly: after the lease the core would not ask it. */
TEST_THAT(lease_that_ended_is_not_renewed_though_nobody_took_it)
{
    struct bare bare;
    lk_hold hold = {.key = KEY, .token = "mine", .lease_ms = LONG_MS};
    bare_open(&bare);
    assert_int_equal(lk_sql_unique.try_acquire(bare.self, &(lk_attempt){.hold = &hold}), LK_OK);
    assert_int_equal(lk_sql_unique.renew(bare.self, &hold, SHORT_MS), LK_OK);
    assert_true(world_frees(KEY, GRACE_MS));
    assert_int_equal(lk_sql_unique.renew(bare.self, &hold, LONG_MS), LK_LOST);
    assert_int_equal(lk_sql_unique.confirm(bare.self, &hold), LK_LOST);
    assert_int_equal(lk_sql_unique.release(bare.self, &hold), LK_LOST);
    lk_sql_unique.close(bare.self);
}

TEST_THAT(key_is_data_whatever_it_says)
{
    static const char *const keys[] = {"x');DROP/**/TABLE/**/lockkit.locks;--",
                                       "x';DROP/**/TABLE/**/lockkit_locks;--",
                                       "'",
                                       "''",
                                       "\"",
                                       "\\",
                                       "$1",
                                       "%s",
                                       "?",
                                       "a'||token||'b",
                                       ";"};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    lk_hold holds[KEYS], second;
    for (size_t i = 0; i < KEYS; i++)
        assert_int_equal(world_acquire(client, keys[i], LONG_MS, 0, &holds[i]), LK_OK);
    for (size_t i = 0; i < KEYS; i++) {
        lk_lock_info info;
        assert_int_equal(world_acquire(client, keys[i], LONG_MS, 0, &second), LK_TIMEOUT);
        assert_int_equal(lk_inspect(client, keys[i], &info), LK_OK);
        assert_string_equal(info.key, keys[i]);
        assert_string_equal(info.token, holds[i].token);
        assert_int_equal(holds[i].fence, 1);
        assert_int_equal(lk_release(&holds[i]), LK_OK);
    }
}

static int note_key(void *arg, const lk_lock_info *info)
{
    char *keys = arg;
    strcat(strcat(keys, info->key), " ");
    assert_int_equal(info->holders, 1);
    assert_true(info->left_ms > 0 && info->left_ms <= LONG_MS);
    return 0;
}

TEST_THAT(list_takes_its_prefix_by_the_letter_and_only_what_is_held)
{
    static const char *const keys[] = {"a_1", "ab1", "a%1", "A_1", "a_2"};
    char found[256] = "";
    lk_hold holds[5];
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(world_acquire(client, keys[i], LONG_MS, 0, &holds[i]), LK_OK);
    assert_int_equal(lk_release(&holds[4]), LK_OK);
    assert_int_equal(lk_list(client, "a_", note_key, found), LK_OK);
    assert_string_equal(found, "a_1 ");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(lk_release(&holds[i]), LK_OK);
}

/* Happens after a lost answer and a clean-up that came too early. */
TEST_THAT(late_attempt_of_the_same_call_is_taken_over)
{
    struct bare bare;
    lk_hold hold = {.key = KEY, .token = "same", .lease_ms = LONG_MS};
    lk_hold other = {.key = KEY, .token = "other", .lease_ms = LONG_MS};
    bare_open(&bare);
    assert_int_equal(lk_sql_unique.try_acquire(bare.self, &(lk_attempt){.hold = &hold}), LK_OK);
    assert_int_equal(hold.fence, 1);
    assert_int_equal(lk_sql_unique.try_acquire(bare.self, &(lk_attempt){.hold = &hold}), LK_OK);
    assert_int_equal(hold.fence, 2);
    assert_int_equal(lk_sql_unique.try_acquire(bare.self, &(lk_attempt){.hold = &other}), LK_BUSY);
    assert_int_equal(lk_sql_unique.release(bare.self, &hold), LK_OK);
    assert_int_equal(lk_sql_unique.release(bare.self, &hold), LK_LOST);
    lk_sql_unique.close(bare.self);
}

static bool dies_and_is_followed(const char *guard, int64_t wait_ms)
{
    char endpoints[WORLD_ENDPOINTS_MAX];
    struct holder holder;
    lk_hold hold;
    world->endpoints(endpoints, sizeof endpoints, 0);
    struct holder_plan plan = {
        .guard = guard, .endpoints = endpoints, .key = KEY, .lease_ms = SHORT_MS};
    assert_true(holder_start(&holder, &plan));
    assert_true(holder_says(&holder, "held"));
    holder_kill(&holder);
    lk_client *next = world_client(guard, NULL);
    lk_status status = world_acquire(next, KEY, 0, wait_ms, &hold);
    if (status == LK_OK)
        assert_int_equal(lk_release(&hold), LK_OK);
    else
        assert_int_equal(status, LK_TIMEOUT);
    lk_close(next);
    return status == LK_OK;
}

TEST_THAT(row_of_a_dead_holder_comes_free_with_its_lease_or_never)
{
    assert_true(dies_and_is_followed("sql-unique", SHORT_MS + GRACE_MS));
    assert_false(dies_and_is_followed("sql-unique-forever", 5 * SHORT_MS));
    assert_true(world->exists(KEY));
    assert_true(world->remove(KEY)); /* by hand */
    assert_false(world->exists(KEY));
}

struct releasing {
    struct bare bare;
    lk_hold hold;
    lk_status status;
};

static void *release_late(void *arg)
{
    struct releasing *releasing = arg;
    releasing->status = lk_sql_unique.release(releasing->bare.self, &releasing->hold);
    return NULL;
}

static bool somebody_waits_for_a_row(void *arg)
{
    (void)arg;
    return world_sql("SELECT count(*) FROM pg_locks WHERE NOT granted", NULL) > 0;
}

TEST_GROUP("postgres alone", NULL, world_close);

/* The caller gave up the try; it is committed while it is being undone. */
TEST_THAT(undoing_waits_for_an_attempt_that_is_not_committed_yet)
{
    pthread_t thread;
    struct releasing late = {.hold = {.key = KEY, .token = "late"}};
    assert_int_equal(granted_fence(KEY), 1);
    bare_open(&late.bare);
    PGconn *attempt = PQconnectdb(world_postgres->url);
    PQclear(PQexec(attempt, "BEGIN"));
    PQclear(PQexec(attempt, "UPDATE lockkit.locks SET token = 'late',"
                            " until_ms = extract(epoch FROM now()) * 1000 + 20000"));
    assert_int_equal(pthread_create(&thread, NULL, release_late, &late), 0);
    bool waits = wait_until(somebody_waits_for_a_row, NULL, GRACE_MS);
    PQclear(PQexec(attempt, "COMMIT"));
    PQfinish(attempt);
    pthread_join(thread, NULL);
    assert_true(waits);
    assert_int_equal(late.status, LK_OK);
    assert_false(world->exists(KEY));
    lk_sql_unique.close(late.bare.self);
}

/* Happens if an administrator drops the schema. */
TEST_THAT(tables_that_were_dropped_are_made_again)
{
    assert_int_equal(granted_fence(KEY), 1);
    world_sql("DROP SCHEMA lockkit CASCADE", NULL);
    lk_hold hold;
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_PROTOCOL);
    assert_int_equal(granted_fence(KEY), 1);
}

/* -- both databases ------------------------------------------------------------------------------
 */

static int open_client(void **state)
{
    (void)state;
    world->wipe();
    client = world_client("sql-unique", NULL);
    return client != NULL ? 0 : -1;
}

static int close_client(void **state)
{
    (void)state;
    lk_close(client);
    return 0;
}

TEST_FIXTURE(open_client, close_client);

int main(int argc, char **argv)
{
    if (argc > 1)
        return holder_main(argc, argv);
    return tests_run();
}
