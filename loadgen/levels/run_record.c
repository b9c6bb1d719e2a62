#include "run_record.h"
#include "json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The points that the museum draws or tells. */
static bool is_kept(const char *point)
{
    static const char *const points[] = {"waiting", "lock.wait", "lock.acquired", "read",
                                         "decided", "checked",   "committed",     "lock.released",
                                         "lost",    "rejected"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        if (strcmp(points[i], point) == 0)
            return true;
    return false;
}

/* The actor's letter; 0: the key is not of this run. */
static char actor_of(const struct stage *stage, const char *key)
{
    for (int i = 0; i < stage->n; i++)
        if (strcmp(stage->actors[i].key, key) == 0)
            return stage->actors[i].name;
    return 0;
}

static void add(json_t *events, int64_t t_us, const char *who, const char *point, json_t *value,
                json_int_t fence)
{
    json_array_append_new(events,
                          json_pack("[I, s, s, o, I]", (json_int_t)t_us, who, point, value, fence));
}

/* Who polls asks again and again: only the first of these is kept. */
static bool is_repeated(const json_t *events, const char *who, const char *point)
{
    const json_t *last = NULL;
    for (size_t i = 0; i < json_array_size(events); i++)
        if (strcmp(json_string_value(json_array_get(json_array_get(events, i), 1)), who) == 0)
            last = json_array_get(events, i);
    return last != NULL && strcmp(point, "lock.wait") == 0 &&
           strcmp(json_string_value(json_array_get(last, 2)), point) == 0;
}

static int add_traced(struct stage *stage, json_t *events)
{
    json_t *answer, *from;
    size_t i;
    if (stage_call(stage, "GET", "/v1/lab/trace", NULL, &answer) != 0)
        return -1;
    json_array_foreach(json_object_get(answer, "events"), i, from)
    {
        const char *point = json_text_of(from, "point");
        const char who[] = {actor_of(stage, json_text_of(from, "key")), '\0'};
        if (who[0] != '\0' && is_kept(point) && !is_repeated(events, who, point))
            add(events, json_integer_value(json_object_get(from, "t_us")), who, point,
                json_incref(json_object_get(from, "value")),
                json_integer_value(json_object_get(from, "fence")));
    }
    json_decref(answer);
    return 0;
}

/* What the requests themselves saw, and that A's key was gone. */
static void add_observed(const struct stage *stage, const struct run_moves *moves, json_t *events)
{
    char point[100];
    for (int i = 0; i < stage->n; i++) {
        const struct stage_actor *actor = &stage->actors[i];
        const char who[] = {actor->name, '\0'};
        snprintf(point, sizeof point, "answer %d%s%s", actor->status,
                 actor->problem[0] != '\0' ? " " : "", actor->problem);
        add(events, actor->sent_us, who, "sends", json_null(), 0);
        add(events, actor->answered_us, who, point, json_null(), 0);
    }
    if (moves->lease_us != 0)
        add(events, moves->lease_us, "locks", "key gone", json_null(), 0);
}

static json_int_t time_of(const json_t *event)
{
    return json_integer_value(json_array_get(event, 0));
}

/* By time: a stable sort of a few dozen. */
static json_t *sorted(const json_t *events)
{
    json_t *ret = json_array(), *event;
    size_t i;
    json_array_foreach(events, i, event)
    {
        size_t at = json_array_size(ret);
        while (at > 0 && time_of(json_array_get(ret, at - 1)) > time_of(event))
            at--;
        json_array_insert(ret, at, event);
    }
    return ret;
}

/* For each move, how many events have happened when all stood still after it. */
static json_t *ends(const json_t *events, const struct run_moves *moves)
{
    json_t *ret = json_array();
    size_t n = 0;
    for (int i = 0; i < moves->n; i++) {
        while (n < json_array_size(events) &&
               time_of(json_array_get(events, n)) < moves->ended_us[i])
            n++;
        json_array_append_new(
            ret, json_integer((json_int_t)(i + 1 < moves->n ? n : json_array_size(events))));
    }
    return ret;
}

static void from_zero(json_t *events)
{
    const json_int_t first = time_of(json_array_get(events, 0));
    json_t *event;
    size_t i;
    json_array_foreach(events, i, event)
    {
        json_array_set_new(event, 0, json_integer(time_of(event) - first));
    }
}

/* Rows of the ledger after the creation: [who, before, after, version_before, fence]. */
static json_t *ledger_rows(struct stage *stage)
{
    char path[3 * STAGE_TEXT_MAX];
    json_t *answer, *row, *rows = json_array();
    size_t i;
    snprintf(path, sizeof path, "/v1/%s/%s/ledger", stage->is_item ? "items" : "accounts",
             stage->row);
    if (stage_call(stage, "GET", path, NULL, &answer) != 0) {
        json_decref(rows);
        return NULL;
    }
    json_array_foreach(json_object_get(answer, "rows"), i, row)
    {
        const char who[] = {actor_of(stage, json_text_of(row, "txn_id")), '\0'};
        if (who[0] != '\0')
            json_array_append_new(rows,
                                  json_pack("[s, O, O, O, O]", who, json_object_get(row, "before"),
                                            json_object_get(row, "after"),
                                            json_object_get(row, "version_before"),
                                            json_object_get(row, "fence")));
    }
    json_decref(answer);
    return rows;
}

static int audit(struct stage *stage, json_t *record)
{
    char path[2 * STAGE_TEXT_MAX];
    json_t *answer;
    json_int_t expected = stage->start;
    snprintf(path, sizeof path, "/v1/audit?resource=%s:%s", stage->is_item ? "item" : "account",
             stage->row);
    if (stage_call(stage, "GET", path, NULL, &answer) != 0)
        return -1;
    for (int i = 0; i < stage->n; i++)
        if (stage->actors[i].status == 201)
            expected += stage->actors[i].amount;
    const json_t *row = json_array_get(json_object_get(answer, "resources"), 0);
    json_object_set(record, "final", json_object_get(row, "current"));
    json_object_set(record, "lost_updates", json_object_get(row, "lost_updates"));
    json_object_set_new(record, "expected", json_integer(expected));
    json_decref(answer);
    return 0;
}

json_t *run_record(struct stage *stage, const struct run_moves *moves)
{
    json_t *raw = json_array(), *record = json_object(), *events = NULL, *rows = NULL;
    add_observed(stage, moves, raw);
    bool good = add_traced(stage, raw) == 0 && audit(stage, record) == 0 &&
                (rows = ledger_rows(stage)) != NULL;
    if (good) {
        events = sorted(raw);
        json_object_set_new(record, "moves", json_string(moves->who));
        json_object_set_new(record, "ends", ends(events, moves));
        from_zero(events);
        json_object_set_new(record, "events", events);
        json_object_set_new(record, "rows", rows);
    }
    json_decref(raw);
    if (good)
        return record;
    json_decref(record);
    return NULL;
}
