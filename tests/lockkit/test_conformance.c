/*
 * One table of claims x Redis guards, each cell tried on a real Redis: a guard must keep what its
 * capability bits claim, and must show the anomaly of every bit that it leaves out. Below it, what
 * every guard must keep, whatever it claims.
 */
#include "../lib/holder.h"
#include "../lib/lock_claims.h"
#include "../lib/lock_world.h"
#include "../lib/process.h"
#include "../lib/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

/* What was observed. */
enum verdict { UNTRIED, KEPT, BROKEN, NOT_APPLICABLE };

enum { CLAIMS = LK_CAP_COUNT, GUARDS_MAX = 32, GENERAL = 5, LEAK_BYTES = 16 * 1024 };

static enum verdict table[GUARDS_MAX][CLAIMS];

static void try_guard(void **state)
{
    const lk_provider_info *guard = *state;
    size_t row = 0;
    while (lk_provider_at(row) != guard)
        row++;
    for (size_t i = 0; i < CLAIMS; i++) {
        bool claimed = (guard->caps & lock_claims[i].bit) != 0;
        world_ask("FLUSHALL");
        if ((guard->caps & lock_claims[i].needs) != lock_claims[i].needs) {
            table[row][i] = NOT_APPLICABLE;
            assert_false(claimed);
            continue;
        }
        table[row][i] = lock_claims[i].keeps(guard) ? KEPT : BROKEN;
        if (claimed != (table[row][i] == KEPT))
            fail_msg("%s %s \"%s\" and %s", guard->name, claimed ? "claims" : "does not claim",
                     lk_cap_list()[i].name, claimed ? "breaks it" : "keeps it");
    }
}

/* -- what every guard must keep ------------------------------------------------------------------
 */

static bool is_redis(const lk_provider_info *guard)
{
    return strncmp(guard->name, "redis-", 6) == 0;
}

/* Calls check for each Redis guard, on an empty Redis. */
static void for_each_guard(void (*check)(const lk_provider_info *guard))
{
    const lk_provider_info *guard;
    for (size_t i = 0; (guard = lk_provider_at(i)) != NULL; i++) {
        if (!is_redis(guard))
            continue;
        world_ask("FLUSHALL");
        check(guard);
    }
}

static void check_bounded_wait(const lk_provider_info *guard)
{
    lk_hold hold, second;
    lk_client *client = world_client(guard->name, NULL);
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_OK);
    static const int64_t waits_ms[] = {0, 1, 50, 300};
    for (size_t i = 0; i < sizeof waits_ms / sizeof waits_ms[0]; i++) {
        int64_t start_ms = test_now_ms();
        assert_int_equal(world_acquire(client, CLAIM_KEY, 0, waits_ms[i], &second), LK_TIMEOUT);
        int64_t took_ms = test_now_ms() - start_ms;
        if (took_ms < waits_ms[i] || took_ms > waits_ms[i] + CLAIM_GRACE_MS)
            fail_msg("%s: asked to wait %d ms, waited %d", guard->name, (int)waits_ms[i],
                     (int)took_ms);
    }
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

static void waits_end_when_they_should(void **state)
{
    (void)state;
    for_each_guard(check_bounded_wait);
}

/* The answer to the nth command about the key is lost, for each n until there is none; what is left
 * in the end? Leases are long, so nothing ends by itself. */
static void check_lost_answers(const lk_provider_info *guard)
{
    struct proxy *proxy = proxy_open(world_redis->port);
    assert_non_null(proxy);
    lk_client *client = world_client_at(guard->name, proxy_port(proxy), NULL);
    lk_hold hold;
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    for (int nth = 1, lost = 0;; nth++, lost++) {
        proxy_lose_answer(proxy, CLAIM_KEY, nth, PROXY_CUT);
        lk_status status = world_acquire(client, CLAIM_KEY, 0, 0, &hold);
        if (status == LK_OK)
            status = lk_release(&hold);
        bool was_lost = proxy_lost(proxy) > lost;
        assert_int_equal(status, was_lost ? LK_UNKNOWN : LK_OK);
        if (!world_becomes(0, CLAIM_GRACE_MS, "EXISTS " CLAIM_KEY))
            fail_msg("%s: the lock stands after answer %d was lost", guard->name, nth);
        if (!was_lost)
            break;
    }
    assert_true(proxy_lost(proxy) >= 2);
    lk_close(client);
    proxy_close(proxy);
}

/* A refusal is lost: undoing the attempt must not free the lock of him who has it. */
static void check_lost_refusal(const lk_provider_info *guard)
{
    struct proxy *proxy = proxy_open(world_redis->port);
    assert_non_null(proxy);
    lk_client *holder = world_client(guard->name, NULL);
    lk_client *client = world_client_at(guard->name, proxy_port(proxy), NULL);
    lk_hold hold, second;
    assert_int_equal(world_acquire(holder, CLAIM_KEY, 0, 0, &hold), LK_OK);
    proxy_lose_answer(proxy, CLAIM_KEY, 1, PROXY_CUT);
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &second), LK_UNKNOWN);
    assert_int_equal(proxy_lost(proxy), 1);
    if (lk_release(&hold) != LK_OK)
        fail_msg("%s: undoing an attempt has freed another's lock", guard->name);
    lk_close(client);
    lk_close(holder);
    proxy_close(proxy);
}

static void undoing_a_refused_attempt_frees_nobody(void **state)
{
    (void)state;
    for_each_guard(check_lost_refusal);
}

static void lost_answers_leave_no_orphan(void **state)
{
    (void)state;
    for_each_guard(check_lost_answers);
}

static void check_leaks(const lk_provider_info *guard)
{
    lk_client *client = world_client(guard->name, NULL);
    lk_hold hold;
    size_t bytes = 0;
    int fds = 0;
    int64_t pairs = test_size(2000, 200000);
    for (int64_t i = 0; i < pairs; i++) {
        if (i == pairs / 2) {
            bytes = mallinfo2().uordblks;
            fds = process_count_fds();
        }
        assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_OK);
        assert_int_equal(lk_release(&hold), LK_OK);
    }
    assert_int_equal(process_count_fds(), fds);
    assert_true(mallinfo2().uordblks <= bytes + LEAK_BYTES);
    assert_int_equal(world_ask("DBSIZE"), (guard->caps & LK_CAP_FENCE) != 0); /* the counter */
    lk_close(client);
}

static void many_pairs_leave_nothing_behind(void **state)
{
    (void)state;
    for_each_guard(check_leaks);
}

/* -- the table ----------------------------------------------------------------------------------
 */

static void print_table(void)
{
    static const char *const words[] = {"?", "yes", "no", "-"};
    printf("%-20s", "guard");
    for (size_t i = 0; i < CLAIMS; i++)
        printf(" %s", lk_cap_list()[i].name);
    printf("\n");
    const lk_provider_info *guard;
    for (size_t row = 0; (guard = lk_provider_at(row)) != NULL; row++) {
        if (table[row][0] == UNTRIED)
            continue;
        printf("%-20s", guard->name);
        for (size_t i = 0; i < CLAIMS; i++)
            printf(" %-*s", (int)strlen(lk_cap_list()[i].name), words[table[row][i]]);
        printf("\n");
    }
    printf("yes: kept; no: its anomaly was shown; -: does not apply\n");
}

static void every_capability_has_its_claim_tried(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLAIMS; i++)
        assert_int_equal(lock_claims[i].bit, lk_cap_list()[i].bit);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return holder_main(argc, argv);
    struct CMUnitTest tests[GENERAL + GUARDS_MAX] = {
        cmocka_unit_test(every_capability_has_its_claim_tried),
        cmocka_unit_test(waits_end_when_they_should),
        cmocka_unit_test(lost_answers_leave_no_orphan),
        cmocka_unit_test(undoing_a_refused_attempt_frees_nobody),
        cmocka_unit_test(many_pairs_leave_nothing_behind),
    };
    char names[GENERAL + GUARDS_MAX][64];
    size_t n = GENERAL;
    for (size_t i = 0; lk_provider_at(i) != NULL; i++) {
        const lk_provider_info *guard = lk_provider_at(i);
        if (!is_redis(guard))
            continue;
        snprintf(names[n], sizeof names[n], "%s_is_what_it_claims_and_no_more", guard->name);
        for (char *c = names[n]; *c != '\0'; c++)
            *c = *c == '-' ? '_' : *c;
        tests[n] = (struct CMUnitTest){names[n], try_guard, NULL, NULL, (void *)guard};
        n++;
    }
    int failed = _cmocka_run_group_tests("conformance", tests, n, world_open, world_close);
    print_table();
    return failed;
}
