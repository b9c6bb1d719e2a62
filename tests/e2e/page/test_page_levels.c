/* The levels of step mode in a real browser: moves are counted, taken back, and made otherwise from
 * an earlier one on; a loss is said when the ledger shows it. */
#include "steps_rig.h"
#include "tests.h"

#include <stdio.h>

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

GROUP_FIXTURE(page_open_lab, page_close);

TEST_THAT(the_fewest_moves_are_shown_and_reached)
{
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
TEST_THAT(a_move_is_taken_back_on_a_new_row_and_another_is_made)
{
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

TEST_THAT(a_lease_that_ended_ends_again_when_a_move_is_taken_back)
{
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

TEST_THAT(of_the_level_that_nobody_wins_the_page_says_how_many_orders_were_tried)
{
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

static void assert_bet(const char *words)
{
    char script[300];
    snprintf(script, sizeof script, "document.getElementById('betTold').textContent.includes('%s')",
             words);
    if (!browser_await(browser, script, PAGE_WAIT_MS))
        fail_msg("of the bet it is not said: %s", words);
}

/* Before the first move, and on no other: the answer is known after it. */
TEST_THAT(a_bet_is_made_before_the_first_move_and_judged_by_the_ledger)
{
    GO("ex=paused-holder&lease=3000&lang=en"); /* another lease than the level's: nothing is known
                                                */
    assert_true(browser_is(browser, "document.getElementById('bet').hidden"));
    GO("ex=paused-holder&lang=en");
    assert_true(browser_is(browser, "!document.getElementById('betAsk').hidden"));
    json_decref(browser_run(browser, "document.querySelector('#betAsk input').value = 5;"));
    page_click("#betAsk [data-do=yes]");
    assert_bet("Your bet: some order loses an update, with 5 moves");
    assert_true(browser_is(browser, "document.getElementById('betAsk').hidden"));
    MOVE("A", "checked");
    WORLD("holder", "free");
    MOVES("B", "decided");
    MOVE("A", "committed");
    MOVE("B", "committed");
    assert_bet("You were right. You said 5 moves. The fewest: 4.");
    page_choose("#lang", "zh");
    assert_bet("猜对了。 你猜 5 步，最少是 4 步。");
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(a_bet_that_no_order_loses_is_won_once_all_is_answered)
{
    GO("ex=last-piece-locked&lang=en");
    page_click("#betAsk [data-do=no]");
    MOVES("A", "decided", "committed", "accepted");
    assert_bet("Your bet: no order loses an update.");
    MOVE("B", "decided");
    MOVES("B", "committed", "refused");
    VERDICT("good", "Nothing oversold");
    assert_bet("You were right.");
    GO("ex=last-piece-locked&lang=en"); /* who has moved does not bet */
    MOVE("A", "decided");
    assert_true(browser_await(browser, "document.getElementById('bet').hidden", PAGE_WAIT_MS));
}

static void mend_with(const char *guard, const char *fence, const char *words)
{
    char script[300];
    page_choose("#mendGuard", guard);
    page_choose("#mendFence", fence);
    page_click("#mendPlay");
    snprintf(script, sizeof script, "document.getElementById('mended').textContent.includes('%s')",
             words);
    if (!browser_await(browser, script, PAGE_WAIT_MS))
        fail_msg("of the mend it is not said: %s", words);
}

/* The sentence is that of the ledger: of a mend that is none, it says so. */
TEST_THAT(moves_that_lost_are_played_again_against_a_mend)
{
    browser_errors(browser); /* refusals of the level before */
    GO("ex=lost-update&lang=en");
    assert_true(browser_is(browser, "document.getElementById('mend').hidden"));
    MOVE("A", "decided");
    MOVE("B", "decided");
    MOVE("A", "committed");
    MOVE("B", "committed");
    assert_true(browser_await(browser, "!document.getElementById('mend').hidden", PAGE_WAIT_MS));
    mend_with("none", "off", "Not mended: the same moves lose an update again (none, Fence: off).");
    VERDICT("bad", "too little was deducted");
    mend_with("redis-token", "on", "Mended: the same moves lose nothing (redis-token, Fence: on).");
    VERDICT("good", "500 is what the accepted withdrawals leave");
    assert_true(browser_is(browser, "/guard=redis-token/.test(location.search)"));
    assert_int_equal(browser_errors(browser), 0);
}

/* A's lease ends again, and A's late write meets the fence. */
TEST_THAT(a_fence_mends_the_write_after_the_lease)
{
    GO("ex=paused-holder&lease=3000&lang=en");
    MOVE("A", "checked");
    WORLD("holder", "free");
    MOVES("B", "decided", "committed");
    MOVE("A", "committed");
    assert_true(browser_await(browser, "!document.getElementById('mend').hidden", PAGE_WAIT_MS));
    mend_with("redis-token", "on", "Mended: the same moves lose nothing");
    VERDICT("good", "late write was refused");
    browser_size(browser, 1280, 720);
    assert_true(page_picture("mended", 1280, 720));
    page_choose("#lang", "zh");
    browser_dark(browser, true);
    assert_true(page_picture("mended-phone", 390, 844));
    browser_dark(browser, false);
    assert_true(browser_is(browser, "document.documentElement.scrollWidth <= innerWidth"));
}
