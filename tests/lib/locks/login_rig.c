#include "login_rig.h"

#include "tests.h"

#include <stdlib.h>
#include <string.h>

lk_client *login_client(const char *guard, const char *url, int command_ms)
{
    const lk_options options = {.command_timeout_ms = command_ms};
    lk_client *client;
    assert_int_equal(lk_open(guard, url, &options, &client, NULL), LK_OK);
    return client;
}

lk_status login_try(const char *guard, const char *url, int command_ms,
                    char message[LK_MESSAGE_MAX])
{
    lk_client *client = login_client(guard, url, command_ms);
    lk_hold hold;
    lk_status status = lk_try_acquire(client, LOGIN_KEY, &hold);
    lk_last_error(client, message, LK_MESSAGE_MAX);
    if (status == LK_OK)
        assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
    return status;
}

void login_says(const char *message, const char *words)
{
    if (strstr(message, words) == NULL)
        fail_msg("no \"%s\" in \"%s\"", words, message);
}

void login_has_wrong_form(const char *guard, const char *url, const char *variable,
                          const char *login, const char *right_form)
{
    lk_client *client;
    lk_error error = {.message = ""};
    assert_int_equal(setenv(variable, login, 1), 0);
    assert_int_equal(lk_open(guard, url, NULL, &client, &error), LK_INVALID);
    login_says(error.message, variable);
    login_says(error.message, right_form);
    assert_null(strstr(error.message, LOGIN_WRONG));
}
