/* The second reader of a record of the lab: decides which facts must be told of it. */
#ifndef TOLD_READER_H
#define TOLD_READER_H

#include "tests.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { IDS_MAX = 24 };

struct event {
    const char *actor, *point;
    bool has_value;
    json_int_t value, fence;
};

static struct event events[200];
static int n_events;
static const json_t *result, *outcome;

static json_int_t number(const char *name)
{
    return json_integer_value(json_object_get(outcome, name));
}

static void read_record(const json_t *from)
{
    const json_t *timeline = json_object_get(from, "timeline");
    result = from;
    outcome = json_object_get(from, "outcome");
    n_events = 0;
    for (size_t i = 0; i < json_array_size(timeline); i++) {
        const json_t *one = json_array_get(timeline, i), *value = json_object_get(one, "value");
        events[n_events++] = (struct event){
            .actor = json_string_value(json_object_get(one, "actor")),
            .point = json_string_value(json_object_get(one, "point")),
            .has_value = json_is_integer(value),
            .value = json_integer_value(value),
            .fence = json_integer_value(json_object_get(one, "fence")),
        };
    }
}

static bool is(int i, const char *actor, const char *point)
{
    return strcmp(events[i].actor, actor) == 0 && strcmp(events[i].point, point) == 0;
}

static const char *named(const char *name)
{
    return json_string_value(json_object_get(result, name));
}

/* Since its last request: changes made, locks taken and released, where it stands at the end. */
struct state {
    int changes, refusals;
    const char *answer;
    json_int_t delta; /* of the last change decided */
};

static struct state state_of(const char *actor)
{
    struct state state = {.answer = ""};
    json_int_t read = 0;
    for (int i = 0; i < n_events; i++) {
        if (is(i, actor, "sends"))
            state.changes = state.refusals = 0;
        else if (is(i, actor, "read"))
            read = events[i].value;
        else if (is(i, actor, "decided") && events[i].has_value)
            state.delta = events[i].value - read;
        else if (is(i, actor, "committed"))
            state.changes += events[i].has_value && events[i].value != read;
        else if (is(i, actor, "rejected"))
            state.refusals++;
        else if (strcmp(events[i].actor, actor) == 0 &&
                 (strncmp(events[i].point, "answer", 6) == 0 ||
                  strcmp(events[i].point, "no answer") == 0))
            state.answer = events[i].point;
    }
    return state;
}

static bool went_in_beside(const char *other, const char *one)
{
    const char *last = ""; /* what `one` did last with its lock */
    for (int i = 0; i < n_events; i++) {
        if (strcmp(events[i].actor, one) == 0 || is(i, "watchdog", "lock.release")) {
            static const char *const turns[] = {"lock.acquired", "lock.release", "killed",
                                                "rejected", "lost"};
            for (size_t t = 0; t < sizeof turns / sizeof turns[0]; t++)
                if (strcmp(events[i].point, turns[t]) == 0)
                    last = turns[t];
        }
        if (is(i, other, "lock.acquired") && strcmp(last, "lock.acquired") == 0)
            return true;
    }
    return false;
}

static bool committed_without_lock(const char *actor)
{
    int held = 0, taken = 0;
    json_int_t read = 0;
    for (int i = 0; i < n_events; i++) {
        if (is(i, actor, "sends"))
            held = taken = 0;
        else if (is(i, actor, "lock.acquired"))
            held++, taken++;
        else if (is(i, actor, "lock.released") && held > 0)
            held--;
        else if (is(i, actor, "read"))
            read = events[i].value;
        else if (is(i, actor, "committed") && taken > 0 && held == 0 &&
                 (!events[i].has_value || events[i].value != read))
            return true;
    }
    return false;
}

static bool was_refused_by_fence(const char *actor)
{
    bool checked = false, lost_itself = false;
    json_int_t newest = 0;
    if (!json_is_true(json_object_get(result, "fence")))
        return false;
    for (int i = 0; i < n_events; i++) {
        const bool own = strcmp(events[i].actor, actor) == 0;
        if (own && strcmp(events[i].point, "lost") == 0)
            lost_itself |= !checked;
        else if (own && strcmp(events[i].point, "checked") == 0)
            checked = true;
        else if (own &&
                 (strcmp(events[i].point, "read") == 0 || strcmp(events[i].point, "decided") == 0))
            checked = false;
        else if (!own && strcmp(events[i].point, "committed") == 0 && events[i].fence > newest)
            newest = events[i].fence;
        else if (own && strcmp(events[i].point, "rejected") == 0 && events[i].fence > 0 &&
                 events[i].fence < newest && !lost_itself)
            return true;
    }
    return false;
}

static const char *expect_figures(void)
{
    static const char *const actors[] = {"A", "B", "C"};
    const json_int_t off = number("final") - number("expected_final");
    bool one = false;
    if (strcmp(json_string_value(json_object_get(outcome, "unit")), "sold") == 0)
        return number("oversold") > 0 ? "oversold" : off != 0 ? "sold-wrong" : "sold-right";
    if (off == 0)
        return "balance-right";
    for (int i = 0; i < 3; i++) {
        const struct state state = state_of(actors[i]);
        one |= strcmp(state.answer, "answer 201") == 0 && state.delta == -off;
    }
    return off < 0                              ? "too-much"
           : one && number("lost_updates") == 1 ? "not-deducted"
                                                : "too-little";
}

static bool was_paid_after_it_was_closed(void)
{
    bool closed = false, paid = false;
    for (int i = 0; i < n_events; i++) {
        closed |= is(i, "tasks", "A's order is closed");
        paid |= closed && is(i, "A", "answer 201");
    }
    return paid;
}

static bool is_timed(const char *hazard)
{
    static const char *const timed[] = {"lost-wake-up", "silent-subscription",
                                        "reply-of-acquire-lost", "reply-of-release-lost",
                                        "redlock-orphan"};
    bool found = false;
    for (size_t i = 0; i < sizeof timed / sizeof timed[0]; i++)
        found |= strcmp(hazard, timed[i]) == 0;
    return found;
}

struct ids {
    const char *list[IDS_MAX];
    int n;
};

static void want(struct ids *ids, bool so, const char *id)
{
    if (so)
        ids->list[ids->n++] = id;
}

static void expect_ids(struct ids *ids)
{
    static const char *const actors[] = {"A", "B", "C"};
    const json_t *pair = json_object_get(outcome, "counterexample");
    *ids = (struct ids){.n = 0};
    want(ids, true, expect_figures());
    want(ids, was_paid_after_it_was_closed(), "paid-and-closed");
    want(ids, number("duplicates") > 0, "twice");
    want(ids, number("lost_updates") > 0, "overwritten");
    want(ids,
         json_equal(json_object_get(json_array_get(pair, 0), "version_before"),
                    json_object_get(json_array_get(pair, 1), "version_before")) &&
             json_array_size(pair) == 2,
         "fork");
    for (int i = 0; i < 3; i++)
        want(ids, committed_without_lock(actors[i]), "released-early");
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            want(ids,
                 i != j && strcmp(named("hazard"), "opposite-order") != 0 &&
                     went_in_beside(actors[j], actors[i]),
                 "two-holders");
    for (int i = 0; i < 3; i++)
        want(ids, was_refused_by_fence(actors[i]), "fence-refused");
    for (int i = 0; i < 3; i++) {
        const struct state state = state_of(actors[i]);
        const bool late = strstr(state.answer, "lock-timeout") != NULL;
        want(ids, late, "timed-out");
        want(ids, strcmp(state.answer, "no answer") == 0, "no-answer");
        want(ids,
             strncmp(state.answer, "answer ", 7) == 0 && strcmp(state.answer, "answer 201") != 0 &&
                 !late && state.refusals > 0 && state.changes == 0,
             "refused");
    }
    want(ids, json_object_get(outcome, "wake_ups_per_release") != NULL, "woken");
    want(ids, json_object_get(outcome, "overtakings") != NULL, "overtaken");
    want(ids, is_timed(named("hazard")), "late");
}

/* Said exactly as often as it is so. */
static void facts_are_those_of_the_record(void)
{
    const json_t *facts = json_object_get(result, "facts"), *fact;
    struct ids ids;
    size_t i;
    expect_ids(&ids);
    json_array_foreach(facts, i, fact)
    {
        const char *id = json_string_value(json_object_get(fact, "id"));
        int k = 0;
        while (k < ids.n && strcmp(ids.list[k], id) != 0)
            k++;
        if (k == ids.n)
            fail_msg("%s %s (%s): told, and not so: %s", named("hazard"), named("guard"),
                     named("variant"), json_string_value(json_object_get(fact, "en")));
        ids.list[k] = ids.list[--ids.n];
    }
    if (ids.n > 0)
        fail_msg("%s %s (%s): so, and not told: %s", named("hazard"), named("guard"),
                 named("variant"), ids.list[0]);
}

#endif
