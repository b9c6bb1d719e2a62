/* Endpoints of Sentinels and clusters that are accepted or refused; slots. */
#include "redis_cluster.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

static lk_redis_topology topology; /* too big for a stack under test */

TEST_THAT(one_node_is_parsed_as_ever)
{
    assert_int_equal(lk_redis_topology_parse("redis://:pw@h:7/3", &topology, NULL), LK_OK);
    assert_int_equal(topology.kind, LK_REDIS_NODE);
    assert_string_equal(topology.node.host, "h");
    assert_int_equal(topology.node.port, 7);
    assert_int_equal(topology.node.db, 3);
    assert_int_equal(lk_redis_topology_parse("unix:///s", &topology, NULL), LK_OK);
    assert_string_equal(topology.node.path, "/s");
}

TEST_THAT(hosts_login_name_and_database_are_understood)
{
    static const struct {
        const char *text, *master, *user, *password, *hosts;
        enum lk_redis_kind kind;
        int db;
    } rows[] = {
        {"redis+sentinel://a:1,b:2,c:3/main", "main", "", "", "a 1 b 2 c 3 ", LK_REDIS_SENTINEL, 0},
        {"redis+sentinel://a/main/7", "main", "", "", "a 26379 ", LK_REDIS_SENTINEL, 7},
        {"redis+sentinel://a/main/", "main", "", "", "a 26379 ", LK_REDIS_SENTINEL, 0},
        {"redis+sentinel://u:p%40%2cx@a,b/m.y-1", "m.y-1", "u", "p@,x", "a 26379 b 26379 ",
         LK_REDIS_SENTINEL, 0},
        {"redis+sentinel://[::1]:5,[::2]/m", "m", "", "", "::1 5 ::2 26379 ", LK_REDIS_SENTINEL, 0},
        {"redis+cluster://a:1,b", "", "", "", "a 1 b 6379 ", LK_REDIS_CLUSTER, 0},
        {"redis+cluster://:secret@a:1", "", "", "secret", "a 1 ", LK_REDIS_CLUSTER, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lk_error error = {.message = ""};
        char hosts[256] = "";
        if (lk_redis_topology_parse(rows[i].text, &topology, &error) != LK_OK)
            fail_msg("%s: %s", rows[i].text, error.message);
        for (size_t n = 0; n < topology.n_seeds; n++) {
            size_t length = strlen(hosts);
            snprintf(hosts + length, sizeof hosts - length, "%s %d ", topology.seed[n].host,
                     topology.seed[n].port);
        }
        assert_int_equal(topology.kind, rows[i].kind);
        assert_string_equal(topology.master, rows[i].master);
        assert_string_equal(topology.node.user, rows[i].user);
        assert_string_equal(topology.node.password, rows[i].password);
        assert_string_equal(hosts, rows[i].hosts);
        assert_int_equal(topology.node.db, rows[i].db);
    }
}

TEST_THAT(malformed_endpoints_are_refused_and_give_no_password_away)
{
    static const char *const texts[] = {
        "redis+sentinel://",
        "redis+sentinel://a:1",
        "redis+sentinel://a:1/",
        "redis+sentinel:///m",
        "redis+sentinel://a,,b/m",
        "redis+sentinel://a,/m",
        "redis+sentinel://a:0/m",
        "redis+sentinel://a/m/x",
        "redis+sentinel://a/m/1/2",
        "redis+sentinel://hunter2@a/m",
        "redis+sentinel://u:hunter2@/m",
        "redis+sentinel://u:hunter2@a:x/m",
        "redis+sentinel://a/1234567890123456789012345678901234567890123456789012345678901234",
        "redis+cluster://",
        "redis+cluster://a/0",
        "redis+cluster://a:1,",
        "redis+cluster://u:hunter2@a:99999",
        "redis+cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
        "redis+ring://a",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        lk_error error = {.message = ""};
        if (lk_redis_topology_parse(texts[i], &topology, &error) != LK_INVALID)
            fail_msg("\"%s\" was understood", texts[i]);
        assert_true(strlen(error.message) > 0);
        assert_null(strstr(error.message, "hunter2"));
    }
}

/* The slots are those of `redis-cli CLUSTER KEYSLOT`. */
TEST_THAT(slot_is_that_of_what_stands_in_braces)
{
    static const struct {
        const char *key;
        int slot;
    } rows[] = {
        {"123456789", 12739}, {"lock:item:1", 6030},   {"{lock:item:1}:fence", 6030},
        {"foo{}{bar}", 8363}, {"foo{{bar}}zap", 4015}, {"foo{bar}{zap}", 5061},
        {"bar", 5061},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(lk_redis_slot(rows[i].key), rows[i].slot);
}
