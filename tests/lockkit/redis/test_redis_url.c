/* Redis endpoints that are accepted, or refused with advice. */
#include "redis_url.h"
#include "tests.h"

#include <string.h>

TEST_THAT(well_formed_endpoints_are_understood)
{
    static const struct {
        const char *text, *host, *path, *user, *password;
        int port, db;
    } rows[] = {
        {"redis://127.0.0.1", "127.0.0.1", "", "", "", 6379, 0},
        {"redis://127.0.0.1:7000", "127.0.0.1", "", "", "", 7000, 0},
        {"redis://cache.example/", "cache.example", "", "", "", 6379, 0},
        {"redis://cache.example:1/15", "cache.example", "", "", "", 1, 15},
        {"redis://:secret@h:65535/3", "h", "", "", "secret", 65535, 3},
        {"redis://user:p%40ss%3a@h", "h", "", "user", "p@ss:", 6379, 0},
        {"redis://user:a:b@c@h", "h", "", "user", "a:b@c", 6379, 0},
        {"redis://[::1]:7001/2", "::1", "", "", "", 7001, 2},
        {"redis://[::1]", "::1", "", "", "", 6379, 0},
        {"unix:///run/redis.sock", "", "/run/redis.sock", "", "", 6379, 0},
        {"unix:///run/redis.sock?db=7", "", "/run/redis.sock", "", "", 6379, 7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lk_redis_url url;
        lk_error error = {.message = ""};
        if (lk_redis_url_parse(rows[i].text, &url, &error) != LK_OK)
            fail_msg("%s: %s", rows[i].text, error.message);
        assert_string_equal(url.host, rows[i].host);
        assert_string_equal(url.path, rows[i].path);
        assert_string_equal(url.user, rows[i].user);
        assert_string_equal(url.password, rows[i].password);
        assert_int_equal(url.port, rows[i].port);
        assert_int_equal(url.db, rows[i].db);
    }
}

TEST_THAT(endpoint_that_wants_tls_is_told_how_to_have_it)
{
    lk_redis_url url;
    lk_error error = {.message = ""};
    assert_int_equal(lk_redis_url_parse("rediss://:secret@h", &url, &error), LK_INVALID);
    assert_non_null(strstr(error.message, "TLS"));
    assert_non_null(strstr(error.message, "stunnel"));
    assert_null(strstr(error.message, "secret"));
}

TEST_THAT(malformed_endpoints_are_refused_with_a_reason)
{
    static const char *const texts[] = {
        NULL,
        "",
        "127.0.0.1:6379",
        "http://127.0.0.1",
        "rediss://h",
        "redis+sentinel://h/m",
        "redis://",
        "redis://:7000",
        "redis://h:",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:12x",
        "redis://h:99999999999999999999",
        "redis://h/x",
        "redis://h/65536",
        "redis://h/-1",
        "redis://h/0/1",
        "redis://user@h",
        "redis://user:@h",
        "redis://:%zz@h",
        "redis://:%4@h",
        "redis://:%00@h",
        "redis://[::1",
        "redis://[::1]7000",
        "redis://[]",
        "redis://a,redis://b",
        "unix://",
        "unix:///",
        "unix://relative",
        "unix:///s?db=x",
        "unix:///s?database=1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        lk_redis_url url = {.port = -1};
        lk_error error = {.message = ""};
        if (lk_redis_url_parse(texts[i], &url, &error) != LK_INVALID)
            fail_msg("\"%s\" was understood", texts[i]);
        assert_int_equal(error.status, LK_INVALID);
        assert_true(strlen(error.message) > 0);
        assert_int_equal(url.port, -1); /* written only on success */
    }
    assert_int_equal(lk_redis_url_parse("nonsense", &(lk_redis_url){0}, NULL), LK_INVALID);
}

TEST_THAT(no_message_gives_the_password_away)
{
    static const char *const texts[] = {"redis://u:hunter2@", "redis://u:hunter2@h:0",
                                        "redis://u:hunter2@h/x", "http://u:hunter2@h",
                                        "redis://u:hunter2%zz@h"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        lk_redis_url url;
        lk_error error = {.message = ""};
        assert_int_equal(lk_redis_url_parse(texts[i], &url, &error), LK_INVALID);
        assert_null(strstr(error.message, "hunter2"));
    }
}

TEST_THAT(first_url_of_a_list_ends_where_another_begins)
{
    static const struct {
        const char *list, *first;
    } rows[] = {
        {"", ""},
        {"redis://a:1", "redis://a:1"},
        {"redis://a:1,redis://b:2,redis://c:3", "redis://a:1"},
        {"unix:///run/a.sock,redis://b", "unix:///run/a.sock"},
        {"redis+sentinel://a:1,b:2,c:3/main,redis://d", "redis+sentinel://a:1,b:2,c:3/main"},
        {"redis+cluster://a:1,b:2", "redis+cluster://a:1,b:2"},
        {"redis://:p,x@h,unix:///s", "redis://:p,x@h"},
        {"redis://a,://b", "redis://a,://b"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(lk_redis_url_span(rows[i].list), strlen(rows[i].first));
}

TEST_THAT(names_that_do_not_fit_are_refused_not_cut)
{
    char text[1024];
    lk_redis_url url;
    for (size_t length = LK_REDIS_HOST_MAX - 1; length <= LK_REDIS_HOST_MAX + 1; length++) {
        bool fits = length <= LK_REDIS_HOST_MAX;
        memcpy(text, "redis://", 8);
        memset(text + 8, 'h', length);
        text[8 + length] = '\0';
        assert_int_equal(lk_redis_url_parse(text, &url, NULL), fits ? LK_OK : LK_INVALID);
        memcpy(text, "unix:///", 8);
        text[7 + length] = '\0'; /* the path has its slash among the first eight */
        assert_int_equal(lk_redis_url_parse(text, &url, NULL), fits ? LK_OK : LK_INVALID);
    }
}
