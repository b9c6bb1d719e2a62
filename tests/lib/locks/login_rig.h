/* What the tests of logins share. A login stands in a variable of the environment. A refusal names
 * the server and that variable, and never the password. */
#ifndef TEST_LOGIN_RIG_H
#define TEST_LOGIN_RIG_H

#include "lockkit.h"

#define LOGIN_KEY   "lock:item:1"
#define LOGIN_WRONG "hunter2" /* a password that no server has */

/* A client that gives a command so long. The test fails if it cannot be opened. */
lk_client *login_client(const char *guard, const char *url, int command_ms);

/* One attempt to take and release LOGIN_KEY, with the environment as it is. message gets what the
 * client says of it. */
lk_status login_try(const char *guard, const char *url, int command_ms,
                    char message[LK_MESSAGE_MAX]);

/* The test fails if the message does not have these words. */
void login_says(const char *message, const char *words);

/* The test fails unless lk_open() refuses this login, with the variable and the right form in its
 * message, and without LOGIN_WRONG. The variable keeps the login. */
void login_has_wrong_form(const char *guard, const char *url, const char *variable,
                          const char *login, const char *right_form);

#endif
