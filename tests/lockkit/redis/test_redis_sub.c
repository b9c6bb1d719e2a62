/* The subscriber's connection where the master may move. Its silence is noticed by any listener. */
#include "redis_sub.h"
#include "process.h"
#include "redis_link.h"
#include "cluster_rig.h"
#include "tests.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define CHANNEL "somewhere"

enum {
    TIMEOUT_MS = 1000,
    NOTICED_MS = 2000,
    SLACK_MS = 1000,
    LAST_PING_US = 1200000,
    SHORT_WAIT_US = 100000
};

static void note_loss(void *losses, const char *channel, const char *payload)
{
    (void)payload;
    if (channel == NULL)
        atomic_fetch_add((_Atomic int *)losses, 1);
}

static bool has_lost(void *losses)
{
    return atomic_load((_Atomic int *)losses) > 0;
}

struct ear {
    struct link link;
    lk_redis_sub *sub;
    _Atomic int losses; /* of the connection */
};

static lk_status listen_to(struct ear *ear, bool *ret_was_live)
{
    return lk_redis_sub_join(ear->sub, CHANNEL, TIMEOUT_MS * INT64_C(1000), ret_was_live);
}

/* The channel stays live without a listener. One PING may still be sent for the one that left. */
static void open_idle(struct ear *ear)
{
    ear->losses = 0;
    assert_true(link_open_for(&ear->link, cluster.url, TIMEOUT_MS));
    assert_int_equal(lk_redis_sub_open(&ear->link.context, ear->link.redis, note_loss, &ear->losses,
                                       &ear->sub, NULL),
                     LK_OK);
    assert_int_equal(listen_to(ear, NULL), LK_OK);
    lk_redis_sub_leave(ear->sub, CHANNEL);
    usleep(LAST_PING_US);
}

static void close_ear(struct ear *ear)
{
    lk_redis_sub_close(ear->sub);
    link_close(&ear->link);
}

GROUP_FIXTURE(open_cluster, close_cluster);

TEST_THAT(who_joins_a_channel_that_others_left_notices_a_server_that_hangs)
{
    static struct ear ear; /* static: a failed assertion leaves its thread running */
    open_idle(&ear);
    assert_int_equal(sandbox_signal(cluster.master[0], SIGSTOP), 0);
    bool was_live;
    assert_int_equal(listen_to(&ear, &was_live), LK_OK);
    assert_true(was_live);
    bool noticed = wait_until(has_lost, &ear.losses, NOTICED_MS + SLACK_MS);
    assert_int_equal(sandbox_signal(cluster.master[0], SIGCONT), 0);
    assert_true(noticed);
    lk_redis_sub_leave(ear.sub, CHANNEL);
    close_ear(&ear);
}

/* No listener stays long enough to send a PING and miss its answer. */
static bool one_more_has_noticed(void *arg)
{
    struct ear *ear = arg;
    if (listen_to(ear, NULL) == LK_OK) {
        usleep(SHORT_WAIT_US);
        lk_redis_sub_leave(ear->sub, CHANNEL);
    }
    return has_lost(&ear->losses);
}

TEST_THAT(many_who_listen_for_a_moment_each_notice_it_together)
{
    static struct ear ear; /* static: a failed assertion leaves its thread running */
    open_idle(&ear);
    assert_int_equal(sandbox_signal(cluster.master[0], SIGSTOP), 0);
    bool noticed = wait_until(one_more_has_noticed, &ear, NOTICED_MS + SLACK_MS);
    assert_int_equal(sandbox_signal(cluster.master[0], SIGCONT), 0);
    assert_true(noticed);
    close_ear(&ear);
}
