/*
 * Names of nodes that other clients of ZooKeeper have made. First line: our token; the others: the
 * children of a lock's node.
 *
 * Second opinions: a key's path leads back to the key; a sequence number is read again from what
 * the last ten places say; the blocker is found once more by looking at all.
 */
#include "fuzz.h"
#include "zk_queue.h"

#include <inttypes.h>

enum { NAMES_MAX = 200 };

static bool is_reader(const char *name)
{
    return strstr(name, "read-") != NULL || strstr(name, "__rlock__") != NULL;
}

static const lk_zk_recipe recipe = {
    .root = "/lockkit/fuzz", .label = {"lock-", "read-"}, .is_shared = is_reader};

static void check_key(const char *key)
{
    char path[LK_ZK_PATH_MAX], again[LK_KEY_MAX + 1];
    if (key[0] == '\0' || strlen(key) > LK_KEY_MAX)
        return;
    lk_zk_key_path(path, recipe.root, key);
    const char *name = strrchr(path, '/') + 1;
    FUZZ_CHECK(name == path + strlen(recipe.root) + 1);
    FUZZ_CHECK(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
    FUZZ_CHECK(lk_zk_key_of(name, again) && strcmp(again, key) == 0);
}

static void check_sequence(const char *name)
{
    int32_t sequence;
    char digits[24];
    if (!lk_zk_parse_sequence(name, &sequence))
        return;
    snprintf(digits, sizeof digits, "%010" PRId32, sequence); /* as ZooKeeper writes it */
    const size_t length = strlen(name), n = strlen(digits);
    const size_t shown = sequence == 0 ? 10 : n; /* "-0" stands for 0 */
    FUZZ_CHECK(length >= 10 && shown <= length);
    FUZZ_CHECK(sequence == 0 || strcmp(name + length - n, digits) == 0);
}

static void check_own(lk_hold *hold, const char *token, int32_t sequence)
{
    char path[LK_ZK_PATH_MAX], prefix[LK_ZK_PATH_MAX];
    int32_t again;
    snprintf(hold->token, sizeof hold->token, "%s", token);
    snprintf(hold->key, sizeof hold->key, "lock:item:1");
    lk_zk_set_node(hold, 1, sequence);
    lk_zk_own_path(path, &recipe, hold);
    lk_zk_name_prefix(prefix, hold);
    const char *name = strrchr(path, '/') + 1;
    FUZZ_CHECK(strncmp(name, prefix, strlen(prefix)) == 0);
    FUZZ_CHECK(lk_zk_parse_sequence(name, &again) && again == sequence);
}

static void check_blocker(char **names, size_t n, lk_mode mode, int32_t sequence)
{
    const lk_zk_answer children = {.n = n, .names = names};
    const char *blocker = lk_zk_blocker(&recipe, &children, mode, sequence);
    int32_t of_blocker = 0, other;
    if (blocker != NULL) {
        FUZZ_CHECK(lk_zk_parse_sequence(blocker, &of_blocker));
        FUZZ_CHECK(lk_zk_is_before(of_blocker, sequence));
        FUZZ_CHECK(mode == LK_EXCLUSIVE || !is_reader(blocker));
    }
    for (size_t i = 0; i < n; i++) {
        if (!lk_zk_parse_sequence(names[i], &other) || !lk_zk_is_before(other, sequence) ||
            (mode == LK_SHARED && is_reader(names[i])))
            continue;
        FUZZ_CHECK(blocker != NULL);
        /* ... and it is the last of them */
        const bool is_later =
            (uint32_t)sequence - (uint32_t)other < (uint32_t)sequence - (uint32_t)of_blocker;
        FUZZ_CHECK(!is_later);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static lk_hold hold;
    static lk_zk zk;
    char *text = fuzz_text(input, size), *rest = text, *token = strsep(&rest, "\n");
    char *names[NAMES_MAX], key[LK_KEY_MAX + 1], path[LK_ZK_PATH_MAX];
    size_t n = 0;
    for (char *name; rest != NULL && n < NAMES_MAX && (name = strsep(&rest, "\n")) != NULL;)
        names[n++] = name;
    check_key(token);
    if (strlen(token) <= LK_TOKEN_MAX) {
        check_own(&hold, token, (int32_t)size);
        check_own(&hold, token, -(int32_t)size);
        check_own(&hold, token, INT32_MIN);
        check_own(&hold, token, INT32_MAX);
        if (strlen(token) <= LK_TOKEN_MAX - 17) {
            lk_zk_make_token_unique(&zk, &hold);
            FUZZ_CHECK(strlen(hold.token) <= LK_TOKEN_MAX);
        }
    }
    for (size_t i = 0; i < n; i++) {
        check_key(names[i]);
        check_sequence(names[i]);
        if (lk_zk_key_of(names[i], key)) {
            FUZZ_CHECK(strlen(key) >= 1 && strlen(key) <= LK_KEY_MAX);
            lk_zk_key_path(path, recipe.root, key);
            FUZZ_CHECK(strcmp(path + strlen(recipe.root) + 1, names[i]) == 0);
        }
        if (lk_zk_child_path(path, recipe.root, names[i]))
            FUZZ_CHECK(strcmp(path + strlen(recipe.root) + 1, names[i]) == 0);
    }
    static const int32_t ours[] = {0, 1, 42, INT32_MAX, INT32_MIN, -1};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        check_blocker(names, n, LK_EXCLUSIVE, ours[i]);
        check_blocker(names, n, LK_SHARED, ours[i]);
    }
    free(text);
    return 0;
}
