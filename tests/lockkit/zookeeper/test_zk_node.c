/* Names of ZooKeeper nodes: keys, tokens, and the order of sequence numbers. */
#include "zk_queue.h"
#include "tests.h"

#include <stdlib.h>
#include <string.h>

TEST_THAT(a_key_is_found_again_in_its_node_s_name)
{
    static const char *const keys[][2] = {
        {"lock:item:1", "/r/lock:item:1"},
        {"a/b", "/r/a%2Fb"},
        {"a%2Fb", "/r/a%252Fb"},
        {".", "/r/%2E"},
        {"..", "/r/%2E%2E"},
        {"...", "/r/..."},
        {"//", "/r/%2F%2F"},
        {"%", "/r/%25"},
        {"a.b", "/r/a.b"},
    };
    char path[LK_ZK_PATH_MAX], key[LK_KEY_MAX + 1];
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        lk_zk_key_path(path, "/r", keys[i][0]);
        assert_string_equal(path, keys[i][1]);
        assert_true(lk_zk_key_of(path + 3, key));
        assert_string_equal(key, keys[i][0]);
    }
    static const char *const foreign[] = {"",   "%",   "%2",    "%2f", "%zz",
                                          "a%", "%00", "a%00b", "%41", "."};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        assert_false(lk_zk_key_of(foreign[i], key));
    char longest[LK_KEY_MAX + 2];
    memset(longest, '/', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    lk_zk_key_path(path, "/r", longest + 1);
    assert_true(lk_zk_key_of(path + 3, key));
    assert_string_equal(key, longest + 1);
    lk_zk_key_path(path, "/r", longest);
    assert_false(lk_zk_key_of(path + 3, key)); /* longer than any valid key */
}

TEST_THAT(the_longest_key_and_token_fit_into_a_path)
{
    static const lk_zk_recipe recipe = {.root = "/lockkit/readwrite", .label = {"__WRIT__"}};
    char path[LK_ZK_PATH_MAX];
    lk_hold hold = {.key = ""};
    memset(hold.key, '/', LK_KEY_MAX);
    memset(hold.token, '%', LK_TOKEN_MAX);
    lk_zk_set_node(&hold, 7, INT32_MIN);
    lk_zk_own_path(path, &recipe, &hold);
    assert_string_equal(path + strlen(path) - 19, "__WRIT__-2147483648");
    assert_int_equal(lk_zk_epoch_of(&hold), 7);
    assert_int_equal(lk_zk_sequence_of(&hold), INT32_MIN);
}

/* If the session ends while a node is created, the same try creates it again. */
TEST_THAT(each_node_of_the_longest_owner_has_a_mark_of_its_own)
{
    static lk_zk zk;
    char first[LK_TOKEN_MAX + 1];
    lk_hold hold = {.attempts = 1};
    memset(hold.token, 'o', 32 + 1 + LK_OWNER_MAX);
    lk_zk_make_token_unique(&zk, &hold);
    memcpy(first, hold.token, sizeof first);
    for (hold.attempts = 1; hold.attempts < 4; hold.attempts++) {
        lk_zk_make_token_unique(&zk, &hold);
        assert_int_equal(strlen(hold.token), strlen(first));
        assert_string_not_equal(hold.token, first);
        assert_memory_equal(hold.token, first, 32 + 1 + LK_OWNER_MAX);
    }
}

TEST_THAT(sequence_numbers_are_read_whatever_stands_before_them)
{
    static const struct {
        const char *name;
        int32_t sequence;
    } names[] = {
        {"_c_0123:4567#01-lock-0000000042", 42},
        {"_c_9b2e8ad5-7f11-lock-0000000007", 7},
        {"b1c2__lock__0000000009", 9},
        {"x-2147483647", INT32_MAX},
        {"0000000003", 3},
        {"_c_a-lock--2147483648", INT32_MIN}, /* beyond the end of the range */
        {"_c_a-__WRIT__-2147483647", -2147483647},
        {"_c_a-lock--000000001", -1},
        {"another--0000000012", 12}, /* -12 has nine digits */
    };
    int32_t sequence;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_true(lk_zk_parse_sequence(names[i].name, &sequence));
        assert_int_equal(sequence, names[i].sequence);
    }
    static const char *const none[] = {"", "lock-", "lock-00000000", "lock-000000000x",
                                       "x-9999999999"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(lk_zk_parse_sequence(none[i], &sequence));
}

TEST_THAT(order_goes_on_over_the_end_of_the_range)
{
    assert_true(lk_zk_is_before(1, 2));
    assert_false(lk_zk_is_before(2, 2));
    assert_false(lk_zk_is_before(3, 2));
    assert_true(lk_zk_is_before(INT32_MAX, INT32_MIN));
    assert_true(lk_zk_is_before(INT32_MAX - 5, INT32_MIN + 5));
    assert_false(lk_zk_is_before(INT32_MIN, INT32_MAX));
}

static bool is_reader(const char *name)
{
    return strstr(name, "READ") != NULL;
}

/* blocker "": none. */
static void expect_blocker(char **names, size_t n, lk_mode mode, int32_t sequence,
                           const char *blocker)
{
    static const lk_zk_recipe recipe = {.is_shared = is_reader};
    const lk_zk_answer answer = {.names = names, .n = n};
    const char *found = lk_zk_blocker(&recipe, &answer, mode, sequence);
    assert_string_equal(found != NULL ? found : "", blocker);
}

TEST_THAT(each_waits_for_the_last_that_conflicts_with_it)
{
    char *names[] = {"z-READ-0000000005", "config",
                     "a-WRIT-0000000009", "k-READ-0000000012",
                     "b-READ-0000000004", "c-WRIT-0000000014"};
    size_t n = sizeof names / sizeof names[0];
    expect_blocker(names, n, LK_SHARED, 4, "");
    expect_blocker(names, n, LK_SHARED, 5, "");
    expect_blocker(names, n, LK_SHARED, 12, "a-WRIT-0000000009");
    expect_blocker(names, n, LK_EXCLUSIVE, 9, "z-READ-0000000005");
    expect_blocker(names, n, LK_EXCLUSIVE, 14, "k-READ-0000000012");
    expect_blocker(names, n, LK_SHARED, 20, "c-WRIT-0000000014");
    expect_blocker(names, 0, LK_EXCLUSIVE, 20, "");
}
