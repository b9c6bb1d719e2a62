/* Each checker finds the violation that was planted for it, and only that one. */
#include "../../loadgen/check.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN  "{\"event\":\"run\",\"format\":1,\"workload\":\"sale\",\"guard\":\"none\"}\n"
#define ITEM "{\"event\":\"resource\",\"resource\":\"item:a\",\"initial\":10}\n"
#define ACCOUNTS                                                                                   \
    "{\"event\":\"resource\",\"resource\":\"account:x\",\"initial\":1000}\n"                       \
    "{\"event\":\"resource\",\"resource\":\"account:y\",\"initial\":1000}\n"
#define ASKED(at, key, path, body)                                                                 \
    "{\"event\":\"invoke\",\"at_us\":" #at ",\"key\":\"" key "\",\"path\":\"" path                 \
    "\",\"body\":{" body "}}\n"
#define ASKED_ORDER(at, key) ASKED(at, key, "/v1/items/a/orders", "\"quantity\":1")
#define ASKED_CHANGE(at, key, amount)                                                              \
    ASKED(at, key, "/v1/accounts/x/transactions", "\"amount\":" #amount)
#define ANSWERED(at, key, status, body)                                                            \
    "{\"event\":\"complete\",\"at_us\":" #at ",\"key\":\"" key                                     \
    "\",\"end\":\"answered\",\"status\":" #status ",\"body\":{" body "}}\n"
#define ORDERED(at, key, id, before, after, version, fence)                                        \
    ANSWERED(at, key, 201,                                                                         \
             "\"order_id\":\"" id "\",\"stock_before\":" #before ",\"stock_after\":" #after        \
             ",\"version\":" #version ",\"fence\":" #fence)
#define CHANGED(at, key, before, after, version)                                                   \
    ANSWERED(at, key, 201,                                                                         \
             "\"balance_before\":" #before ",\"balance_after\":" #after ",\"version\":" #version)
#define LOST(at, key)                                                                              \
    "{\"event\":\"complete\",\"at_us\":" #at ",\"key\":\"" key "\",\"end\":\"broken\"}\n"

static void read_text(const char *text, struct history *ret)
{
    char path[] = "/tmp/test-check-XXXXXX", message[512];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    if (history_read(path, ret, message, sizeof message) != 0)
        fail_msg("%s", message);
    unlink(path);
}

/* "set lock": the names of those that found a breach. */
static void expect(const char *text, const struct check_audit *audit, const char *wanted)
{
    struct history history;
    char found[200] = "", examples[4096] = "";
    read_text(text, &history);
    for (size_t i = 0; i < n_checkers; i++) {
        struct check_result result = {0};
        checkers[i].check(&history, audit, &result);
        if (result.breaches == 0)
            continue;
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s",
                 found[0] == '\0' ? "" : " ", checkers[i].name);
        snprintf(examples + strlen(examples), sizeof examples - strlen(examples), "%s\n",
                 result.example);
        assert_true(strlen(result.example) > 10);
    }
    history_free(&history);
    if (strcmp(found, wanted) != 0)
        fail_msg("found by '%s', should be '%s':\n%s", found, wanted, examples);
}

static struct check_audit item_audit(struct audit_row *row, int64_t sold, int64_t current)
{
    *row =
        (struct audit_row){.resource = "item:a", .initial = 10, .current = current, .sold = sold};
    return (struct check_audit){.rows = row, .n_rows = 1};
}

static void clean_sale_holds(void **state)
{
    (void)state;
    struct audit_row row;
    struct check_audit audit = item_audit(&row, 2, 8);
    static const char sale[] = RUN ITEM ASKED_ORDER(1, "k1") ASKED_ORDER(2, "k2")
        ORDERED(5, "k2", "o2", 10, 9, 2, 7) ORDERED(6, "k1", "o1", 9, 8, 3, 8) ASKED_ORDER(7, "k3")
            ANSWERED(8, "k3", 409, "\"type\":\"/problems/sold-out\"");
    expect(sale, &audit, "");
    expect(sale, NULL, "");
}

static void two_changes_of_one_version_are_found_by_set(void **state)
{
    (void)state;
    expect(RUN ITEM ASKED_ORDER(1, "k1") ASKED_ORDER(2, "k2") ORDERED(5, "k1", "o1", 10, 9, 2, 0)
               ORDERED(6, "k2", "o2", 10, 9, 2, 0),
           NULL, "set");
    expect(RUN ITEM ASKED_ORDER(1, "k1") ASKED_ORDER(2, "k2") ORDERED(5, "k1", "o1", 10, 9, 2, 0)
               ORDERED(6, "k2", "o1", 9, 8, 3, 0),
           NULL, "set");
}

static void sold_beyond_the_stock_or_the_store_is_found_by_stock(void **state)
{
    (void)state;
    struct audit_row row;
    static const char one[] = RUN ITEM ASKED_ORDER(1, "k1") ORDERED(5, "k1", "o1", 10, 9, 2, 0);
    struct check_audit audit = item_audit(&row, 0, 10);
    expect(one, &audit, "stock"); /* acknowledged and not stored */
    audit = item_audit(&row, 1, 10);
    expect(one, &audit, "stock"); /* stored and not taken off */
    audit = item_audit(&row, 2, 8);
    expect(one, &audit, "stock"); /* stored twice */
    expect(RUN ITEM ASKED(1, "k1", "/v1/items/a/orders", "\"quantity\":11")
               ORDERED(5, "k1", "o1", 10, -1, 2, 0),
           NULL, "stock");
}

static void unknown_outcome_is_allowed_both_ways(void **state)
{
    (void)state;
    struct audit_row row;
    static const char broken[] = RUN ITEM ASKED_ORDER(1, "k1") LOST(5, "k1");
    static const char killed[] = RUN ITEM ASKED_ORDER(1, "k1");
    for (int64_t sold = 0; sold <= 1; sold++) {
        struct check_audit audit = item_audit(&row, sold, 10 - sold);
        expect(broken, &audit, "");
        expect(killed, &audit, "");
    }
    struct check_audit audit = item_audit(&row, 2, 8);
    expect(broken, &audit, "stock");
    audit = item_audit(&row, 1, 9);
    expect(
        RUN ITEM ASKED_ORDER(
            1, "k1") "{\"event\":\"complete\",\"at_us\":2,\"key\":\"k1\",\"end\":\"not-sent\"}\n",
        &audit, "stock");
}

static void money_that_does_not_add_up_is_found_by_bank(void **state)
{
    (void)state;
    struct audit_row rows[2] = {{.resource = "account:x", .initial = 1000, .current = 500},
                                {.resource = "account:y", .initial = 1000, .current = 1000}};
    struct check_audit audit = {.rows = rows, .n_rows = 2};
    static const char two[] = RUN ACCOUNTS ASKED_CHANGE(1, "k1", -200) ASKED_CHANGE(2, "k2", -300)
        CHANGED(5, "k1", 1000, 800, 2) CHANGED(6, "k2", 800, 500, 3);
    expect(two, &audit, "");
    rows[0].current = 700;
    expect(two, &audit, "bank");
    expect(RUN ACCOUNTS ASKED_CHANGE(1, "k1", -200) CHANGED(5, "k1", 1000, 900, 2), NULL, "bank");
    expect(RUN ACCOUNTS ASKED_CHANGE(1, "k1", -2000) CHANGED(5, "k1", 1000, -1000, 2), NULL,
           "bank");
    static const char transfer[] =
        RUN ACCOUNTS ASKED(1, "k1", "/v1/transfers", "\"from\":\"x\",\"to\":\"y\",\"amount\":300")
            CHANGED(5, "k1", 1000, 700, 2);
    rows[0].current = 700, rows[1].current = 1300;
    expect(transfer, &audit, "");
    rows[1].current = 1000;
    expect(transfer, &audit, "bank");
}

/* It may have been made or not; half of it was not to be. */
static void half_a_transfer_whose_answer_was_lost_is_found_by_bank(void **state)
{
    (void)state;
    struct audit_row rows[2] = {{.resource = "account:x", .initial = 1000, .current = 1000},
                                {.resource = "account:y", .initial = 1000, .current = 1000}};
    struct check_audit audit = {.rows = rows, .n_rows = 2};
    static const char transfer[] =
        RUN ACCOUNTS ASKED(1, "k1", "/v1/transfers", "\"from\":\"x\",\"to\":\"y\",\"amount\":300")
            LOST(5, "k1");
    expect(transfer, &audit, "");
    rows[0].current = 700, rows[1].current = 1300;
    expect(transfer, &audit, "");
    rows[1].current = 1000;
    expect(transfer, &audit, "bank");
    audit.n_rows = 1; /* nobody has looked where it went */
    expect(transfer, &audit, "bank");
}

static void audit_that_knows_nothing_of_the_run_is_found(void **state)
{
    (void)state;
    const struct check_audit empty = {0};
    expect(RUN ITEM ASKED_ORDER(1, "k1") ORDERED(5, "k1", "o1", 10, 9, 2, 0), &empty, "stock");
    expect(RUN ACCOUNTS ASKED_CHANGE(1, "k1", -200) CHANGED(5, "k1", 1000, 800, 2), &empty, "bank");
}

static void changes_that_overlap_are_found_by_lock(void **state)
{
    (void)state;
    /* read what was no longer there */
    expect(RUN ACCOUNTS ASKED_CHANGE(1, "k1", -200) ASKED_CHANGE(2, "k2", -300)
               CHANGED(5, "k1", 1000, 800, 2) CHANGED(6, "k2", 1000, 700, 3),
           NULL, "lock");
    /* an older fence after a newer one */
    expect(RUN ITEM ASKED_ORDER(1, "k1") ASKED_ORDER(2, "k2") ORDERED(5, "k1", "o1", 10, 9, 2, 8)
               ORDERED(6, "k2", "o2", 9, 8, 3, 7),
           NULL, "lock");
    /* answered before the other was asked for, and yet second */
    expect(RUN ITEM ASKED_ORDER(1, "k1") ORDERED(5, "k1", "o1", 9, 8, 3, 0) ASKED_ORDER(6, "k2")
               ORDERED(9, "k2", "o2", 10, 9, 2, 0),
           NULL, "lock");
    /* the same, at the same time: either order may be */
    expect(RUN ITEM ASKED_ORDER(1, "k1") ASKED_ORDER(4, "k2") ORDERED(5, "k1", "o1", 9, 8, 3, 0)
               ORDERED(9, "k2", "o2", 10, 9, 2, 0),
           NULL, "");
}

static void answers_that_differ_are_found_by_idempotence(void **state)
{
    (void)state;
    static const char same[] = RUN ITEM ASKED_ORDER(1, "k1") ORDERED(5, "k1", "o1", 10, 9, 2, 0)
        ASKED_ORDER(6, "k1") ORDERED(7, "k1", "o1", 10, 9, 2, 0);
    expect(same, NULL, "");
    expect(RUN ITEM ASKED_ORDER(1, "k1") ORDERED(5, "k1", "o1", 10, 9, 2, 0) ASKED_ORDER(6, "k1")
               ORDERED(7, "k1", "o2", 9, 8, 3, 0),
           NULL, "idempotence");
    /* 503 and a first request that still runs decide nothing */
    expect(RUN ITEM ASKED_ORDER(1, "k1")
               ANSWERED(2, "k1", 503, "\"type\":\"/problems/unavailable\",\"title\":\"\"")
                   ASKED_ORDER(3, "k1")
                       ANSWERED(4, "k1", 409, "\"type\":\"/problems/in-flight\",\"title\":\"\"")
                           ASKED_ORDER(5, "k1") ORDERED(7, "k1", "o1", 10, 9, 2, 0),
           NULL, "");
}

static void nonsense_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "no invocation"},
        {RUN, "no invocation"},
        {RUN "x\n", "line 2"},
        {"[]\n", "line 1"},
        {RUN ITEM "{\"event\":\"perhaps\"}\n", "line 3"},
        {"{\"event\":\"run\",\"format\":2}\n", "format"},
        {RUN LOST(1, "k9"), "without its invocation"},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_sale_holds),
        cmocka_unit_test(two_changes_of_one_version_are_found_by_set),
        cmocka_unit_test(sold_beyond_the_stock_or_the_store_is_found_by_stock),
        cmocka_unit_test(unknown_outcome_is_allowed_both_ways),
        cmocka_unit_test(money_that_does_not_add_up_is_found_by_bank),
        cmocka_unit_test(half_a_transfer_whose_answer_was_lost_is_found_by_bank),
        cmocka_unit_test(audit_that_knows_nothing_of_the_run_is_found),
        cmocka_unit_test(changes_that_overlap_are_found_by_lock),
        cmocka_unit_test(answers_that_differ_are_found_by_idempotence),
        cmocka_unit_test(nonsense_is_refused_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
