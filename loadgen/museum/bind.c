#include "bind.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

static bool is_at(const json_t *event, const struct beat *beat)
{
    return strcmp(text_of(event, "actor"), beat->actor) == 0 &&
           strcmp(text_of(event, "point"), beat->point) == 0;
}

static json_int_t fence_of(const json_t *event)
{
    return json_integer_value(json_object_get(event, "fence"));
}

static bool obeys(const json_t *event, const struct beat *beat, const json_t *other)
{
    const json_t *value = json_object_get(event, "value");
    const json_t *other_value = json_object_get(other, "value");
    switch (beat->rule) {
    case BEAT_SAME_VALUE:
        return json_is_integer(value) && json_equal(value, other_value);
    case BEAT_OTHER_VALUE:
        return json_is_integer(value) && json_is_integer(other_value) &&
               !json_equal(value, other_value);
    case BEAT_HIGHER_FENCE:
        return fence_of(event) > fence_of(other);
    case BEAT_LOWER_FENCE:
        return fence_of(event) != 0 && fence_of(event) < fence_of(other);
    case BEAT_ANY:
    case BEAT_NEVER:
        break;
    }
    return true;
}

static int complain(const struct scene *scene, const struct beat *beat, const char *why,
                    char *message)
{
    snprintf(message, MUSEUM_MESSAGE_MAX, "scene %s tells \"%s\", but %s: %s %s", scene->id,
             beat->words, why, beat->actor, beat->point);
    return -1;
}

/* The first event from `from` on that the beat is about; the length of the timeline: none. */
static size_t find(const json_t *timeline, size_t from, const struct beat *beat,
                   const json_t *other)
{
    size_t i = from;
    while (i < json_array_size(timeline) && !(is_at(json_array_get(timeline, i), beat) &&
                                              obeys(json_array_get(timeline, i), beat, other)))
        i++;
    return i;
}

int scene_bind(const struct scene *scene, const json_t *record, struct bound *ret,
               char message[MUSEUM_MESSAGE_MAX])
{
    const json_t *timeline = json_object_get(record, "timeline");
    const size_t n = json_array_size(timeline);
    size_t from = 0;
    *ret = (struct bound){.n = 0};
    if (strcmp(text_of(record, "observed"), scene->outcome) != 0) {
        snprintf(message, MUSEUM_MESSAGE_MAX, "scene %s tells of a run that is %s, but it was %s",
                 scene->id, scene->outcome, text_of(record, "observed"));
        return -1;
    }
    for (const struct beat *beat = scene->beats; beat->actor != NULL; beat++) {
        const size_t other = beat->rule == BEAT_ANY ? 0 : ret->at[beat->of];
        const size_t i = find(timeline, from, beat, json_array_get(timeline, other));
        if (beat->rule == BEAT_NEVER && i < n)
            return complain(scene, beat, "this comes", message);
        if (beat->rule != BEAT_NEVER && i == n)
            return complain(scene, beat, "the record does not have this there", message);
        ret->at[ret->n++] = beat->rule == BEAT_NEVER ? from - 1 : i;
        if (beat->rule != BEAT_NEVER)
            from = i + 1;
    }
    return 0;
}

const json_t *scene_record(const struct scene *scene, const json_t *results)
{
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *record = json_array_get(results, i);
        if (strcmp(text_of(record, "hazard"), scene->hazard) == 0 &&
            strcmp(text_of(record, "guard"), scene->guard) == 0 &&
            strcmp(text_of(record, "variant"), scene->variant) == 0)
            return record;
    }
    return NULL;
}
