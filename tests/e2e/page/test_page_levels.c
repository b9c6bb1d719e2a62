/* The levels of step mode in a real browser: moves are counted, taken back, and made otherwise from
 * an earlier one on; a loss is said when the ledger shows it. */
#include "steps_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static struct browser *const browser = &page.browser;

/* The moves so far, as their buttons show them. */
static void assert_moves(const char *list)
{
    char script[300];
    snprintf(script, sizeof script,
             "[...document.querySelectorAll('#moves button')].map((b) => b.textContent).join(' ') "
             "=== '%s'",
             list);
    if (!browser_await(browser, script, PAGE_WAIT_MS))
        fail_msg("the moves are not %s", list);
}

static void assert_count(const char *words)
{
    char script[300];
    snprintf(script, sizeof script, "document.getElementById('count').textContent.includes('%s')",
             words);
    if (!browser_await(browser, script, PAGE_WAIT_MS))
        fail_msg("the count does not say: %s", words);
}

static void the_fewest_moves_are_shown_and_reached(void **state)
{
    (void)state;
    GO("ex=lost-update&lang=en");
    assert_count("Moves: 0. The fewest that lose an update: 4.");
    MOVE("A", "decided");
    MOVE("B", "decided");
    MOVE("A", "committed");
    assert_count("Moves: 3.");
    MOVE("B", "committed");
    assert_count("lost, after 4 moves. The fewest possible: 4.");
    MOVE("A", "accepted");
    MOVE("B", "accepted");
    VERDICT("bad", "200 too little was deducted");
    assert_count("lost, after 4 moves");
    assert_moves("A B A B A B");
    assert_int_equal(browser_errors(browser), 0);
}

/* After the one above. */
static void a_move_is_taken_back_on_a_new_row_and_another_is_made(void **state)
{
    (void)state;
    page_click("#back");
    assert_moves("A B A B A");
    STATE("B", "held");
    WORLD("value", "700");
    assert_true(browser_await(browser, "!document.getElementById('back').disabled",
                              PAGE_WAIT_MS)); /* the moves before it have been made again */
    page_click("#moves li:nth-child(2) button");
    assert_moves("A");
    STATE("A", "held");
    STATE("B", "idle");
    WORLD("value", "1,000");
    MOVES("A", "committed", "accepted");
    MOVES("B", "decided", "committed", "accepted");
    VERDICT("good", "500 is what the accepted withdrawals leave");
    assert_count("Moves: 6. The fewest that lose an update: 4.");
    assert_int_equal(browser_errors(browser), 0);
}

static void a_lease_that_ended_ends_again_when_a_move_is_taken_back(void **state)
{
    (void)state;
    GO("ex=paused-holder&lease=3000&lang=en");
    MOVE("A", "checked");
    WORLD("holder", "free");
    assert_moves("A the lease ends");
    MOVES("B", "decided", "committed");
    browser_type(browser, "\ue003"); /* Backspace */
    assert_moves("A the lease ends B");
    STATE("A", "held");
    STATE("B", "held");
    WORLD("holder", "B");
    WORLD("value", "1,000");
    assert_count("Moves: 2.");
}

static void of_the_level_that_nobody_wins_the_page_says_how_many_orders_were_tried(void **state)
{
    (void)state;
    GO("ex=locked&lang=en");
    assert_count("Moves: 0. Does any order lose an update at all?");
    MOVES("A", "decided", "committed", "accepted");
    MOVES("B", "decided", "committed", "accepted");
    VERDICT("good", "Nothing lost");
    assert_count("All 6 orders were tried on the real service. None loses an update.");
    GO("ex=locked&guard=none&lang=en"); /* of other settings nothing is known */
    MOVES("A", "decided", "committed", "accepted");
    MOVES("B", "decided", "committed", "accepted");
    VERDICT("good", "Nothing lost");
    assert_count("Moves: 6.");
    assert_true(
        browser_is(browser, "document.getElementById('count').textContent === 'Moves: 6.'"));
    assert_int_equal(browser_errors(browser), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fewest_moves_are_shown_and_reached),
        cmocka_unit_test(a_move_is_taken_back_on_a_new_row_and_another_is_made),
        cmocka_unit_test(a_lease_that_ended_ends_again_when_a_move_is_taken_back),
        cmocka_unit_test(of_the_level_that_nobody_wins_the_page_says_how_many_orders_were_tried),
    };
    return cmocka_run_group_tests(tests, page_open_lab, page_close);
}
