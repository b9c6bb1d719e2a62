/* Who is let in, as the settings say it, and what they do not show to others. */
#include "draft.h"

static void refused_for(const char *what)
{
    if (config_draft_finish(&draft, &config) == 0)
        fail_msg("taken");
    if (strstr(draft.message, what) == NULL)
        fail_msg("%s: not about %s", draft.message, what);
}

GROUP_FIXTURE(make_file, remove_file);

TEST_THAT(loopback_is_open_unless_there_are_tokens)
{
    static const char *const loopback[] = {"127.0.0.1:0", "127.9.9.9:1", "[::1]:8080",
                                           "localhost:8080"};
    static const char *const tokens[] = {"tokens", "operator-token-sha256"};
    for (size_t i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++) {
        config_draft_defaults(&draft);
        set("listen", loopback[i]);
        set("lab", "on");
        assert_int_equal(config_draft_finish(&draft, &config), 0);
        assert_true(config.open);
    }
    for (size_t i = 0; i < 2; i++) {
        config_draft_defaults(&draft);
        set(tokens[i], "some");
        assert_int_equal(config_draft_finish(&draft, &config), 0);
        assert_false(config.open);
        set("lab", "on"); /* a lesson asks itself, without a token */
        refused_for("--open");
        set("open", "on");
        assert_int_equal(config_draft_finish(&draft, &config), 0);
        assert_true(config.open);
    }
}

TEST_THAT(other_addresses_need_tokens_and_are_never_open)
{
    static const char *const others[] = {"0.0.0.0:8080", "[::]:8080", "192.0.2.1:80"};
    static const char *const lessons[] = {"open", "lab", "demo"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        config_draft_defaults(&draft);
        set("listen", others[i]);
        refused_for("--tokens");
        set("tokens", "some");
        assert_int_equal(config_draft_finish(&draft, &config), 0);
        assert_false(config.open);
        for (size_t k = 0; k < 3; k++) {
            set(lessons[k], "on");
            refused_for("not a loopback address");
            set(lessons[k], "off");
        }
    }
}

/* loadgen's token may stand in the environment that both programs see. */
TEST_THAT(the_token_of_clients_is_no_setting)
{
    char of_clients[] = "SECKILL_TOKEN=secret", unknown[] = "SECKILL_TOKENX=1";
    char *good[] = {of_clients, NULL}, *bad[] = {unknown, NULL};
    config_draft_defaults(&draft);
    assert_int_equal(config_draft_environment(&draft, good), 0);
    assert_int_equal(config_draft_environment(&draft, bad), -1);
}

TEST_THAT(passwords_are_not_shown)
{
    static const char *const rows[][2] = {
        {"sqlite:a@b:c.db", "sqlite:a@b:c.db"},
        {"redis://127.0.0.1:6379,redis://h:1/0", "redis://127.0.0.1:6379,redis://h:1/0"},
        {"redis://:secret@h:1,redis://me:secret@i:2/3", "redis://:***@h:1,redis://me:***@i:2/3"},
        {"redis+sentinel://me:secret@h:1,i:2/master", "redis+sentinel://me:***@h:1,i:2/master"},
        {"redis://:se/cr@et?@h", "redis://:***@h"},
        {"postgres://me@h:5432/db?isolation=serializable",
         "postgres://me@h:5432/db?isolation=serializable"},
        {"postgres://me:secret@h:5432/db", "postgres://me:***@h:5432/db"},
        {"postgres://h/db?user=me&password=secret&pool=4",
         "postgres://h/db?user=me&password=***&pool=4"},
        {"postgres://h/db?sslpassword=secret", "postgres://h/db?sslpassword=***"},
        {"postgres://h/db?PASSWORD=secret&sslmode=require",
         "postgres://h/db?PASSWORD=***&sslmode=require"},
        {"postgres://h/db?pass%77ord=secret", "postgres://h/db?pass%77ord=***"},
        {"postgres://h/db?passwordx=sec,ret=1", "postgres://h/db?passwordx=***"},
        {"postgres://h/db?password=a b?c&pool=2", "postgres://h/db?password=***&pool=2"},
        {"unix:///run/redis?db=1&password=secret", "unix:///run/redis?db=1&password=***"},
        {"me:secret@h:6379", "me:***@h:6379"},
        {"redis://h?db=1,redis://:secret@i", "redis://h?db=1,redis://:***@i"},
        {"redis://h?x,redis://:secret@i?db=2", "redis://h?x,redis://:***@i?db=2"},
        {"redis//me:secret@h:6379", "redis//me:***@h:6379"},
        {"h1:2181,h2:2181", "h1:2181,h2:2181"},
        {"redis://h?redis://me:secret@i?db=1", "redis://h?redis://me:***@i?db=1"},
    };
    char shown[2 * CONFIG_TEXT_MAX];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        config_mask(rows[i][0], shown, sizeof(shown));
        assert_string_equal(shown, rows[i][1]);
    }
    config_draft_defaults(&draft);
    set("db", rows[6][0]);
    set("redis", rows[2][0]);
    FILE *file = fopen(path, "w+e");
    config_draft_print(&draft, file);
    rewind(file);
    char text[4096];
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    assert_non_null(strstr(text, "db = postgres://me:***@h:5432/db\n"));
    assert_null(strstr(text, "secret"));
    config_mask(rows[6][0], shown, 18);
    assert_string_equal(shown, "postgres://me:***");
}
