/* Right histories hold, whatever became of what is unknown; and what is no history is refused. The
 * wrong ones are in test_check_wrong.c. */
#include "history_text.h"
#include "tests.h"
#include "wrong_histories.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN       "{\"event\":\"run\",\"format\":1,\"workload\":\"sale\",\"guard\":\"none\"}\n"
#define ITEM_LINE "{\"event\":\"resource\",\"resource\":\"item:a\",\"initial\":10}\n"
#define ASKED_LINE                                                                                 \
    "{\"event\":\"invoke\",\"at_us\":5,\"key\":\"k1\",\"path\":\"/v1/items/a/orders\","            \
    "\"body\":{\"quantity\":1}}\n"
#define ANSWERED_LINE(at)                                                                          \
    "{\"event\":\"complete\",\"at_us\":" #at                                                       \
    ",\"key\":\"k1\",\"end\":\"answered\",\"status\":409,"                                         \
    "\"body\":{\"type\":\"/problems/sold-out\"}}\n"

static void holds(const char *text, const char *audit)
{
    struct check_result results[HISTORY_CHECKERS_MAX];
    if (history_text_check(text, audit, results) == CHECK_HOLDS)
        return;
    for (size_t i = 0; i < n_checkers; i++)
        if (results[i].example[0] != '\0')
            print_error("%s: %s\n", checkers[i].name, results[i].example);
    fail_msg("accused: %s", text);
}

TEST_THAT(right_histories_hold)
{
    holds(ITEM "1-6 k1 buy 1 a: 9>8 v3 f8\n2-5 k2 buy 1 a: 10>9 v2 f7\n3-9 k3 read a: 9 v2",
          ITEM_AUDIT(8, 2));
    holds("item a 1 v1\n1-6 k1 buy 1 a: 1>0 v2\n2-8 k2 buy 1 a: sold-out",
          AUDIT(ROW("item:a", 1, 0, -1, 1)));
    /* Without versions, and without the first one. */
    holds("item a 10\n1-5 k1 buy 1 a: 10>9\n1-6 k2 buy 1 a: 9>8", NULL);
    holds("item a 10\n1-5 k1 buy 1 a: 10>9 v7\n1-6 k2 buy 1 a: 9>8 v8", NULL);
    /* Asked at the instant of an answer: either may be first. */
    holds(ITEM "1-5 k1 buy 1 a: 9>8 v3\n5-9 k2 buy 1 a: 10>9 v2", NULL);
    holds(LIMITED "1-5 k1 buy 2 a u1: 10>8 v2\n1-6 k2 buy 1 a u1: user-limit", NULL);
    holds(LIMITED "1-5 k1 buy 2 a u1: 10>8 v2\n6-7 k2 cancel o-k1: ok\n"
                  "8-9 k3 buy 2 a u1: 10>8 v4",
          NULL);
    holds(ITEM ACCOUNTS "1-5 k1 buy 1 a x: 10>9 v2 amount 300\n6-9 k2 pay o-k1: ok\n"
                        "10-12 k3 add -1 x: 700>699 v3",
          NULL);
    holds(ACCOUNTS "1-9 k1 move 300 x y: 1000>700 v2\n1-9 k2 move 1200 y x: 1300>100 v3\n"
                   "10-12 k3 read x: 1900 v3\n10-12 k4 move 200 y x: insufficient-funds",
          AUDIT(ROW("account:x", 1000, 1900, 900, 0) "," ROW("account:y", 1000, 100, -900, 0)));
    /* The credit may come between, before or after: a search, not a guess. */
    holds(ACCOUNTS "1-9 k1 add -100 x: 1000>900 v2\n1-9 k2 move 50 y x: 1000>950 v2\n"
                   "1-9 k3 add -100 x: 950>850 v4\n1-9 k4 move 70 y x: 950>880 v3\n"
                   "1-9 k5 add -100 x: 920>820 v6",
          NULL);
}

/* k1 may have been done or not, before or after the others. */
TEST_THAT(unknown_outcome_is_allowed_both_ways)
{
    static const char *const ends[] = {"1-5 k1 buy 1 a: lost", "1-? k1 buy 1 a"};
    char text[400];
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, ITEM "%s\n6-9 k2 buy 1 a: 10>9 v2", ends[i]);
        holds(text, ITEM_AUDIT(9, 1));
        holds(text, ITEM_AUDIT(8, 2));
        snprintf(text, sizeof text, ITEM "%s\n6-9 k2 buy 1 a: 9>8 v3", ends[i]);
        holds(text, ITEM_AUDIT(8, 2));
        snprintf(text, sizeof text, ITEM "%s\n6-9 k2 buy 1 a: 10>9 v2\n10-12 k3 read a: 8 v3",
                 ends[i]);
        holds(text, NULL);
    }
    static const char half[] = ACCOUNTS "1-5 k1 move 300 x y: lost\n6-9 k2 read x: 1000 v1";
    holds(half, AUDIT(ROW("account:x", 1000, 1000, 0, 0) "," ROW("account:y", 1000, 1000, 0, 0)));
    holds(half,
          AUDIT(ROW("account:x", 1000, 700, -300, 0) "," ROW("account:y", 1000, 1300, 300, 0)));
    /* 1 and 4, or 2 and 3, make 5: what comes later tells which. */
    static const char *const later[] = {"994>984", "991>981", "993>983", "992>982"};
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text,
                 ACCOUNTS "1-2 k1 add -1 x: lost\n1-2 k2 add -2 x: lost\n1-2 k3 add -3 x: lost\n"
                          "1-2 k4 add -4 x: lost\n3-4 k5 add 0 x: 995>995 v4\n"
                          "5-6 k6 add -10 x: %s v6",
                 later[i]);
        holds(text, NULL);
    }
    /* Of two unknown ones, one was done. */
    holds(ITEM "1-5 k1 buy 2 a: lost\n1-5 k2 buy 1 a: lost\n6-9 k3 buy 1 a: 8>7 v3", NULL);
}

TEST_THAT(same_answer_to_a_key_again_holds)
{
    holds(ITEM "1-5 k1 buy 1 a: 10>9 v2\n6-9 k1 buy 1 a: 10>9 v2", NULL);
    /* A first request that still runs decides nothing. */
    holds(ITEM "1-5 k1 buy 1 a: in-flight\n6-9 k1 buy 1 a: 10>9 v2", NULL);
    holds(ITEM "1-5 k1 buy 1 a: lost\n6-9 k1 buy 1 a: 10>9 v2", NULL);
}

static int read_users(const char *one, const char *two, struct history *ret, char message[512])
{
    static const char *const line = "{\"event\":\"invoke\",\"at_us\":5,\"key\":\"%s\",\"path\":"
                                    "\"/v1/items/a/orders\",\"body\":{\"user_id\":\"%s\"}}\n";
    char path[] = "/tmp/test-check-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    dprintf(fd, RUN ITEM_LINE);
    dprintf(fd, line, "k1", one);
    dprintf(fd, line, "k2", two);
    close(fd);
    int failed = history_read(path, ret, message, 512);
    unlink(path);
    return failed;
}

/* A name is never cut: two users would become one, with one limit. */
TEST_THAT(long_names_are_told_apart)
{
    char one[1001], two[1001], message[512];
    struct history history;
    memset(one, 'u', sizeof one);
    memset(two, 'u', sizeof two);
    one[350] = two[350] = '\0';
    two[349] = 'v';
    assert_int_equal(read_users(one, two, &history, message), 0);
    assert_string_equal(history.ops[0].user, one);
    assert_string_equal(history.ops[1].user, two);
    history_free(&history);
    two[350] = 'u';
    two[1000] = '\0';
    assert_int_equal(read_users(one, two, &history, message), -1);
    assert_non_null(strstr(message, "line 4"));
    assert_non_null(strstr(message, "an id is longer than the service allows"));
}

TEST_THAT(nonsense_is_refused_with_its_line)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "no invocation"},
        {RUN, "no invocation"},
        {RUN "x\n", "line 2"},
        {"[]\n", "line 1"},
        {RUN ITEM_LINE "{\"event\":\"perhaps\"}\n", "line 3"},
        {"{\"event\":\"run\",\"format\":2}\n", "format"},
        {RUN ANSWERED_LINE(9), "without its invocation"},
        {RUN ASKED_LINE ANSWERED_LINE(4), "an answer before its request"},
        {RUN ITEM_LINE ITEM_LINE, "began before"},
        {RUN "{\"event\":\"invoke\",\"at_us\":1}\n", "no key"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char path[] = "/tmp/test-check-XXXXXX", message[512] = "";
        struct history history;
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, wrong[i].text, strlen(wrong[i].text)), strlen(wrong[i].text));
        close(fd);
        assert_int_equal(history_read(path, &history, message, sizeof message), -1);
        unlink(path);
        if (strstr(message, wrong[i].says) == NULL || strstr(message, "line 0") != NULL)
            fail_msg("'%s' is refused with '%s'", wrong[i].text, message);
    }
    struct history history;
    char message[512];
    assert_int_equal(history_read("/nonexistent", &history, message, sizeof message), -1);
    assert_int_equal(history_read("/tmp", &history, message, sizeof message), -1);
    assert_string_equal(message, "cannot be read: Is a directory");
}

/* Its writer was killed in the middle of a line. */
TEST_THAT(torn_last_line_is_left_out_and_told)
{
    static const char whole[] = RUN ITEM_LINE ASKED_LINE;
    char path[] = "/tmp/test-check-XXXXXX", message[512];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    size_t answered = sizeof whole - 1 + strlen(ANSWERED_LINE(9));
    /* Cut anywhere behind the first invocation. The last end of line may be missing, too. */
    for (size_t cut = sizeof whole - 1; cut <= answered; cut++) {
        struct history history;
        FILE *out = fopen(path, "we");
        assert_non_null(out);
        fwrite(RUN ITEM_LINE ASKED_LINE ANSWERED_LINE(9), 1, cut, out);
        fclose(out);
        if (history_read(path, &history, message, sizeof message) != 0)
            fail_msg("cut at %zu: %s", cut, message);
        bool torn = cut > sizeof whole - 1 && cut < answered - 1;
        assert_int_equal(history.torn_line, torn ? 4 : 0);
        assert_int_equal(history.ops[0].state,
                         cut >= answered - 1 ? HISTORY_REFUSED : HISTORY_UNKNOWN);
        history_free(&history);
    }
    unlink(path);
}
