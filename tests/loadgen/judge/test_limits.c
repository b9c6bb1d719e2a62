/* Numbers at the limits of 64 bits, from a history, an audit or a report: no judge is taken in by a
 * sum that wrapped. */
#include "check.h"
#include "tests.h"
#include "text.h"
#include "threshold.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST  "9223372036854775807"
#define LEAST "-9223372036854775808"
#define RESOURCE(name, initial)                                                                    \
    "{\"event\":\"resource\",\"resource\":\"" name "\",\"initial\":" initial "}\n"
#define ASKED(at, key, path, body)                                                                 \
    "{\"event\":\"invoke\",\"at_us\":" at ",\"key\":\"" key "\",\"path\":\"/v1/" path              \
    "\",\"body\":{" body "}}\n"
#define CHANGE(at, key, amount) ASKED(at, key, "accounts/x/transactions", "\"amount\":" amount)
#define ANSWERED(at, key, status, body)                                                            \
    "{\"event\":\"complete\",\"at_us\":" at ",\"key\":\"" key                                      \
    "\",\"end\":\"answered\",\"status\":" status ",\"body\":{" body "}}\n"
#define CHANGED(at, key, before, after, version)                                                   \
    ANSWERED(at, key, "201",                                                                       \
             "\"balance_before\":" before ",\"balance_after\":" after ",\"version\":" version)
#define ORDERED(at, key, before, after, version)                                                   \
    ANSWERED(at, key, "201",                                                                       \
             "\"stock_before\":" before ",\"stock_after\":" after ",\"version\":" version)

static int read_text(const char *text, struct history *ret, char *message, size_t size)
{
    char path[] = "/tmp/test-limits-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    int result = history_read(path, ret, message, size);
    unlink(path);
    return result;
}

static bool finds(const char *checker, const char *text, const struct check_audit *audit)
{
    struct history history;
    struct check_result found = {0};
    char message[512];
    if (read_text(text, &history, message, sizeof message) != 0)
        fail_msg("%s", message);
    for (size_t i = 0; i < n_checkers; i++) {
        struct check_result result = {0};
        checkers[i].check(&history, audit, &result);
        if (strcmp(checkers[i].name, checker) == 0)
            found = result;
    }
    history_free(&history);
    return found.breaches > 0;
}

TEST_THAT(balance_that_wrapped_is_found)
{
    struct audit_row row = {.resource = "account:x", .initial = INT64_MAX, .current = INT64_MIN};
    const struct check_audit audit = {.rows = &row, .n_rows = 1};
    static const char one[] = RESOURCE("account:x", MOST) CHANGE("1", "k1", "1");
    assert_true(finds("bank", one, &audit));
    /* Answered, too, with a before and an after that fit by themselves. */
    static const char two[] =
        RESOURCE("account:x", MOST) CHANGE("1", "k1", "1") CHANGED("2", "k1", "1", "2", "2");
    assert_true(finds("bank", two, &audit));
}

TEST_THAT(stock_that_wrapped_is_found)
{
    struct audit_row row = {
        .resource = "item:a", .initial = INT64_MIN, .current = INT64_MAX, .sold = 1};
    const struct check_audit audit = {.rows = &row, .n_rows = 1};
    assert_true(finds("stock",
                      RESOURCE("item:a", "5") ASKED("1", "k1", "items/a/orders", "\"quantity\":1"),
                      &audit));
    /* Twice the most of pieces: -2 of 5 when wrapped. */
    static const char sold[] =
        RESOURCE("item:a", "5") ASKED("1", "k1", "items/a/orders", "\"quantity\":" MOST)
            ASKED("1", "k2", "items/a/orders", "\"quantity\":" MOST)
                ORDERED("2", "k1", MOST, "0", "2") ORDERED("2", "k2", MOST, "0", "3");
    assert_true(finds("stock", sold, NULL));
}

TEST_THAT(numbers_at_the_limits_are_read_and_compared)
{
    /* Versions and times whose differences do not fit. */
    static const char far_apart[] =
        RESOURCE("account:x", "0") CHANGE(LEAST, "k1", "1") CHANGE("1", "k2", LEAST)
            CHANGED(MOST, "k1", "0", "1", LEAST) CHANGED(MOST, "k2", "-1", MOST, MOST)
                CHANGE("1", "k3", "1") CHANGED("2", "k3", MOST, LEAST, LEAST);
    assert_true(finds("order", far_apart, NULL));
    assert_true(finds("bank", far_apart, NULL));
}

TEST_THAT(number_that_cannot_be_meant_is_refused)
{
    struct history history;
    char message[512];
    assert_int_equal(
        read_text(ASKED("1", "k1", "transfers", "\"from\":\"x\",\"to\":\"y\",\"amount\":" LEAST),
                  &history, message, sizeof message),
        -1);
    assert_non_null(strstr(message, "line 1"));
    /* 2^32 + 201 is no 201. */
    assert_int_equal(read_text(CHANGE("1", "k1", "1") ANSWERED("2", "k1", "4294967497", ""),
                               &history, message, sizeof message),
                     0);
    assert_int_equal(history.ops[0].state, HISTORY_UNKNOWN);
    history_free(&history);
}

/* An audit's figures, whatever a service says. */
TEST_THAT(verdict_of_figures_that_do_not_fit_is_not_ok)
{
    static const int64_t edges[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    enum { EDGES = sizeof edges / sizeof *edges };
    for (int i = 0; i < EDGES * EDGES * EDGES; i++) {
        int64_t a = edges[i % EDGES], b = edges[i / EDGES % EDGES], c = edges[i / EDGES / EDGES];
        const struct audit_row row = {.initial = c, .current = a, .sold = a, .ledger_sum = a};
        const struct client_count client = {.accepted = b, .demand = c};
        struct verdict item, account, sum = {.mismatch = INT64_MAX};
        verdict_of_item(&row, &client, &item);
        verdict_of_account(&row, &client, &account);
        assert_int_equal(item.mismatch > 0, a != b);
        assert_int_equal(account.mismatch > 0, a != b);
        assert_int_equal(item.undersold > 0, c > a);
        verdict_add(&sum, &item);
        assert_int_equal(sum.mismatch, INT64_MAX);
    }
}

TEST_THAT(figure_beyond_64_bits_is_shown_as_the_most)
{
    char text[TEXT_MAX], value[80], message[200];
    struct threshold threshold;
    static const struct {
        double value;
        const char *text;
    } figures[] = {{1e300, "9,223,372,036,854,775,807"},
                   {0x1p63, "9,223,372,036,854,775,807"},
                   {12345, "12,345"}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        assert_string_equal(text_rate(text, figures[i].value), figures[i].text);
    assert_int_equal(threshold_parse("errors<1", &threshold, message, sizeof message), 0);
    assert_string_equal(threshold_value_text(&threshold, 1e300, value, sizeof value),
                        "9,223,372,036,854,775,807");
    assert_int_equal(threshold_parse("p(99)<1", &threshold, message, sizeof message), 0);
    assert_string_equal(threshold_value_text(&threshold, 1e300, value, sizeof value),
                        "9223372036854.78 s");
}
