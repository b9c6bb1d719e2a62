#include "lock_duties.h"
#include "lock_claims.h"
#include "lock_world.h"
#include "process.h"
#include "../../loadgen/sandbox_proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <malloc.h>

enum { LEAK_BYTES = 16 * 1024 };

static bool waits_bounded(const lk_provider_info *guard)
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
            fail_msg("asked to wait %d ms, waited %d", (int)waits_ms[i], (int)took_ms);
    }
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
    return true;
}

/* The answer to the nth command about the key is lost, for each n until there is none. What is said
 * to have been done was; what is left in the end? Leases are long, so nothing ends by itself. */
static bool no_orphan(const lk_provider_info *guard)
{
    if (world->port() == 0)
        return false;
    struct proxy *proxy = proxy_open(world->port());
    assert_non_null(proxy);
    lk_client *client = world_client_at(guard->name, proxy_port(proxy), NULL);
    lk_hold hold;
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    for (int nth = 1, lost = 0;; nth++, lost++) {
        proxy_lose_answer(proxy, CLAIM_KEY, nth, PROXY_CUT);
        lk_status status = world_acquire(client, CLAIM_KEY, 0, 0, &hold);
        if (status == LK_OK) {
            assert_true(world->exists(CLAIM_KEY));
            status = lk_release(&hold);
            assert_true(status == LK_UNKNOWN || !world->exists(CLAIM_KEY));
        }
        bool was_lost = proxy_lost(proxy) > lost;
        if (status != LK_OK && !(was_lost && status == LK_UNKNOWN))
            fail_msg("answer %d lost: %s", nth, lk_status_text(status));
        if (!world_frees(CLAIM_KEY, CLAIM_GRACE_MS))
            fail_msg("the lock stands after answer %d was lost", nth);
        if (!was_lost)
            break;
    }
    assert_true(proxy_lost(proxy) >= 2);
    lk_close(client);
    proxy_close(proxy);
    return true;
}

/* A refusal is lost: undoing the attempt must not free the lock of him who has it. */
static bool no_theft(const lk_provider_info *guard)
{
    if (world->port() == 0)
        return false;
    struct proxy *proxy = proxy_open(world->port());
    assert_non_null(proxy);
    lk_client *holder = world_client(guard->name, NULL);
    lk_client *client = world_client_at(guard->name, proxy_port(proxy), NULL);
    lk_hold hold, second;
    assert_int_equal(world_acquire(holder, CLAIM_KEY, 0, 0, &hold), LK_OK);
    proxy_lose_answer(proxy, CLAIM_KEY, 1, PROXY_CUT);
    lk_status status = world_acquire(client, CLAIM_KEY, 0, 0, &second);
    assert_true(status == LK_UNKNOWN || status == LK_TIMEOUT);
    assert_int_equal(proxy_lost(proxy), 1);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
    lk_close(holder);
    proxy_close(proxy);
    return true;
}

static bool leaves_nothing(const lk_provider_info *guard)
{
    lk_client *client = world_client(guard->name, NULL);
    lk_hold hold;
    size_t bytes = 0;
    int fds = 0;
    int64_t pairs = world->fast ? 2000 : 200;
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
    assert_int_equal(world->leftovers(), 0);
    lk_close(client);
    return true;
}

const struct duty lock_duties[LOCK_DUTIES] = {
    {"bounded-wait", waits_bounded},
    {"no-orphan", no_orphan},
    {"no-theft", no_theft},
    {"no-leak", leaves_nothing},
};
