/* What belongs to a caller: orders, accounts and keys. Neither tells one buyer of another. */
#include "callers.h"
#include "program.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct sandbox_server *closed, *open_too;

static int open_services(void **state)
{
    (void)state;
    callers_open();
    closed = callers_service("closed", (const char *const[]){"--tokens", callers_file, NULL});
    open_too = callers_service("open-too",
                               (const char *const[]){"--tokens", callers_file, "--open", NULL});
    callers_fill(closed, OPERATOR);
    return 0;
}

static int close_services(void **state)
{
    (void)state;
    const bool clean = shop_stop(closed) && shop_stop(open_too);
    callers_close();
    return clean ? 0 : -1;
}

/* -- one's own --------------------------------------------------------------------------------- */

static void same_text(enum who who, const char *method, const char *format, const char *order)
{
    char path[CALLERS_TEXT], key[CALLERS_KEY], detail[CALLERS_TEXT], wanted[CALLERS_TEXT];
    snprintf(path, sizeof path, format, order);
    callers_new_key(key);
    struct raw_reply reply = callers_ask(closed, who, method, path, key, NULL);
    assert_int_equal(reply.status, 404);
    callers_text(&reply, "detail", detail);
    snprintf(wanted, sizeof wanted, "order %.100s does not exist", order);
    assert_string_equal(detail, wanted);
    raw_free(&reply);
}

GROUP_FIXTURE(open_services, close_services);

TEST_THAT(another_order_is_answered_like_one_that_does_not_exist)
{
    char order[CALLERS_TEXT];
    callers_new_order(closed, ANN, order);
    const char *const of[] = {order, "nothing"};
    for (size_t i = 0; i < 2; i++) {
        same_text(BOB, "GET", "/v1/orders/%.100s", of[i]);
        same_text(BOB, "POST", "/v1/orders/%.100s/payment", of[i]);
        same_text(BOB, "POST", "/v1/orders/%.100s/cancellation", of[i]);
    }
}

TEST_THAT(an_order_is_for_the_user_of_the_token)
{
    static const char *const bodies[] = {"", "{}", "{\"quantity\":1}", "{\"user_id\":\"bob\"}"};
    for (size_t i = 0; i < 4; i++) {
        char key[CALLERS_KEY], user[CALLERS_TEXT];
        callers_new_key(key);
        struct raw_reply reply =
            callers_ask(closed, BOB, "POST", "/v1/items/i1/orders", key, bodies[i]);
        assert_int_equal(reply.status, 201);
        callers_text(&reply, "user_id", user);
        assert_string_equal(user, "bob");
        raw_free(&reply);
        /* the user may be said or not: it is the same request */
        assert_int_equal(
            callers_status(closed, BOB, "POST", "/v1/items/i1/orders", key, bodies[3 - i]), 201);
    }
    assert_int_equal(
        callers_status(closed, OPERATOR, "POST", "/v1/items/i1/orders", "no-user", "{}"), 400);
}

TEST_THAT(a_list_of_orders_has_only_those_of_the_user)
{
    char order[CALLERS_TEXT];
    callers_new_order(closed, ANN, order);
    struct raw_reply anns = callers_ask(closed, ANN, "GET", "/v1/orders", NULL, NULL);
    struct raw_reply bobs = callers_ask(closed, BOB, "GET", "/v1/orders", NULL, NULL);
    assert_int_equal(anns.status, 200);
    assert_int_equal(bobs.status, 200);
    assert_non_null(strstr(anns.body, order));
    assert_null(strstr(bobs.body, order));
    assert_null(strstr(bobs.body, "\"ann\""));
    raw_free(&anns);
    raw_free(&bobs);
    assert_int_equal(callers_status(closed, BOB, "GET", "/v1/orders?user=ann", NULL, NULL), 403);
    assert_int_equal(callers_status(closed, OPERATOR, "GET", "/v1/orders?user=ann", NULL, NULL),
                     200);
}

/* -- keys -------------------------------------------------------------------------------------- */

/* Another request under a key that others have used: none of them learns of the others. */
TEST_THAT(a_key_belongs_to_its_caller)
{
    static const enum who callers[] = {ANN, BOB, OPERATOR};
    static const char *const bodies[] = {"{\"quantity\":1}", "{\"quantity\":2}",
                                         "{\"user_id\":\"cara\",\"quantity\":3}"};
    static const char *const users[] = {"ann", "bob", "cara"};
    char replayed[CALLERS_TEXT], user[CALLERS_TEXT];
    for (size_t i = 0; i < 3; i++) {
        struct raw_reply reply =
            callers_ask(closed, callers[i], "GET", "/v1/transactions/same", NULL, NULL);
        assert_int_equal(reply.status, 404);
        raw_free(&reply);
        reply = callers_ask(closed, callers[i], "POST", "/v1/items/i1/orders", "same", bodies[i]);
        assert_int_equal(reply.status, 201);
        assert_string_equal(raw_header(&reply, "Idempotent-Replayed", replayed, sizeof replayed),
                            "");
        raw_free(&reply);
    }
    for (size_t i = 0; i < 3; i++) {
        struct raw_reply reply =
            callers_ask(closed, callers[i], "GET", "/v1/transactions/same", NULL, NULL);
        assert_int_equal(reply.status, 200);
        callers_text(&reply, "user_id", user);
        assert_string_equal(user, users[i]);
        raw_free(&reply);
        reply = callers_ask(closed, callers[i], "POST", "/v1/items/i1/orders", "same", bodies[i]);
        assert_string_equal(raw_header(&reply, "Idempotent-Replayed", replayed, sizeof replayed),
                            "true");
        raw_free(&reply);
    }
}

/* A key with the name and the tab of another caller cannot be sent. */
TEST_THAT(no_key_has_a_tab)
{
    assert_int_equal(callers_status(closed, OPERATOR, "POST", "/v1/items/i1/orders", "ann\tsame",
                                    "{\"user_id\":\"ann\"}"),
                     400);
    assert_int_equal(
        callers_status(open_too, NONE, "GET", "/v1/transactions/ann%09key-of-ann", NULL, NULL),
        400);
}

/* -- seckilld token ---------------------------------------------------------------------------- */

static int token_command(const char *const *words, const char *output)
{
    const char *argv[8] = {shop_binary("seckilld"), "token"};
    char messages[CALLERS_TEXT];
    int status;
    for (size_t n = 2; *words != NULL; n++)
        argv[n] = *words++;
    snprintf(messages, sizeof messages, "%s/messages", sandbox_dir(callers_sandbox));
    assert_true(program_ends(program_start(argv, output, messages), SHOP_WAIT_MS, &status));
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST_THAT(the_command_refuses_what_the_file_would)
{
    static const char *const bad[][4] = {{NULL},
                                         {"buyer", NULL},
                                         {"admin", "ann", NULL},
                                         {"buyer", "a b", NULL},
                                         {"operator", "task", NULL},
                                         {"buyer", "ann", "more", NULL}};
    char output[CALLERS_TEXT];
    struct stat made;
    snprintf(output, sizeof output, "%s/output", sandbox_dir(callers_sandbox));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(token_command(bad[i], output), 2);
        assert_int_equal(stat(output, &made), 0);
        assert_int_equal(made.st_size, 0);
    }
    assert_int_equal(token_command((const char *const[]){"buyer", "ann", NULL}, output), 0);
    assert_int_equal(token_command((const char *const[]){"buyer", "ann", NULL}, "/dev/full"), 1);
}
