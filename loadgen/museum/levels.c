#include "levels.h"
#include "json_text.h"
#include "lockkit.h"
#include "museum.h"
#include "output.h"
#include "trace.h"
#include "web_files.h"
#include "words.h"

#include <stdbool.h>
#include <string.h>

/* Points that are told of a move; the picture shows the others. */
static const char *const told[] = {"lock.wait", "lock.acquired", "read",   "decided",
                                   "committed", "lost",          "answer", "key gone"};
enum { TOLD = sizeof told / sizeof *told };

static const json_t *tree_of(const json_t *level)
{
    return json_object_get(level, "tree");
}

static size_t moves_n(const json_t *run)
{
    return strlen(json_text_of(run, "moves"));
}

bool levels_keeps(const json_t *run)
{
    return json_equal(json_object_get(run, "final"), json_object_get(run, "expected"));
}

static const json_t *find(const json_t *all, const char *id)
{
    const json_t *levels = json_object_get(all, "levels");
    for (size_t i = 0; i < json_array_size(levels); i++)
        if (strcmp(json_text_of(json_array_get(levels, i), "id"), id) == 0)
            return json_array_get(levels, i);
    return NULL;
}

const json_t *levels_find(const struct site *site, const char *id)
{
    return find(site->levels, id);
}

/* -- checks ------------------------------------------------------------------------------------
 */

static bool is_event(const json_t *event)
{
    const json_t *value = json_array_get(event, 3);
    return json_array_size(event) == 5 && json_is_integer(json_array_get(event, 0)) &&
           json_is_string(json_array_get(event, 1)) && json_is_string(json_array_get(event, 2)) &&
           (json_is_integer(value) || json_is_null(value)) &&
           json_is_integer(json_array_get(event, 4));
}

static bool is_row(const json_t *row)
{
    bool numbers = json_array_size(row) == 5 && json_is_string(json_array_get(row, 0));
    for (size_t i = 1; i < 5; i++)
        numbers = numbers && json_is_integer(json_array_get(row, i));
    return numbers;
}

/* Its moves are letters, and each ends at one of its events. */
static bool is_run(const json_t *run)
{
    const json_t *events = json_object_get(run, "events"), *ends = json_object_get(run, "ends");
    const json_t *rows = json_object_get(run, "rows");
    const char *moves = json_text_of(run, "moves");
    json_int_t last = 0;
    bool good = moves[0] != '\0' && moves[strspn(moves, "ABCL")] == '\0' &&
                json_array_size(ends) == strlen(moves);
    for (size_t i = 0; i < json_array_size(ends); i++) {
        const json_int_t end = json_integer_value(json_array_get(ends, i));
        good = good && end >= last && end <= (json_int_t)json_array_size(events);
        last = end;
    }
    for (size_t i = 0; i < json_array_size(events); i++)
        good = good && is_event(json_array_get(events, i));
    for (size_t i = 0; i < json_array_size(rows); i++)
        good = good && is_row(json_array_get(rows, i));
    return good && last > 0;
}

/* Moves, without ends of leases, until the loss; 0: none. */
static json_int_t moves_to_loss(const json_t *run)
{
    const json_int_t at = json_integer_value(json_object_get(run, "lost_at"));
    const char *moves = json_text_of(run, "moves");
    json_int_t n = 0;
    for (json_int_t i = 0; i < at && moves[i] != '\0'; i++)
        n += moves[i] != 'L';
    return n;
}

static int check_runs(const json_t *data, const json_t *runs, char *message)
{
    json_int_t losing = 0, fewest = 0;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        if (!is_run(run)) {
            snprintf(message, MUSEUM_MESSAGE_MAX, "level %.60s: run %zu has another form",
                     json_text_of(data, "id"), i);
            return -1;
        }
        const json_int_t n = moves_to_loss(run);
        losing += !levels_keeps(run);
        if (!levels_keeps(run) && (fewest == 0 || n < fewest))
            fewest = n;
    }
    if ((json_int_t)json_array_size(runs) ==
            json_integer_value(json_object_get(data, "schedules")) &&
        losing == json_integer_value(json_object_get(data, "losing")) &&
        fewest == json_integer_value(json_object_get(data, "fewest")))
        return 0;
    snprintf(message, MUSEUM_MESSAGE_MAX,
             "level %.60s: %zu schedules were recorded, %lld lose, with %lld moves at the fewest; "
             "its data say otherwise",
             json_text_of(data, "id"), json_array_size(runs), (long long)losing, (long long)fewest);
    return -1;
}

/* A level of the data gets its runs. */
static int add_runs(const json_t *recording, json_t *level, char *message)
{
    json_t *runs = json_object_get(tree_of(find(recording, json_text_of(level, "id"))), "runs");
    if (json_object_get(level, "points") == NULL) /* it is made of others */
        return 0;
    if (runs == NULL) {
        snprintf(message, MUSEUM_MESSAGE_MAX, "level %.60s was not recorded",
                 json_text_of(level, "id"));
        return -1;
    }
    if (check_runs(level, runs, message) != 0)
        return -1;
    json_object_set(level, "runs", runs);
    return 0;
}

json_t *levels_open(const json_t *recording, char *message)
{
    json_t *all = json_loads(web_find("levels.json"), 0, NULL), *level;
    size_t i;
    int failed = all == NULL ? -1 : 0;
    json_array_foreach(json_object_get(all, "levels"), i, level)
    {
        if (json_object_get(level, "begins") == NULL)
            json_object_set_new(level, "begins", json_string(""));
        if (failed == 0)
            failed = add_runs(recording, level, message);
    }
    if (failed == 0)
        return all;
    json_decref(all);
    return NULL;
}

/* -- the data of the script --------------------------------------------------------------------
 */

/* What the player's view wants to know, beside the events. A lease is not drawn: where its end is
 * no move, it outlasts the run. */
static json_t *record_json(const struct site *site, const json_t *level)
{
    static const char *const names[] = {"A", "B", "C"};
    const char *guard = json_text_of(level, "guard");
    const lk_provider_info *lock = lk_provider_find(guard);
    const json_t *subject =
        json_object_get(json_object_get(site->levels, "subjects"), json_text_of(level, "subject"));
    json_t *clients = json_array();
    for (size_t i = 0; i < json_array_size(json_object_get(level, "points")) && i < 3; i++)
        json_array_append_new(clients, json_string(names[i]));
    return json_pack("{s:s, s:O, s:I, s:b, s:o, s:[], s:b, s:b, s:b, s:b, s:i, s:i}", "guard",
                     guard, "fence", json_object_get(level, "fence"), "initial",
                     json_integer_value(json_object_get(subject, "start")), "row", 1, "clients",
                     clients, "others", "lock", lock != NULL, "owner",
                     lock != NULL && (lock->caps & LK_CAP_OWNER) != 0, "shared", 0, "local", 0,
                     "lease_ms", 0, "instances", 1);
}

int levels_write_data(const struct site *site)
{
    char path[4096];
    if (site->levels == NULL)
        return 0;
    json_t *levels = json_deep_copy(json_object_get(site->levels, "levels")), *level;
    json_t *points = json_array();
    size_t i;
    json_array_foreach(levels, i, level)
    {
        if (json_object_get(level, "runs") != NULL)
            json_object_set_new(level, "record", record_json(site, level));
    }
    for (i = 0; i < TOLD; i++)
        json_array_append_new(points, json_string(told[i]));
    json_t *all = json_pack("{s:o, s:o}", "told", points, "levels", levels);
    snprintf(path, sizeof path, "%s/levels-data.js", site->out);
    FILE *out = output_open("loadgen", path);
    if (out != NULL) {
        fputs("'use strict';\nMuseum.levelData = ", out);
        page_json(all, out);
        fputs(";\n", out);
    }
    json_decref(all);
    if (out != NULL && output_close("loadgen", path, out) == 0)
        return 0;
    snprintf(site->message, MUSEUM_MESSAGE_MAX, "cannot write %.400s", path);
    return -1;
}

/* -- lists -------------------------------------------------------------------------------------
 */

static bool has_point(const json_t *run, const char *point)
{
    const json_t *events = json_object_get(run, "events");
    bool found = false;
    for (size_t i = 0; i < json_array_size(events); i++)
        found |=
            strcmp(json_string_value(json_array_get(json_array_get(events, i), 2)), point) == 0;
    return found;
}

const json_t *levels_solution(const json_t *level)
{
    static const char *const points[] = {"lost", "lock.wait", "read"};
    const json_t *runs = json_object_get(level, "runs"), *run;
    const json_int_t fewest = json_integer_value(json_object_get(level, "fewest"));
    for (size_t i = 0; fewest > 0 && i < json_array_size(runs); i++)
        if (moves_to_loss(run = json_array_get(runs, i)) == fewest)
            return run;
    for (size_t k = 0; k < sizeof points / sizeof *points; k++)
        for (size_t i = 0; i < json_array_size(runs); i++)
            if (has_point(run = json_array_get(runs, i), points[k]))
                return run;
    return NULL;
}

/* The run as the lab writes one, for trace.h. */
static json_t *timeline(const json_t *run)
{
    json_t *events = json_array(), *event;
    size_t i;
    json_array_foreach(json_object_get(run, "events"), i, event)
    {
        json_array_append_new(
            events,
            json_pack("{s:O, s:O, s:O, s:O, s:O}", "t_us", json_array_get(event, 0), "actor",
                      json_array_get(event, 1), "point", json_array_get(event, 2), "value",
                      json_array_get(event, 3), "fence", json_array_get(event, 4)));
    }
    return json_pack("{s:o}", "timeline", events);
}

static bool is_told(const char *point)
{
    bool found = strncmp(point, "answer ", 7) == 0;
    for (size_t i = 0; i < TOLD; i++)
        found |= strcmp(told[i], point) == 0;
    return found;
}

void levels_tell(const struct page *page, const json_t *run, size_t n)
{
    const json_t *ends = json_object_get(run, "ends");
    json_t *record = timeline(run);
    const json_int_t from = n > 0 ? json_integer_value(json_array_get(ends, n - 1)) : 0;
    const char *join = "";
    for (json_int_t i = from; n < moves_n(run) && i < json_integer_value(json_array_get(ends, n));
         i++) {
        struct trace_event event;
        if (!trace_event(record, (size_t)i, &event) || !is_told(event.point))
            continue;
        html_escape(join, page->out);
        trace_write(&event, page->words, page->out);
        join = words_get(page->words, "level.join");
    }
    json_decref(record);
}
