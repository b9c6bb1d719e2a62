/* lk_acquire_many(): one order of keys for all callers; all locks or none. */
#include "lk_fake.h"
#include "providers.h"
#include "tests.h"

#include <stdatomic.h>
#include <string.h>

enum { ORDER_MAX = 64 };

/* The keys in the order of their commands. */
static struct {
    char text[ORDER_MAX];
    size_t n;
} tried, released;

static void note_point(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    if (strcmp(point, LK_POINT_ACQUIRED) == 0 && tried.n < ORDER_MAX - 1)
        tried.text[tried.n++] = key[0];
    if (strcmp(point, LK_POINT_RELEASE) == 0 && released.n < ORDER_MAX - 1)
        released.text[released.n++] = key[0];
}

static void open_noting(struct fake *fake, lk_client **ret)
{
    memset(&tried, 0, sizeof tried);
    memset(&released, 0, sizeof released);
    fake_init(fake, 7);
    fake->env.point = note_point;
    *ret = fake_open(fake, &fake_provider, NULL);
}

TEST_THAT(keys_are_taken_in_ascending_order_and_holds_stay_with_their_requests)
{
    struct fake fake;
    lk_client *client;
    lk_hold holds[4];
    open_noting(&fake, &client);
    lk_request requests[4] = {{.key = "d"}, {.key = "b"}, {.key = "c"}, {.key = "a"}};
    assert_int_equal(lk_acquire_many(client, requests, 4, holds), LK_OK);
    assert_string_equal(tried.text, "abcd");
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(holds[i].key, requests[i].key);
        assert_true(fake_held(&fake, requests[i].key, holds[i].token));
        assert_int_equal(lk_release(&holds[i]), LK_OK);
    }
    lk_close(client);
}

TEST_THAT(one_refusal_frees_all_in_reverse_order)
{
    struct fake fake;
    lk_client *client;
    lk_hold holds[4];
    open_noting(&fake, &client);
    fake_take(&fake, "d", "other", 0);
    lk_request requests[4] = {
        {.key = "d", .wait_ms = 50}, {.key = "b"}, {.key = "c"}, {.key = "a"}};
    int64_t start_us = fake_now_us(&fake);
    assert_int_equal(lk_acquire_many(client, requests, 4, holds), LK_TIMEOUT);
    assert_int_equal(fake_now_us(&fake) - start_us, 50000);
    assert_string_equal(released.text, "cba");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(lk_release(&holds[i]), LK_LOST);
    assert_false(fake_held(&fake, "a", NULL));
    assert_true(fake_held(&fake, "d", "other"));
    lk_close(client);
}

TEST_THAT(the_first_wait_bounds_the_whole_call)
{
    struct fake fake;
    lk_client *client;
    lk_hold holds[3];
    open_noting(&fake, &client);
    fake.latency_us = 30000;
    lk_request requests[3] = {{.key = "a", .wait_ms = 50}, {.key = "b"}, {.key = "c"}};
    assert_int_equal(lk_acquire_many(client, requests, 3, holds), LK_TIMEOUT);
    assert_string_equal(tried.text, "ab"); /* the third is not tried after the deadline */
    requests[0].wait_ms = 0;               /* one try each */
    assert_int_equal(lk_acquire_many(client, requests, 3, holds), LK_OK);
    for (size_t i = 0; i < 3; i++)
        lk_release(&holds[i]);
    lk_close(client);
}

TEST_THAT(a_lease_that_ended_while_waiting_for_the_rest_fails_the_whole)
{
    struct fake fake;
    lk_client *client;
    lk_hold holds[2];
    open_noting(&fake, &client);
    fake_take(&fake, "b", "other", 100);
    lk_request requests[2] = {{.key = "a", .lease_ms = 50, .wait_ms = 1000}, {.key = "b"}};
    assert_int_equal(lk_acquire_many(client, requests, 2, holds), LK_TIMEOUT);
    assert_string_equal(tried.text, "ab");
    assert_false(fake_held(&fake, "b", NULL));
    lk_close(client);
}

TEST_THAT(bad_sets_are_refused_before_anything_is_sent)
{
    struct fake fake;
    lk_client *client;
    lk_hold holds[LK_MANY_MAX + 1];
    open_noting(&fake, &client);
    lk_request requests[LK_MANY_MAX + 1] = {{.key = "a"}, {.key = "b"}, {.key = "a"}};
    memset(holds, 0xff, sizeof holds);
    assert_int_equal(lk_acquire_many(client, requests, 3, holds), LK_INVALID);
    for (int i = 0; i < 3; i++)
        assert_int_equal(lk_release(&holds[i]), LK_LOST);
    requests[2].key = "{c}";
    assert_int_equal(lk_acquire_many(client, requests, 3, holds), LK_INVALID);
    assert_int_equal(lk_acquire_many(client, requests, 0, holds), LK_INVALID);
    assert_int_equal(lk_acquire_many(client, requests, LK_MANY_MAX + 1, holds), LK_INVALID);
    assert_int_equal(lk_acquire_many(NULL, requests, 2, holds), LK_INVALID); /* no client */
    assert_int_equal(fake.n_calls, 0);
    lk_close(client);
}

TEST_THAT(each_request_may_name_its_own_client)
{
    struct fake fakes[2];
    lk_client *clients[2];
    lk_hold holds[2];
    for (int i = 0; i < 2; i++) {
        fake_init(&fakes[i], (uint64_t)i);
        clients[i] = fake_open(&fakes[i], &fake_provider, NULL);
    }
    lk_request requests[2] = {{.client = clients[1], .key = "b"},
                              {.client = clients[0], .key = "a"}};
    assert_int_equal(lk_acquire_many(NULL, requests, 2, holds), LK_OK);
    assert_true(fake_held(&fakes[1], "b", holds[0].token));
    assert_true(fake_held(&fakes[0], "a", holds[1].token));
    for (int i = 0; i < 2; i++)
        assert_int_equal(lk_release(&holds[i]), LK_OK);
    lk_close(clients[0]);
    lk_close(clients[1]);
}

/* -- threads that request the same keys in opposite orders ----------------------------------------
 */

struct crossing {
    lk_client *client;
    bool backwards;
    int failures;
};

enum { CROSSINGS = 2000 };

static void *cross(void *arg)
{
    struct crossing *c = arg;
    for (int i = 0; i < CROSSINGS; i++) {
        lk_request requests[2] = {{.key = c->backwards ? "b" : "a", .wait_ms = 60000},
                                  {.key = c->backwards ? "a" : "b"}};
        lk_hold holds[2];
        if (lk_acquire_many(c->client, requests, 2, holds) != LK_OK) {
            c->failures++;
            continue;
        }
        lk_release(&holds[0]);
        lk_release(&holds[1]);
    }
    return NULL;
}

TEST_THAT(opposite_orders_cannot_deadlock)
{
    lk_client *client;
    struct crossing crossings[4];
    pthread_t threads[4];
    assert_int_equal(lk_open_provider(&lk_mutex, NULL, NULL, &client, NULL), LK_OK);
    for (int i = 0; i < 4; i++) {
        crossings[i] = (struct crossing){.client = client, .backwards = i % 2};
        assert_int_equal(pthread_create(&threads[i], NULL, cross, &crossings[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(crossings[i].failures, 0);
    }
    lk_close(client);
}
