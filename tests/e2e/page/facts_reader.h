/* The second reader of a round in step mode: decides from the service's trace, the answers and the
 * ledger which facts must be said. */
#ifndef FACTS_READER_H
#define FACTS_READER_H

#include "tests.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ACTORS_MAX = 3, FACTS_MAX = 40, FACT_LONGEST = 64 };

struct actor {
    const char *name, *key, *problem;
    bool ok;
    int got, waits, frees, freed, checked, decided, committed,
        end;               /* place in the trace; -1: never */
    int reads[8], n_reads; /* their places */
    json_int_t read, left, fence;
};

static struct actor actors[ACTORS_MAX];
static int n_actors;
static const json_t *events, *outcome;

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static void read_actor(const json_t *from, struct actor *actor)
{
    const json_t *answer = json_array_get(json_object_get(from, "answers"), 0), *event;
    size_t i;
    *actor = (struct actor){.name = text_of(from, "name"),
                            .key = text_of(from, "key"),
                            .problem = text_of(answer, "problem"),
                            .ok = json_is_true(json_object_get(answer, "ok")),
                            .got = -1,
                            .waits = -1,
                            .frees = -1,
                            .freed = -1,
                            .checked = -1,
                            .decided = -1,
                            .committed = -1,
                            .end = -1};
    json_array_foreach(events, i, event)
    {
        const char *point = text_of(event, "point");
        const int at = (int)i;
        const json_int_t value = json_integer_value(json_object_get(event, "value"));
        const struct {
            const char *point;
            int *at;
        } places[] = {{"lock.acquired", &actor->got},  {"lock.wait", &actor->waits},
                      {"lock.release", &actor->frees}, {"lock.released", &actor->freed},
                      {"checked", &actor->checked},    {"decided", &actor->decided},
                      {"released", &actor->end},       {"rejected", &actor->end}};
        if (strcmp(text_of(event, "key"), actor->key) != 0)
            continue;
        for (size_t k = 0; k < sizeof places / sizeof places[0]; k++)
            if (strcmp(point, places[k].point) == 0)
                *places[k].at = at;
        if (strcmp(point, "read") == 0) {
            actor->reads[actor->n_reads++] = at;
            actor->read = value;
        }
        if (strcmp(point, "committed") == 0) {
            actor->committed = at;
            actor->left = value;
        }
        if (json_integer_value(json_object_get(event, "fence")) != 0)
            actor->fence = json_integer_value(json_object_get(event, "fence"));
    }
}

static bool wrote(const struct actor *actor)
{
    return actor->ok && actor->committed >= 0 && actor->left != actor->read;
}

static int last_read(const struct actor *actor)
{
    return actor->n_reads > 0 ? actor->reads[actor->n_reads - 1] : -1;
}

/* Where it leaves: it begins to release, or has its answer. */
static int leaves(const struct actor *actor)
{
    return actor->frees >= 0 ? actor->frees : actor->end;
}

/* Who is the first to come in while this one is inside; NULL: nobody. */
static const struct actor *intruder_of(const struct actor *one)
{
    const struct actor *first = NULL;
    for (int i = 0; i < n_actors && one->got >= 0; i++) {
        const struct actor *other = &actors[i];
        if (other != one && other->got > one->got && other->got < leaves(one) &&
            (first == NULL || other->got < first->got))
            first = other;
    }
    return first;
}

static bool was_deleted_between(int from, int to)
{
    for (int i = from; i < to; i++)
        if (strcmp(text_of(json_array_get(events, (size_t)i), "point"), "lock.freed") == 0)
            return true;
    return false;
}

struct facts {
    char list[FACTS_MAX][FACT_LONGEST];
    int n;
};

static void want(struct facts *facts, bool so, const char *id, const char *name, const char *other)
{
    if (so)
        snprintf(facts->list[facts->n++], FACT_LONGEST, "%s %s%s%s", id, name, *other ? " " : "",
                 other);
}

static void want_of_pair(struct facts *facts, const struct actor *one, const struct actor *other)
{
    const bool both = wrote(one) && wrote(other);
    bool direct = true; /* nobody wrote between the one's write and the other's read */
    for (int i = 0; i < n_actors; i++)
        direct &= &actors[i] == one || &actors[i] == other || !wrote(&actors[i]) ||
                  actors[i].committed < one->committed || actors[i].committed > last_read(other);
    want(facts,
         both && last_read(other) < one->committed && one->committed < other->committed &&
             other->read != one->left,
         "overwritten", one->name, other->name);
    want(facts,
         wrote(one) && other->n_reads > 0 && other->read == one->left &&
             last_read(other) > one->decided && direct,
         "chained", one->name, other->name);
    want(facts,
         strcmp(one->problem, "lock-lost") == 0 && one->checked > one->decided && other->ok &&
             other->fence > one->fence && other->committed >= 0 && other->committed < one->end,
         "fenceRefused", one->name, other->name);
}

/* Whom it waits for: of those who are inside then, the one that came last. */
static const struct actor *holder_at(int at, const struct actor *but)
{
    const struct actor *last = NULL;
    for (int i = 0; i < n_actors; i++)
        if (&actors[i] != but && actors[i].got >= 0 && actors[i].got < at &&
            leaves(&actors[i]) > at && (last == NULL || actors[i].got > last->got))
            last = &actors[i];
    return last;
}

static void want_of_intruder(struct facts *facts, const struct actor *one)
{
    const struct actor *other = intruder_of(one), *third = NULL, *waiter = NULL;
    char names[2 * FACT_LONGEST / 8];
    if (other == NULL)
        return;
    want(facts, true, "twoInside", one->name, other->name);
    const bool deleted = was_deleted_between(one->got, other->got);
    for (int i = 0; i < n_actors; i++) {
        const struct actor *each = &actors[i];
        if (each == one || each == other)
            continue;
        if (each->got >= 0 && each->got < one->got && each->frees > one->got &&
            each->frees < other->got)
            third = each;
        if (each->waits > one->freed && each->waits < leaves(other) &&
            !(each->got >= 0 && each->got < leaves(other)))
            waiter = each;
    }
    want(facts, deleted, "deleted", one->name, other->name);
    if (!deleted && third != NULL) {
        snprintf(names, sizeof names, "%s %s", other->name, third->name);
        want(facts, true, "foreignRelease", one->name, names);
    }
    want(facts,
         one->frees >= 0 && one->freed > other->got && one->freed < leaves(other) && waiter != NULL,
         "keptOut", one->name, other->name);
}

static void expect_facts(struct facts *facts)
{
    *facts = (struct facts){.n = 0};
    for (int i = 0; i < n_actors; i++) {
        const struct actor *one = &actors[i], *holder;
        for (int k = 0; k < n_actors; k++)
            if (k != i)
                want_of_pair(facts, one, &actors[k]);
        want_of_intruder(facts, one);
        holder = one->waits >= 0 ? holder_at(one->waits, one) : NULL;
        want(facts, holder != NULL, "waited", one->name, holder ? holder->name : "");
        want(facts,
             strcmp(one->problem, "lock-lost") == 0 && one->decided >= 0 &&
                 one->checked < one->decided,
             "checkRefused", one->name, "");
        want(facts, one->ok && one->n_reads > 1, "readAgain", one->name, "");
        want(facts, strcmp(one->problem, "sold-out") == 0, "soldOut", one->name, "");
    }
}

static void print_order(void)
{
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        fprintf(stderr, "  %2zu %s %s %lld %lld\n", i, text_of(event, "key"),
                text_of(event, "point"),
                (long long)json_integer_value(json_object_get(event, "value")),
                (long long)json_integer_value(json_object_get(event, "fence")));
    }
}

/* Said exactly as often as it is so. kinds counts the orders in which each kind of fact is said. */
static void check_order(const json_t *from)
{
    const json_t *list = json_object_get(from, "actors"), *said = json_object_get(from, "said");
    struct facts facts;
    bool overwritten = false;
    size_t i;
    json_t *one;
    outcome = from;
    events = json_object_get(from, "events");
    n_actors = 0;
    json_array_foreach(list, i, one)
    {
        assert_int_equal(json_array_size(json_object_get(one, "answers")), 1);
        read_actor(one, &actors[n_actors++]);
    }
    expect_facts(&facts);
    json_array_foreach(said, i, one)
    {
        int k = 0;
        overwritten |= strncmp(json_string_value(one), "overwritten", 11) == 0;
        while (k < facts.n && strcmp(facts.list[k], json_string_value(one)) != 0)
            k++;
        if (k == facts.n) {
            print_order();
            fail_msg("said, and not so: %s", json_string_value(one));
        }
        facts.n--;
        memmove(facts.list[k], facts.list[facts.n], FACT_LONGEST);
    }
    if (facts.n > 0) {
        print_order();
        fail_msg("so, and not said: %s", facts.list[0]);
    }
    /* the ledger's word on the same */
    assert_true(overwritten == (json_integer_value(json_object_get(from, "forks")) > 0));
}

#endif
