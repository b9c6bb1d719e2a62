#include "museum.h"
#include "bind.h"
#include "hazard.h"
#include "levels.h"
#include "output.h"
#include "pages.h"
#include "teach.h"
#include "trace.h"
#include "web_files.h"
#include "words.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

static bool is_outcome(const char *text)
{
    int i = 0;
    while (i < HAZARD_OUTCOMES && strcmp(text, hazard_outcome_text((enum hazard_outcome)i)) != 0)
        i++;
    return i < HAZARD_OUTCOMES;
}

/* As the lab writes it: ASCII, and not cut by trace_event(). */
static bool is_told(const char *text, size_t size)
{
    const size_t length = strlen(text);
    size_t n = 0;
    while (n < length && text[n] >= ' ' && text[n] <= '~')
        n++;
    return n == length && length < size;
}

/* Returns NULL, or what the pages cannot tell of it. */
static const char *wrong_with(const json_t *record)
{
    const json_t *timeline = json_object_get(record, "timeline");
    const json_t *unit = json_object_get(json_object_get(record, "outcome"), "unit");
    if (!json_is_string(json_object_get(record, "guard")))
        return "it has no guard";
    if (!is_outcome(text_of(record, "observed")))
        return "its observed is not an outcome";
    if (unit != NULL && !json_is_string(unit))
        return "its unit is not a word";
    for (size_t i = 0; i < json_array_size(timeline); i++) {
        const json_t *event = json_array_get(timeline, i);
        if (!is_told(text_of(event, "actor"), TRACE_WHO_MAX) ||
            !is_told(text_of(event, "point"), TRACE_POINT_MAX))
            return "an actor or a point is too long or not ASCII";
    }
    return NULL;
}

/* A failure that is not in the catalogue has no page. */
static int check_records(const struct site *site)
{
    for (size_t i = 0; i < json_array_size(site->results); i++) {
        const json_t *record = json_array_get(site->results, i);
        const char *wrong =
            hazard_find(text_of(record, "hazard")) != NULL ? wrong_with(record) : NULL;
        if (wrong != NULL) {
            snprintf(site->message, MUSEUM_MESSAGE_MAX, "results[%zu], %s under \"%.60s\": %s", i,
                     text_of(record, "hazard"), text_of(record, "guard"), wrong);
            return -1;
        }
    }
    return 0;
}

/* A scene that its recording does not bear out must not be shown. */
static int check_scenes(const struct site *site)
{
    struct bound bound;
    for (size_t i = 0; i < scenes_n; i++) {
        const json_t *record = scene_record(&scenes[i], site->results);
        if (record != NULL && scene_bind(&scenes[i], record, &bound, site->message) != 0)
            return -1;
    }
    return 0;
}

static int copy_assets(const struct site *site)
{
    const char *name;
    for (size_t i = 0; (name = web_asset(i)) != NULL; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", site->out, name);
        FILE *out = output_open("loadgen", path);
        if (out != NULL)
            fputs(web_find(name), out);
        if (out == NULL || output_close("loadgen", path, out) != 0) {
            snprintf(site->message, MUSEUM_MESSAGE_MAX, "cannot write %.400s", path);
            return -1;
        }
    }
    return 0;
}

static int make_pages(const struct site *site)
{
    static const char *const languages[] = {"en", "zh"}; /* enum hazard_language */
    int failed = 0;
    for (int language = 0; language < 2 && failed == 0; language++) {
        json_t *words = words_open(languages[language]);
        failed =
            words == NULL || pages_index(site, words, language) != 0 ||
            pages_lessons(site, words, language) != 0 || pages_matrix(site, words, language) != 0 ||
            pages_levels(site, words, language) != 0 || pages_teach(site, words, language) != 0 ||
            pages_interview(site, words, language) != 0;
        json_decref(words);
    }
    return failed ? -1 : 0;
}

/* Without a recording, the page of the levels says so. */
static int open_levels(struct site *site, const json_t *recording)
{
    if (recording != NULL)
        site->levels = levels_open(recording, site->message);
    return recording == NULL || site->levels != NULL ? 0 : -1;
}

int museum_make(const struct museum_recordings *recordings, const char *out,
                char message[MUSEUM_MESSAGE_MAX])
{
    struct site site = {
        .lab = recordings->lab,
        .demo = recordings->demo,
        .results = json_object_get(recordings->lab, "results"),
        .out = out,
        .message = message,
        .commands = json_loads(web_find("commands.json"), 0, NULL),
        .which = json_loads(web_find("which.json"), 0, NULL),
        .teach = json_loads(web_find("teach.json"), 0, NULL),
        .interview = json_loads(web_find("interview.json"), 0, NULL),
    };
    int failed = -1;
    snprintf(message, MUSEUM_MESSAGE_MAX, "out of memory");
    if (!json_is_array(site.results))
        snprintf(message, MUSEUM_MESSAGE_MAX, "the lab's JSON has no results");
    else if (site.commands != NULL && site.which != NULL && site.teach != NULL &&
             site.interview != NULL && check_records(&site) == 0 && check_scenes(&site) == 0 &&
             teach_check(&site) == 0 && open_levels(&site, recordings->levels) == 0 &&
             copy_assets(&site) == 0 && levels_write_data(&site) == 0 && make_pages(&site) == 0)
        failed = 0;
    json_decref(site.levels);
    json_decref(site.commands);
    json_decref(site.which);
    json_decref(site.teach);
    json_decref(site.interview);
    return failed;
}
