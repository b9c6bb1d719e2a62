/* A scene is shown only if its record bears out each of its sentences. */
#include "bind.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

static char message[MUSEUM_MESSAGE_MAX];

static void event(json_t *timeline, const char *actor, const char *point, json_int_t value,
                  json_int_t fence)
{
    json_array_append_new(
        timeline, json_pack("{s:i, s:s, s:s, s:o, s:I}", "t_us", (int)json_array_size(timeline),
                            "actor", actor, "point", point, "value",
                            value < 0 ? json_null() : json_integer(value), "fence", fence));
}

static json_t *record_of(json_t *timeline)
{
    return json_pack("{s:s, s:o}", "observed", "unsafe", "timeline", timeline);
}

static const struct scene told = {.id = "told",
                                  .outcome = "unsafe",
                                  .beats = {BEAT("A", "read", "read"),
                                            {"B", "read", "same", BEAT_SAME_VALUE, 0},
                                            {"B", "committed", "newer", BEAT_HIGHER_FENCE, 0},
                                            {"A", "committed", "late", BEAT_LOWER_FENCE, 2},
                                            NEVER("B", "read", "never"),
                                            {0}}};

/* A and B read these values; A commits under this fence. */
static json_t *race(json_int_t a_read, json_int_t b_read, json_int_t a_fence)
{
    json_t *timeline = json_array();
    event(timeline, "A", "sends", -1, 0);
    event(timeline, "A", "read", a_read, 7);
    event(timeline, "B", "read", b_read, 8);
    event(timeline, "B", "committed", 700, 8);
    event(timeline, "A", "committed", 800, a_fence);
    return record_of(timeline);
}

static int bind(json_t *record, struct bound *ret)
{
    message[0] = '\0';
    const int failed = scene_bind(&told, record, ret, message);
    json_decref(record);
    return failed;
}

TEST_THAT(each_beat_has_its_event)
{
    struct bound bound;
    assert_int_equal(bind(race(1000, 1000, 7), &bound), 0);
    assert_int_equal(bound.n, 5);
    const size_t at[] = {1, 2, 3, 4, 4};
    assert_memory_equal(bound.at, at, sizeof at);
}

TEST_THAT(a_sequential_run_is_not_told_as_a_race)
{
    struct bound bound;
    assert_int_equal(bind(race(1000, 800, 7), &bound), -1);
    assert_non_null(strstr(message, "same"));
}

TEST_THAT(a_newer_fence_is_not_late)
{
    struct bound bound;
    assert_int_equal(bind(race(1000, 1000, 9), &bound), -1);
    assert_non_null(strstr(message, "late"));
}

/* On a busy machine B has the lock, and has read, before A's thread notes that its release is done.
 */
TEST_THAT(a_release_that_is_noted_late_is_told_too)
{
    const struct scene *scene = scenes;
    struct bound bound;
    json_t *timeline = json_array();
    while (strcmp(scene->id, "unknown") != 0)
        scene++;
    event(timeline, "A", "read", 1000, 7);
    event(timeline, "store", "A's COMMIT is held, its connection is gone", -1, 0);
    event(timeline, "A", "lock.release", -1, 0);
    event(timeline, "B", "lock.acquired", -1, 0);
    event(timeline, "B", "read", 1000, 8);
    event(timeline, "A", "lock.released", -1, 0);
    event(timeline, "store", "no transaction is open", -1, 0);
    event(timeline, "B", "committed", 700, 8);
    event(timeline, "A", "answer 201", -1, 0);
    json_t *record = record_of(timeline);
    assert_int_equal(scene_bind(scene, record, &bound, message), 0);
    json_decref(record);
}

TEST_THAT(what_never_happens_must_not_happen)
{
    struct bound bound;
    json_t *record = race(1000, 1000, 7);
    event(json_object_get(record, "timeline"), "B", "read", 800, 9);
    assert_int_equal(bind(record, &bound), -1);
    assert_non_null(strstr(message, "never"));
}

TEST_THAT(another_outcome_is_not_told)
{
    struct bound bound;
    json_t *record = race(1000, 1000, 7);
    json_object_set_new(record, "observed", json_string("safe"));
    assert_int_equal(bind(record, &bound), -1);
    assert_non_null(strstr(message, "safe"));
}
