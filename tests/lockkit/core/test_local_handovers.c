/* Holds handed over within a client: lk_options.local_handovers. */
#include "line_rig.h"
#include "process.h"
#include "tests.h"

#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LEASE_MS = 10000,
    SHORT_LEASE_MS = 900,
    THREADS = 4,
    ROUNDS = 1000,
    LOOKED_US = 5000,
    LOOK_US = 1000
};

/* Waiters do not poll: they ask the server only after a wake-up. */
static const lk_options generous = {
    .local_handovers = 1000, .retry_min_ms = LINE_FAR_MS, .retry_max_ms = LINE_FAR_MS};

TEST_THAT(a_hold_is_handed_on_with_its_token_and_fence)
{
    line_open(generous);
    assert_int_equal(line_take(0), LK_OK);
    line_join(LINE_FAR_MS, 0);
    struct asker *second = line_join(LINE_FAR_MS, 0);
    assert_int_equal(lk_release(&line.hold), LK_OK);
    line_serve_all();
    assert_string_equal(second->hold.token, line.hold.token);
    assert_int_equal(second->hold.fence, line.hold.fence);
    assert_int_equal(line.fake.calls[FAKE_RELEASE], 1); /* only the last holder's */
    assert_false(fake_held(&line.fake, LINE_KEY, NULL));
}

/* Each grant by the server has a new fence, which marks the start of a run of hand-overs. */
TEST_THAT(after_so_many_in_a_row_the_server_is_told)
{
    enum { IN_A_ROW = 2 };
    line_open((lk_options){.local_handovers = IN_A_ROW, .retry_max_ms = 2});
    assert_int_equal(line_take(0), LK_OK);
    for (int i = 0; i < LINE_MAX_WAITERS; i++)
        line_join(LINE_FAR_MS, 0);
    uint64_t first_fence = line.hold.fence, handovers = 0;
    assert_int_equal(lk_release(&line.hold), LK_OK);
    line_serve_all();
    int of_run[LINE_MAX_WAITERS + 2] = {1};
    for (int i = 0; i < LINE_MAX_WAITERS; i++) {
        uint64_t run = line.waiters[i].hold.fence - first_fence;
        assert_true(run <= LINE_MAX_WAITERS);
        handovers += of_run[run]++ > 0;
        assert_true(of_run[run] <= IN_A_ROW + 1);
    }
    assert_true(handovers > 0);
}

TEST_THAT(then_the_client_keeps_still_for_the_others)
{
    enum { REST_MS = 1000 };
    line_open((lk_options){.local_handovers = 1, .retry_max_ms = REST_MS});
    assert_int_equal(line_take(0), LK_OK);
    struct asker *first = line_join(LINE_FAR_MS, 0), *second = line_join(LINE_FAR_MS, 0);
    assert_int_equal(lk_release(&line.hold), LK_OK);
    assert_int_equal(asker_join(first), LK_OK);
    assert_int_equal(first->hold.fence, line.hold.fence);
    int64_t released_us = client_now_us(line.client);
    assert_int_equal(lk_release(&first->hold), LK_OK);
    assert_int_equal(asker_join(second), LK_OK);
    assert_true(second->hold.acquired_us - released_us >= REST_MS * 1000);
    assert_int_equal(lk_release(&second->hold), LK_OK);
    lk_close(line.client);
}

static atomic_bool stops, stands, may_go;

static void stop_before_try(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    (void)key;
    if (strcmp(point, LK_POINT_TRY) != 0 || !atomic_load(&stops))
        return;
    atomic_store(&stands, true);
    wait_until(is_set, &may_go, LINE_PATIENCE_MS);
}

/* A waiter that is asking the server gets the server's answer instead. */
TEST_THAT(who_is_asking_the_server_is_handed_nothing)
{
    line_open(generous);
    line.client->env.point = stop_before_try;
    assert_int_equal(line_take(0), LK_OK);
    struct asker *waiter = &line.waiters[0];
    *waiter = (struct asker){.client = line.client, .key = LINE_KEY, .wait_ms = LINE_FAR_MS};
    atomic_store(&stops, true);
    asker_start(waiter);
    assert_true(wait_until(is_set, &stands, LINE_PATIENCE_MS));
    assert_int_equal(lk_release(&line.hold), LK_OK);
    uint64_t told = line.fake.calls[FAKE_RELEASE];
    atomic_store(&may_go, true);
    assert_int_equal(asker_join(waiter), LK_OK);
    assert_int_equal(told, 1);
    assert_true(waiter->hold.fence > line.hold.fence);
    assert_int_equal(lk_release(&waiter->hold), LK_OK);
    lk_close(line.client);
}

TEST_THAT(no_hold_is_handed_on_with_less_than_half_the_lease_left)
{
    line_open(generous);
    assert_int_equal(line_take(LEASE_MS), LK_OK);
    struct asker *first = line_join(LINE_FAR_MS, 3 * LEASE_MS);
    assert_int_equal(lk_release(&line.hold), LK_OK);
    assert_int_equal(asker_join(first), LK_OK);
    assert_true(first->hold.fence > line.hold.fence); /* granted by the server */
    struct asker *second = line_join(LINE_FAR_MS, 4 * LEASE_MS);
    line.hold = first->hold;
    assert_int_equal(lk_release(&first->hold), LK_OK); /* 30 s are enough for 40 */
    assert_int_equal(asker_join(second), LK_OK);
    int64_t left_ms;
    assert_int_equal(second->hold.fence, line.hold.fence);
    assert_int_equal(lk_check(&second->hold, &left_ms), LK_OK);
    assert_true(left_ms <= 3 * LEASE_MS); /* the server's lease, not the requested one */
    assert_int_equal(lk_release(&second->hold), LK_OK);
    lk_close(line.client);
}

static _Atomic pthread_t others[2];
static atomic_int yields; /* of all other threads */
static atomic_bool held_up;

/* Replaces the C library's function in lockkit's calls. */
int sched_yield(void)
{
    pthread_t self = pthread_self();
    if (!pthread_equal(self, others[0]) && !pthread_equal(self, others[1])) {
        atomic_fetch_add(&yields, 1);
        while (atomic_load(&held_up))
            usleep(LOOK_US);
    }
    return (int)syscall(SYS_sched_yield);
}

static bool looks(void *arg)
{
    (void)arg;
    return atomic_load(&yields) > 0;
}

/* It starts to spin before its predecessor releases, so no wake-up is needed then. */
TEST_THAT(who_becomes_first_is_roused_to_look_out_if_that_pays)
{
    static const int64_t times_us[] = {LK_SPIN_US_MAX, -1};
    for (int i = 0; i < 2; i++) {
        lk_options options = generous;
        options.spin_us = times_us[i];
        line_open(options);
        assert_int_equal(line_take(0), LK_OK);
        struct asker *first = line_join(LINE_FAR_MS, 0);
        others[0] = pthread_self();
        others[1] = first->thread;
        atomic_store(&yields, 0);
        struct asker *second = line_join(LINE_FAR_MS, 0);
        usleep(LOOKED_US);
        assert_false(looks(NULL)); /* only the first waiter spins */
        assert_int_equal(lk_release(&line.hold), LK_OK);
        assert_int_equal(asker_join(first), LK_OK);
        if (times_us[i] > 0)
            assert_true(wait_until(looks, NULL, LINE_PATIENCE_MS));
        assert_int_equal(local_queue_sleepers(line.client, LINE_KEY), 1); /* not granted yet */
        assert_int_equal(lk_release(&first->hold), LK_OK);
        assert_int_equal(asker_join(second), LK_OK);
        assert_int_equal(looks(NULL), times_us[i] > 0);
        assert_int_equal(lk_release(&second->hold), LK_OK);
        lk_close(line.client);
    }
}

/* A waiter was told to sleep. Before it does, it is handed a hold of a thread that did not queue.
 */
TEST_THAT(who_is_handed_a_hold_does_not_rest)
{
    enum { REST_MS = 20000 };
    line_open(
        (lk_options){.local_handovers = 1, .retry_max_ms = REST_MS, .spin_us = LK_SPIN_US_MAX});
    assert_int_equal(line_take(0), LK_OK);
    struct asker *first = line_join(LINE_FAR_MS, 0);
    others[0] = pthread_self();
    others[1] = first->thread;
    struct asker *second = line_join(LINE_FAR_MS, 0);
    atomic_store(&yields, 0);
    atomic_store(&held_up, true);
    assert_int_equal(lk_release(&line.hold), LK_OK); /* wakes the second, which spins */
    assert_int_equal(asker_join(first), LK_OK);
    assert_true(wait_until(looks, NULL, LINE_PATIENCE_MS));
    assert_int_equal(lk_release(&first->hold), LK_OK); /* tells it to sleep */
    assert_int_equal(line_take(0), LK_OK);
    assert_int_equal(lk_release(&line.hold), LK_OK);
    atomic_store(&held_up, false);
    int64_t start_ms = test_now_ms();
    assert_int_equal(asker_join(second), LK_OK);
    assert_in_range(test_now_ms() - start_ms, 0, REST_MS / 2);
    assert_int_equal(second->hold.fence, line.hold.fence);
    assert_int_equal(lk_release(&second->hold), LK_OK);
    lk_close(line.client);
}

static atomic_int losses;

static void count_loss(void *arg, const lk_hold *hold, lk_loss cause)
{
    (void)arg;
    (void)hold;
    atomic_fetch_add(&losses, cause == LK_LOSS_DELETED);
}

static bool was_renewed(void *arg)
{
    (void)arg;
    return line_stats().renewals > 0;
}

static bool was_lost(void *arg)
{
    (void)arg;
    return atomic_load(&losses) == 1;
}

static lk_hold heir;

static void *inherit(void *arg)
{
    lk_request request = {.key = LINE_KEY, .wait_ms = LINE_FAR_MS, .on_lost = count_loss};
    *(lk_status *)arg = lk_acquire(line.client, &request, &heir);
    return NULL;
}

static bool sleep_in_line(void *n)
{
    return local_queue_sleepers(line.client, LINE_KEY) == *(int64_t *)n;
}

TEST_THAT(an_inherited_hold_is_renewed_and_its_loss_is_told)
{
    lk_options options = generous;
    options.lease_ms = SHORT_LEASE_MS;
    options.max_hold_ms = LINE_FAR_MS;
    static lk_status status;
    int64_t one = 1;
    pthread_t thread;
    line_open(options);
    int rounds = 0;
    do { /* until more than half of the short lease is left */
        assert_true(rounds++ < ROUNDS);
        assert_int_equal(line_take(0), LK_OK);
        assert_int_equal(pthread_create(&thread, NULL, inherit, &status), 0);
        assert_true(wait_until(sleep_in_line, &one, LINE_PATIENCE_MS));
        assert_int_equal(lk_release(&line.hold), LK_OK);
        pthread_join(thread, NULL);
        assert_int_equal(status, LK_OK);
    } while (heir.fence != line.hold.fence && lk_release(&heir) == LK_OK);
    assert_true(wait_until(was_renewed, NULL, LINE_PATIENCE_MS));
    fake_free(&line.fake, LINE_KEY);
    assert_true(wait_until(was_lost, NULL, LINE_PATIENCE_MS));
    assert_int_equal(lk_check(&heir, NULL), LK_LOST);
    assert_int_equal(lk_release(&heir), LK_LOST);
    lk_close(line.client);
}

static int plain_count; /* only the lock protects it, so ThreadSanitizer sees a failure */

static void *count(void *arg)
{
    int *failures = arg;
    lk_hold hold;
    lk_request request = {.key = LINE_KEY, .wait_ms = LINE_FAR_MS};
    for (int i = 0; i < ROUNDS; i++) {
        if (lk_acquire(line.client, &request, &hold) != LK_OK) {
            ++*failures;
            continue;
        }
        plain_count++;
        *failures += lk_release(&hold) != LK_OK;
    }
    return NULL;
}

TEST_THAT(threads_that_hand_on_keep_each_other_out)
{
    pthread_t threads[THREADS];
    static int failures[THREADS];
    int64_t all = THREADS;
    plain_count = 0;
    line_open((lk_options){.local_handovers = 100, .retry_max_ms = 2});
    assert_int_equal(line_take(0), LK_OK); /* held until all wait; else they might not overlap */
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, &failures[i]), 0);
    assert_true(wait_until(sleep_in_line, &all, LINE_PATIENCE_MS));
    assert_int_equal(lk_release(&line.hold), LK_OK);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(failures[i], 0);
    }
    assert_int_equal(plain_count, THREADS * ROUNDS);
    lk_stats stats = line_stats();
    assert_true(stats.handovers > 0 && stats.handovers < stats.grants);
    assert_int_equal(stats.grants, THREADS * ROUNDS + 1);
    assert_int_equal(stats.releases, THREADS * ROUNDS + 1);
    lk_close(line.client);
}

TEST_THAT(options_out_of_range_are_refused)
{
    lk_client *client;
    const lk_options alone = {.local_handovers = 1};
    const lk_options negative = {.local_queue = true, .local_handovers = -1};
    assert_int_equal(lk_open("mutex", NULL, &alone, &client, NULL), LK_INVALID);
    assert_int_equal(lk_open("mutex", NULL, &negative, &client, NULL), LK_INVALID);
}
