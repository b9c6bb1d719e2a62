/* The timeline of a run: in order of time, and without the tries that tell nothing new. */
#include "hazard_run.h"
#include "tests.h"

#include <string.h>

static struct hazard_run run;

static void begin(void)
{
    run = (struct hazard_run){.n_events = 0};
}

static void event(int64_t t_us, const char *actor, const char *point)
{
    struct run_event *new = &run.events[run.n_events++];
    new->t_us = t_us;
    snprintf(new->actor, sizeof new->actor, "%s", actor);
    snprintf(new->point, sizeof new->point, "%s", point);
}

static void assert_timeline(const char *const *points)
{
    int n = 0;
    for (; points[n] != NULL; n++) {
        assert_true(n < run.n_events);
        assert_string_equal(run.events[n].point, points[n]);
    }
    assert_int_equal(run.n_events, n);
}

static void a_try_in_vain(int64_t t_us, const char *actor)
{
    event(t_us, actor, "sends");
    event(t_us + 1, actor, "submitted");
    event(t_us + 2, actor, "answer 503 unavailable");
}

TEST_THAT(events_are_in_order_and_begin_at_0)
{
    begin();
    event(700, "B", "later");
    event(500, "A", "first");
    run_sort_events(&run);
    assert_timeline((const char *const[]){"first", "later", NULL});
    assert_int_equal(run.events[0].t_us, 0);
    assert_int_equal(run.events[1].t_us, 200);
}

TEST_THAT(tries_that_end_alike_are_counted)
{
    begin();
    for (int i = 0; i < 5; i++)
        a_try_in_vain(10 * i, "B");
    event(25, "A", "committed");
    event(100, "B", "sends");
    event(101, "B", "lock.acquired");
    run_sort_events(&run);
    assert_timeline((const char *const[]){"sends", "submitted", "answer 503 unavailable",
                                          "committed", "4 more times: answer 503 unavailable",
                                          "sends", "lock.acquired", NULL});
    assert_int_equal(run.events[4].t_us, 42);
}

TEST_THAT(one_try_in_vain_is_told_in_full)
{
    begin();
    a_try_in_vain(0, "A");
    a_try_in_vain(1, "B");
    run_sort_events(&run);
    assert_int_equal(run.n_events, 6);
}

/* It says more than that no server answered. */
TEST_THAT(a_try_that_had_the_lock_is_not_folded)
{
    begin();
    a_try_in_vain(0, "A");
    event(10, "A", "sends");
    event(11, "A", "lock.acquired");
    event(12, "A", "answer 503 unavailable");
    a_try_in_vain(20, "A");
    run_sort_events(&run);
    assert_int_equal(run.n_events, 9);
}

TEST_THAT(nodes_are_listed_so_that_two_are_not_read_as_one_number)
{
    char list[RUN_NODES_MAX];
    run_node_list("45", list);
    assert_string_equal(list, "4, 5");
    run_node_list("12345", list);
    assert_string_equal(list, "1, 2, 3, 4, 5");
    run_node_list("", list);
    assert_string_equal(list, "");
}
