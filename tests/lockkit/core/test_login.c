/* A login in the environment: its forms, and that a wrong one is told without its password. */
#include "login.h"
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#define NAME "LOCKKIT_TEST_AUTH"

TEST_THAT(user_and_password_are_told_apart)
{
    static const struct {
        const char *text, *user, *password;
    } rows[] = {{"secret", "", "secret"},
                {":sec:ret", "", "sec:ret"},
                {"me:secret", "me", "secret"},
                {"me:a b%40@/,c", "me", "a b%40@/,c"},
                {"", "", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lk_login login;
        assert_int_equal(setenv(NAME, rows[i].text, 1), 0);
        assert_null(lk_login_read(NAME, &login));
        assert_string_equal(login.user, rows[i].user);
        assert_string_equal(login.password, rows[i].password);
    }
}

TEST_THAT(without_the_variable_there_is_no_login)
{
    lk_login login;
    unsetenv(NAME);
    assert_null(lk_login_read(NAME, &login));
    assert_string_equal(login.password, "");
}

TEST_THAT(wrong_forms_are_told_and_give_no_login)
{
    char longest[LK_LOGIN_MAX + 1], too_long[LK_LOGIN_MAX + 2];
    memset(longest, 'p', LK_LOGIN_MAX);
    longest[LK_LOGIN_MAX] = '\0';
    memset(too_long, 'p', LK_LOGIN_MAX + 1);
    too_long[LK_LOGIN_MAX + 1] = '\0';
    const char *const rows[] = {"me:", ":", "hunter2\n", "hun\tter2", too_long};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lk_login login;
        assert_int_equal(setenv(NAME, rows[i], 1), 0);
        const char *wrong = lk_login_read(NAME, &login);
        assert_non_null(wrong);
        assert_null(strstr(wrong, "hun"));
        assert_string_equal(login.user, "");
        assert_string_equal(login.password, "");
    }
    lk_login login;
    assert_int_equal(setenv(NAME, longest, 1), 0);
    assert_null(lk_login_read(NAME, &login));
    assert_string_equal(login.password, longest);
}
