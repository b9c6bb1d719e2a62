#include "line_rig.h"
#include "process.h"
#include "tests.h"

struct line_rig line;

void line_open(lk_options options)
{
    line = (struct line_rig){.n_waiters = 0};
    fake_init(&line.fake, 7);
    line.fake.real_time = true;
    options.local_queue = true;
    line.client = fake_open(&line.fake, &fake_provider, &options);
}

lk_status line_take(int64_t lease_ms)
{
    lk_request request = {.key = LINE_KEY, .lease_ms = lease_ms};
    return lk_acquire(line.client, &request, &line.hold);
}

static bool is_as_long(void *n)
{
    return local_queue_sleepers(line.client, LINE_KEY) == *(int64_t *)n;
}

struct asker *line_join(int64_t wait_ms, int64_t lease_ms)
{
    int64_t n = local_queue_sleepers(line.client, LINE_KEY) + 1;
    struct asker *waiter = &line.waiters[line.n_waiters++];
    *waiter = (struct asker){
        .client = line.client, .key = LINE_KEY, .wait_ms = wait_ms, .lease_ms = lease_ms};
    asker_start(waiter);
    assert_true(wait_until(is_as_long, &n, LINE_PATIENCE_MS));
    return waiter;
}

void line_serve_all(void)
{
    for (int i = 0; i < line.n_waiters; i++) {
        assert_int_equal(asker_join(&line.waiters[i]), LK_OK);
        assert_int_equal(lk_release(&line.waiters[i].hold), LK_OK);
    }
    assert_int_equal(local_queue_sleepers(line.client, LINE_KEY), 0);
    lk_close(line.client);
}

bool line_has_ended(void *waiter)
{
    return asker_ended(waiter);
}

lk_stats line_stats(void)
{
    lk_stats stats;
    lk_client_stats(line.client, &stats);
    return stats;
}
