/* ZooKeeper guards beside other projects' contenders; names of nodes, containers, endpoints. */
#include "lock_claims.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#define SEQUENTIAL "/lockkit/sequential"
#define READWRITE  "/lockkit/readwrite"

enum { PATH_BYTES = 512 };

static int set_up(void **state)
{
    (void)state;
    world->wipe();
    return 0;
}

/* -- other projects' contenders -----------------------------------------------------------------
 */

/* Another client's node excludes ours and is in the same queue. */
static void expect_exclusion(const char *guard, const char *parent, const char *name, lk_mode mode,
                             bool shares)
{
    char path[PATH_BYTES], foreign[PATH_BYTES], behind[PATH_BYTES];
    lk_hold hold, next;
    lk_client *client = world_client(guard, &world_patient);
    lk_request request = {.key = CLAIM_KEY, .mode = mode};
    snprintf(path, sizeof path, "%s/" CLAIM_KEY "/%s", parent, name);
    assert_int_equal(lk_acquire(client, &request, &hold), LK_OK); /* makes the parents */
    assert_true(world_zk_create(path, ZOO_EPHEMERAL_SEQUENTIAL, behind, sizeof behind));
    assert_int_equal(lk_confirm(&hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(world_zk_create(path, ZOO_EPHEMERAL_SEQUENTIAL, foreign, sizeof foreign));
    assert_int_equal(lk_acquire(client, &request, &next), shares ? LK_OK : LK_TIMEOUT);
    if (shares)
        assert_int_equal(lk_release(&next), LK_OK);
    assert_true(world_zk_delete(behind));
    assert_int_equal(lk_acquire(client, &request, &next), shares ? LK_OK : LK_TIMEOUT);
    if (shares)
        assert_int_equal(lk_release(&next), LK_OK);
    assert_true(world_zk_delete(foreign));
    assert_int_equal(lk_acquire(client, &request, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(set_up, NULL);

TEST_THAT(nodes_named_as_by_curator_and_kazoo_exclude_ours)
{
#define GUID "2c1f4e0a-9d6b-4b1c-8f0e-0a1b2c3d4e5f"
    expect_exclusion("zk-sequential", SEQUENTIAL, "_c_" GUID "-lock-", LK_EXCLUSIVE, false);
    expect_exclusion("zk-sequential", SEQUENTIAL, "zz2c1f4e0a9d6b__lock__", LK_EXCLUSIVE, false);
    expect_exclusion("zk-readwrite", READWRITE, "_c_" GUID "-__WRIT__", LK_SHARED, false);
    expect_exclusion("zk-readwrite", READWRITE, "_c_" GUID "-__READ__", LK_SHARED, true);
    expect_exclusion("zk-readwrite", READWRITE, "_c_" GUID "-__READ__", LK_EXCLUSIVE, false);
    expect_exclusion("zk-readwrite", READWRITE, "2c1f4e0a9d6b__rlock__", LK_SHARED, true);
    expect_exclusion("zk-readwrite", READWRITE, "2c1f4e0a9d6b__lock__", LK_SHARED, false);
}

/* Our node precedes theirs in the order that they use: by the number at the end of the name. */
TEST_THAT(ours_stand_in_the_same_queue_as_theirs)
{
    char path[PATH_BYTES];
    lk_hold hold;
    lk_lock_info info;
    lk_client *client = world_client("zk-sequential", &world_patient);
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_OK);
    assert_true(world_zk_create(SEQUENTIAL "/" CLAIM_KEY "/0__lock__", ZOO_EPHEMERAL_SEQUENTIAL,
                                path, sizeof path));
    assert_string_equal(path + strlen(path) - 10, "0000000001"); /* ours is ...0 */
    assert_int_equal(lk_inspect(client, CLAIM_KEY, &info), LK_OK);
    assert_int_equal(info.holders, 1);
    assert_int_equal(info.waiters, 1);
    assert_string_equal(info.token, hold.token);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(lk_inspect(client, CLAIM_KEY, &info), LK_OK);
    assert_string_equal(info.token, "foreign");
    assert_int_equal(lk_force_release(client, CLAIM_KEY), LK_OK);
    lk_close(client);
}

TEST_THAT(owner_called_like_a_reader_is_a_writer_all_the_same)
{
    static const char *const owners[] = {"a__READ__b", "__rlock__", "__READ__0000000001"};
    lk_client *client = world_client("zk-readwrite", &world_patient);
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        lk_request writer = {.key = CLAIM_KEY, .owner = owners[i]};
        lk_request reader = {.key = CLAIM_KEY, .mode = LK_SHARED};
        lk_hold writes, reads;
        assert_int_equal(lk_acquire(client, &writer, &writes), LK_OK);
        assert_int_equal(lk_acquire(client, &reader, &reads), LK_TIMEOUT);
        assert_int_equal(lk_release(&writes), LK_OK);
        assert_int_equal(lk_acquire(client, &reader, &reads), LK_OK);
        assert_int_equal(lk_acquire(client, &writer, &writes), LK_TIMEOUT);
        assert_int_equal(lk_release(&reads), LK_OK);
    }
    lk_close(client);
}

/* -- names --------------------------------------------------------------------------------------
 */

struct seen {
    const char *const *keys;
    unsigned mask;
};

static int note_key(void *arg, const lk_lock_info *info)
{
    struct seen *seen = arg;
    for (unsigned i = 0; seen->keys[i] != NULL; i++)
        if (strcmp(seen->keys[i], info->key) == 0)
            seen->mask ^= 1u << i;
    return 0;
}

TEST_THAT(keys_that_mean_something_in_a_path_are_keys_like_others)
{
    static const char *const keys[] = {".", "..", "a/b", "a%2Fb", "/", "a", "zookeeper", NULL};
    enum { KEYS = sizeof keys / sizeof keys[0] - 1 };
    for (const char *const *guard = world->guards; *guard != NULL; guard++) {
        lk_hold holds[KEYS], second;
        struct seen seen = {.keys = keys};
        lk_client *client = world_client(*guard, &world_patient);
        for (int i = 0; i < KEYS; i++)
            assert_int_equal(lk_try_acquire(client, keys[i], &holds[i]), LK_OK);
        for (int i = 0; i < KEYS; i++)
            assert_int_equal(lk_try_acquire(client, keys[i], &second), LK_TIMEOUT);
        assert_int_equal(lk_list(client, "", note_key, &seen), LK_OK);
        assert_int_equal(seen.mask, (1u << KEYS) - 1);
        for (int i = 0; i < KEYS; i++)
            assert_int_equal(lk_release(&holds[i]), LK_OK);
        lk_close(client);
        world->wipe();
    }
}

static bool has_no_keys(void *parent)
{
    return world_zk_children(parent) == 0;
}

TEST_THAT(a_key_that_nobody_uses_leaves_no_container)
{
    lk_hold hold;
    lk_client *client = world_client("zk-sequential", &world_patient);
    assert_int_equal(lk_try_acquire(client, CLAIM_KEY, &hold), LK_OK);
    assert_int_equal(world_zk_children(SEQUENTIAL), 1);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(wait_until(has_no_keys, SEQUENTIAL, CLAIM_LONG_MS));
    assert_int_equal(lk_try_acquire(client, CLAIM_KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

TEST_THAT(malformed_endpoints_are_refused_at_opening)
{
    static const char *const wrong[] = {
        NULL,   "",      "host",     ":2181", "host:", "host:0", "h:70000",
        "a:1,", "a:1,b", "a:1 ,b:2", "a:1/",  "a:x",   "a:-1",   "a:1/f g"};
    static const char *const right[] = {"127.0.0.1:1", "a:1,b:2", "a:1,b:2/folder/below"};
    lk_client *client;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(lk_open("zk-sequential", wrong[i], NULL, &client, NULL), LK_INVALID);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_int_equal(lk_open("zk-sequential", right[i], NULL, &client, NULL), LK_OK);
        lk_close(client);
    }
}

int main(void)
{
    world = &family_zookeeper;
    return tests_run();
}
