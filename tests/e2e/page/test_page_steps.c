/* Step mode of the live page in a real browser: requests moved by hand, with keys, on real servers.
 */
#include "steps_rig.h"
#include "tests.h"

#include <stdio.h>

static struct browser *const browser = &page.browser;

GROUP_FIXTURE(page_open_lab, page_close);

TEST_THAT(without_a_lock_the_learner_makes_700_of_1000)
{
    browser_size(browser, 1280, 720);
    GO("ex=lost-update&lang=en");
    MOVE("A", "decided");
    MOVE("B", "decided");
    WORLD("value", "1,000");
    MOVE("A", "committed");
    WORLD("value", "800");
    MOVE("B", "committed");
    WORLD("value", "700");
    MOVE("A", "accepted");
    MOVE("B", "accepted");
    VERDICT("bad", "200 too little was deducted: the accepted withdrawals leave 500");
    VERDICT("bad", "A\\'s withdrawal of 200 was accepted and is not deducted: B had read 1,000");
    VERDICT("bad", "Two ledger rows");
    VERDICT("bad", "the later write replaced the earlier one");
    assert_int_equal(browser_errors(browser), 0);
}

/* After the one above. */
TEST_THAT(what_happened_fits_on_projector_and_phone_in_light_and_dark)
{
    assert_true(page_picture("steps-wide", 1280, 720));
    assert_true(page_picture("steps-full-hd", 1920, 1080));
    browser_dark(browser, true);
    assert_true(page_picture("steps-dark", 1280, 720));
    browser_dark(browser, false);
    assert_true(page_picture("steps-phone", 390, 844));
    assert_true(browser_is(browser, "document.documentElement.scrollWidth <= innerWidth"));
    browser_size(browser, 1280, 720);
}

TEST_THAT(under_a_lock_b_waits_and_500_are_left)
{
    GO("ex=locked&lang=en");
    MOVE("A", "decided");
    WORLD("holder", "A");
    assert_true(browser_is(browser, "/s$/.test(document.querySelector("
                                    "'#world [data-is=left]').textContent)"));
    browser_type(browser, "b");
    STATE("B", "waiting");
    MOVES("A", "committed", "accepted");
    STATE("B", "held"); /* it has got the lock by itself */
    WORLD("holder", "B");
    MOVES("B", "committed", "accepted");
    WORLD("value", "500");
    VERDICT("good", "Nothing lost");
    assert_int_equal(browser_errors(browser), 0);
}

/* A stands between its last look at the lock and its write when its lease ends; B reads. */
static void pause_a_and_let_b_read(void)
{
    MOVE("A", "checked");
    WORLD("holder", "free");
    MOVE("B", "decided");
    WORLD("holder", "B");
    MOVE("A", "committed");
    MOVE("A", "accepted");
}

TEST_THAT(a_holder_paused_past_its_lease_loses_money_without_a_fence)
{
    GO("ex=paused-holder&lease=4000&lang=en");
    pause_a_and_let_b_read();
    MOVES("B", "committed", "accepted");
    WORLD("value", "700");
    VERDICT("bad", "A\\'s withdrawal of 200 was accepted and is not deducted");
    VERDICT("bad", "B got the lock while A was still inside");
    VERDICT("bad", "A\\'s lease of 4,000 ms had ended");
}

TEST_THAT(with_a_fence_b_has_to_read_again)
{
    GO("ex=paused-holder-fence&lease=4000&lang=en");
    pause_a_and_let_b_read();
    WORLD("value", "800");
    browser_type(browser, "b");
    assert_true(browser_await(browser,
                              "/refused.*reads 800/.test(document.getElementById('log')"
                              ".textContent) && document.querySelector('[data-name=B]')"
                              ".dataset.state === 'held'",
                              PAGE_WAIT_MS));
    MOVES("B", "committed", "accepted");
    WORLD("value", "500");
    VERDICT("good", "Nothing lost");
    VERDICT("good", "B\\'s write of 700 was refused");
    assert_int_equal(browser_errors(browser), 0);
}

/* The lesson of the fence: the newer holder writes, and the older one is refused. */
TEST_THAT(with_a_fence_the_late_holder_is_refused)
{
    GO("ex=paused-holder-fence&lease=4000&lang=en");
    MOVE("A", "checked");
    WORLD("holder", "free");
    MOVES("B", "decided", "committed");
    WORLD("value", "700");
    MOVE("A", "refused");
    MOVE("B", "accepted");
    WORLD("value", "700");
    VERDICT("good", "700 is what the accepted withdrawals leave");
    VERDICT("good", "A\\'s late write was refused: B had written with a newer fence. …");
    VERDICT("good", "had seen the newer fence");
    browser_errors(browser); /* says that A was refused */
}

TEST_THAT(a_bare_del_lets_c_in_beside_b)
{
    GO("ex=wrong-delete&lease=4000&lang=en");
    MOVE("A", "decided");
    WORLD("holder", "free");
    MOVE("B", "decided");
    WORLD("holder", "B");
    MOVE("A", "refused");
    WORLD("holder", "free");
    MOVE("C", "decided");
    WORLD("holder", "C");
    MOVES("B", "committed", "accepted");
    MOVES("C", "committed", "accepted");
    WORLD("value", "900");
    VERDICT("bad", "B\\'s withdrawal of 300 was accepted and is not deducted: C had read 1,000");
    VERDICT("bad", "A, which had lost the lock before, freed B");
    VERDICT("bad", "A bare DEL");
    browser_errors(browser); /* says that A was refused */
}

TEST_THAT(settings_and_language_stand_in_the_address)
{
    GO("ex=wrong-delete&guard=redis-fair&lease=7000&fence=on&lang=en");
    assert_true(browser_is(browser, "document.querySelectorAll('.actor').length === 3 && "
                                    "document.querySelector('[name=guard]').value === "
                                    "'redis-fair' && "
                                    "document.querySelector('[name=lease]').value === '7000' && "
                                    "document.querySelector('[name=fence]').value === 'on'"));
    page_choose("#lang", "zh");
    assert_true(browser_is(browser, "document.documentElement.lang === 'zh' && "
                                    "/lang=zh/.test(location.search) && "
                                    "/guard=redis-fair/.test(location.search) && "
                                    "/删错了锁/.test(document.querySelector('[name=ex]')"
                                    ".selectedOptions[0].textContent)"));
    assert_true(browser_is(browser, "[...document.querySelectorAll('[data-text]')].every("
                                    "e => e.textContent !== '')"));
    MOVE("B", "decided");
    browser_type(browser, "a");
    STATE("A", "waiting");
    assert_true(page_picture("steps-chinese", 1280, 720));
    assert_true(browser_is(browser, "[...document.querySelectorAll('.card dd')].every("
                                    "e => e.scrollWidth <= e.clientWidth)"));
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(without_lab_the_page_says_so)
{
    char db[SANDBOX_TEXT_MAX + 32], url[SANDBOX_TEXT_MAX + 32];
    snprintf(db, sizeof db, "sqlite:%s/plain.db", sandbox_dir(page.shop.sandbox));
    struct sandbox_server *plain =
        sandbox_seckilld(page.shop.sandbox, shop_binary("seckilld"),
                         (const char *const[]){"--db", db, "--guard", "mutex", NULL});
    assert_non_null(plain);
    snprintf(url, sizeof url, "%s/web/steps.html?lang=en", plain->url);
    browser_go(browser, url);
    assert_true(browser_await(browser,
                              "/--lab/.test(document.getElementById('message').textContent) && "
                              "document.getElementById('again').disabled",
                              PAGE_WAIT_MS));
    assert_int_equal(browser_errors(browser), 0);
    assert_true(shop_stop(plain));
}
