/* Every wrong history is found, by the checker that is for it, and is told so that a person can
 * read it. */
#include "history_text.h"
#include "tests.h"
#include "wrong_histories.h"
#include <stdio.h>
#include <string.h>

/* All names, which blanks part, are among those that found it. */
static bool are_among(const char *names, const char *found)
{
    char all[200], wanted[40];
    snprintf(all, sizeof all, " %s ", found);
    for (int n; sscanf(names, "%30s%n", wanted + 1, &n) == 1; names += n) {
        wanted[0] = ' ';
        strcat(wanted, " ");
        if (strstr(all, wanted) == NULL)
            return false;
    }
    return true;
}

TEST_THAT(every_wrong_history_is_found)
{
    struct check_result results[HISTORY_CHECKERS_MAX];
    int missed = 0;
    for (int i = 0; i < N_WRONG_HISTORIES; i++) {
        const struct wrong_history *wrong = &wrong_histories[i];
        enum check_verdict verdict = history_text_check(wrong->text, wrong->audit, results);
        const char *found = history_text_finders(results);
        if (verdict == CHECK_BROKEN && are_among(wrong->found_by, found))
            continue;
        print_error("%s: %s, found by '%s', should be by '%s'\n%s\n", wrong->name,
                    check_verdict_text(verdict), found, wrong->found_by, wrong->text);
        missed++;
    }
    print_message("%d wrong histories, %d missed\n", N_WRONG_HISTORIES, missed);
    assert_true(N_WRONG_HISTORIES >= 40);
    assert_int_equal(missed, 0);
}

/* With an audit that fits it, or without one: what the history alone shows is found either way. */
TEST_THAT(what_the_history_shows_needs_no_audit)
{
    struct check_result results[HISTORY_CHECKERS_MAX];
    int with_audit = 0;
    for (int i = 0; i < N_WRONG_HISTORIES; i++) {
        const struct wrong_history *wrong = &wrong_histories[i];
        bool by_history =
            strcmp(wrong->found_by, "order") == 0 || strcmp(wrong->found_by, "fence") == 0;
        if (wrong->audit == NULL || !by_history)
            continue;
        with_audit++;
        if (history_text_check(wrong->text, NULL, results) != CHECK_BROKEN)
            fail_msg("%s: not found without its audit", wrong->name);
    }
    assert_true(with_audit >= 6);
}

/* What a read has seen is there at the end, too, though the sums allow both. */
TEST_THAT(audit_is_a_read_after_all_others)
{
    struct check_result results[HISTORY_CHECKERS_MAX];
    static const char text[] = ITEM "1-5 k1 buy 1 a: lost\n6-9 k2 read a: 9 v2";
    assert_int_equal(history_text_check(text, ITEM_AUDIT(9, 1), results), CHECK_HOLDS);
    assert_int_equal(history_text_check(text, ITEM_AUDIT(10, 0), results), CHECK_BROKEN);
    assert_string_equal(history_text_finders(results), "order");
}

TEST_THAT(contradiction_is_told_with_its_operations_and_no_others)
{
    struct check_result results[HISTORY_CHECKERS_MAX];
    static const char text[] = "item a 10 v1\n"
                               "1000-2000 first buy 1 a: 10>9 v2\n"
                               "3000-4000 second buy 1 a: 9>8 v3\n"
                               "5000-6000 third buy 1 a: 8>7 v4\n"
                               "7000-8000 reader read a: 8 v3\n"
                               "9000-9500 fourth buy 1 a: 7>6 v5\n";
    assert_int_equal(history_text_check(text, NULL, results), CHECK_BROKEN);
    assert_string_equal(checkers[0].name, "order");
    const char *told = results[0].example;
    static const char *const says[] = {
        "item:a began with stock 10, version 1; 2 answers cannot be right together",
        "third  asked 4.000 ms, answered 5.000 ms: changed by -1, stock 8 -> 7, version 4",
        "reader  asked 6.000 ms, answered 7.000 ms: read stock 8, version 3"};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (strstr(told, says[i]) == NULL)
            fail_msg("it does not say '%s': %s", says[i], told);
    assert_null(strstr(told, "first"));
    assert_null(strstr(told, "second"));
    assert_null(strstr(told, "fourth"));
}

TEST_THAT(nothing_checked_is_not_holds)
{
    struct check_result results[HISTORY_CHECKERS_MAX];
    assert_int_equal(history_text_check("item a 10 v1\n1-5 k1 buy 1 a: unsent", NULL, results),
                     CHECK_NOTHING);
    /* An outcome that is not known fits everything. */
    assert_int_equal(history_text_check("item a 10 v1\n1-5 k1 buy 1 a: lost", NULL, results),
                     CHECK_NOTHING);
}

TEST_THAT(number_whose_beginning_is_not_told_is_not_decided)
{
    struct check_result results[HISTORY_CHECKERS_MAX];
    assert_int_equal(history_text_check("item b 10 v1\n1-5 k1 buy 1 a: 10>9 v2", NULL, results),
                     CHECK_UNDECIDED);
    assert_non_null(strstr(results[0].example, "does not say how it began"));
    /* Of a transfer, both accounts. */
    assert_int_equal(
        history_text_check("account x 1000 v1\n1-5 k1 move 300 x y: 1000>700 v2", NULL, results),
        CHECK_UNDECIDED);
    assert_non_null(strstr(results[0].example, "account:y: not decided"));
}
