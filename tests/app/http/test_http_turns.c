/* One turn of the loop is short, however many connections want something at the same moment. The
 * counters of the HTTP side are looked at after each turn. */
#include "events_rig.h"
#include "http_internal.h"

#include <semaphore.h>
#include <stdatomic.h>

enum { MANY = 160, READ_MS = 3000 };

static atomic_bool is_to_stand, stands;
static atomic_long total, most; /* of the counter that `counter` reads: in all, in one turn */
static uint64_t (*counter)(const struct http_metrics *metrics);
static sem_t may_turn;

/* Called at the end of each turn, by the loop. */
static void look(void)
{
    if (counter != NULL) {
        const long now = (long)counter(&fixture.http->metrics), n = now - atomic_load(&total);
        if (n > atomic_load(&most))
            atomic_store(&most, n);
        atomic_store(&total, now);
    }
    if (atomic_load(&is_to_stand)) {
        atomic_store(&stands, true);
        sem_wait(&may_turn);
        atomic_store(&stands, false);
    }
}

static uint64_t late(const struct http_metrics *metrics)
{
    return metrics->timed_out;
}

static uint64_t bytes(const struct http_metrics *metrics)
{
    return metrics->sent_bytes;
}

static bool loop_stands(void *arg)
{
    (void)arg;
    return atomic_load(&stands);
}

static bool all_are_late(void *arg)
{
    (void)arg;
    http_turns(fixture.http, 0); /* a turn ends them, and the next one's end looks */
    return atomic_load(&total) == MANY;
}

static bool all_are_open(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_http_connections_open") == MANY + 1;
}

static int start_looking(void **state)
{
    static const struct extra_routes extra = {.tick = look};
    (void)state;
    fixture_defaults(&fixture);
    fixture.extra = &extra;
    fixture.limits.read_ms = READ_MS;
    counter = NULL;
    atomic_store(&is_to_stand, false);
    sem_init(&may_turn, 0, 0);
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

static void stop_the_loop(uint64_t (*counts)(const struct http_metrics *metrics))
{
    atomic_store(&is_to_stand, true);
    http_turns(fixture.http, 0); /* wakes it */
    assert_true(wait_until(loop_stands, NULL, RAW_WAIT_MS));
    counter = counts;
    atomic_store(&total, (long)counts(&fixture.http->metrics));
    atomic_store(&most, 0);
}

static void let_it_turn(void)
{
    atomic_store(&is_to_stand, false);
    sem_post(&may_turn);
}

TEST_FIXTURE(start_looking, fixture_tear_down);

/* All get the same texts: the events, then the counters. */
TEST_THAT(a_turn_tells_a_few_listeners)
{
    static struct sse all[MANY];
    struct op op;
    for (int i = 0; i < MANY; i++)
        listen_to(&all[i], "/v1/events", NULL);
    stop_the_loop(bytes);
    const long before = atomic_load(&total);
    pass_all(order(&op, "1", "k"), 5);
    let_it_turn();
    for (int i = 0; i < MANY; i++)
        assert_true(sse_await(&all[i], "event: counters", 1));
    const long sent = atomic_load(&total) - before;
    assert_in_range(atomic_load(&most), 1, sent / 5); /* 16 begin, 16 send their second text */
    for (int i = 0; i < MANY; i++)
        sse_close(&all[i]);
}

static bool is_past(void *until_ms)
{
    return test_now_ms() > *(const int64_t *)until_ms;
}

TEST_THAT(a_turn_ends_a_few_that_are_late)
{
    int fds[MANY];
    for (int i = 0; i < MANY; i++)
        fds[i] = raw_connect(fixture.port);
    assert_true(wait_until(all_are_open, NULL, RAW_WAIT_MS));
    stop_the_loop(late);
    int64_t until_ms = test_now_ms() + READ_MS; /* all are late then */
    assert_true(wait_until(is_past, &until_ms, RAW_WAIT_MS));
    let_it_turn();
    assert_true(wait_until(all_are_late, NULL, RAW_WAIT_MS));
    assert_in_range(atomic_load(&most), 1, 64);
    for (int i = 0; i < MANY; i++) {
        struct raw_reply reply;
        assert_int_equal(raw_read(fds[i], 0, RAW_WAIT_MS, &reply), 408);
        raw_free(&reply);
        close(fds[i]);
    }
}
