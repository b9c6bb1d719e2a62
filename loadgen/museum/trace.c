#include "trace.h"
#include "hazard.h"
#include "lockkit.h"
#include "web_files.h"
#include "words.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

/* Notes of the lab with something variable in them. The first that matches counts. */
static const struct {
    const char *pattern, *words;
} notes[] = {
    {"* more times: answer *", "more-times"},
    {"answer *", "answer"},
    {"nodes * killed", "nodes-killed"},
    {"nodes * start empty", "nodes-empty"},
    {"clock of node * leaps", "clock-leaps"},
    {"*'s subscription goes silent", "silent"},
    {"*'s command is lost", "command-lost"},
    {"*'s answer is lost, nodes *", "answer-lost-nodes"},
    {"*'s answer is lost", "answer-lost"},
    {"*'s COMMIT is held, its connection is gone", "commit-held"},
    {"sends * orders", "crowd-sends"},
    {"* of * served", "crowd-served"},
    {"* wait", "crowd-wait"},
    {"* woken", "crowd-woken"},
    {"* accepted, * turned away, * failed; * asked again", "crowd-done"},
    {"gone: * times together, * saw a change", "readers-gone"},
};

/* Each '*' takes what is before the next text of the pattern. */
static bool matches(const char *pattern, const char *text, char parts[TRACE_PARTS][TRACE_PART_MAX])
{
    int n = 0;
    for (; *pattern != '\0'; pattern++) {
        if (*pattern != '*') {
            if (*text++ != *pattern)
                return false;
            continue;
        }
        char next[TRACE_POINT_MAX];
        snprintf(next, sizeof next, "%.*s", (int)strcspn(pattern + 1, "*"), pattern + 1);
        const char *end = next[0] != '\0' ? strstr(text, next) : text + strlen(text);
        if (end == NULL || n == TRACE_PARTS)
            return false;
        snprintf(parts[n++], TRACE_PART_MAX, "%.*s", (int)(end - text), text);
        text = end;
    }
    return *text == '\0';
}

/* "u17 read" of the crowd and "shop-1 read" of the tasks have the name of one of many in front. */
static void split_name(struct trace_event *event, const char *actor, const char *point)
{
    const size_t length = strcspn(point, " ");
    const bool of_crowd = strcmp(actor, "crowd") == 0 && point[0] == 'u' && length > 1 &&
                          strspn(point + 1, "0123456789") == length - 1;
    const bool of_tasks = strcmp(actor, "tasks") == 0 && strncmp(point, "shop-", 5) == 0;
    if ((of_crowd || of_tasks) && point[length] == ' ') {
        snprintf(event->point, sizeof event->point, "%s", point + length + 1);
        if (of_crowd)
            snprintf(event->who, sizeof event->who, "%.*s", (int)length, point);
        else
            snprintf(event->who, sizeof event->who, "%s", actor);
        return;
    }
    snprintf(event->who, sizeof event->who, "%s", actor);
    snprintf(event->point, sizeof event->point, "%s", point);
}

/* A COMMIT that is held arrives if its client never saw one, and is told 201 in the end. */
static void note_landing(const json_t *record, size_t i, struct trace_event *event)
{
    const json_t *timeline = json_object_get(record, "timeline");
    bool told = false, wrote = false;
    size_t held = 0;
    if (strcmp(event->point, "no transaction is open") != 0)
        return;
    while (held < i && !matches("*'s COMMIT is held, its connection is gone",
                                text_of(json_array_get(timeline, held), "point"), event->parts))
        held++;
    for (size_t j = 0; j < json_array_size(timeline); j++) {
        const json_t *other = json_array_get(timeline, j);
        const char *point = text_of(other, "point");
        if (strcmp(text_of(other, "actor"), event->parts[0]) != 0)
            continue;
        if (j < held && strcmp(point, "decided") == 0)
            event->value = json_integer_value(json_object_get(other, "value"));
        wrote |= strcmp(point, "committed") == 0;
        told |= strcmp(point, "answer 201") == 0;
    }
    event->landed = event->has_value = held < i && told && !wrote;
    if (event->landed)
        strcpy(event->words, "landed");
}

/* A refusal is committed, too, with the answer to its key: the value stays as it was read. */
static void note_refusal(const json_t *record, size_t i, struct trace_event *event)
{
    const json_t *timeline = json_object_get(record, "timeline");
    const json_t *mine = json_array_get(timeline, i);
    if (strcmp(event->point, "committed") != 0 || !event->has_value)
        return;
    while (i-- > 0) {
        const json_t *other = json_array_get(timeline, i);
        struct trace_event before = {0};
        split_name(&before, text_of(other, "actor"), text_of(other, "point"));
        if (strcmp(before.who, event->who) != 0 || strcmp(before.point, "read") != 0)
            continue;
        if (json_equal(json_object_get(other, "value"), json_object_get(mine, "value")))
            strcpy(event->words, "stored");
        return;
    }
}

/* Of an order, which has a state and no value, the trace tells 0. */
static bool is_of_order(const json_t *record)
{
    const struct hazard *hazard = hazard_find(text_of(record, "hazard"));
    return hazard != NULL && hazard->reserve_s > 0;
}

bool trace_event(const json_t *record, size_t i, struct trace_event *ret)
{
    const json_t *event = json_array_get(json_object_get(record, "timeline"), i);
    const json_t *value = json_object_get(event, "value");
    *ret = (struct trace_event){
        .t_us = json_integer_value(json_object_get(event, "t_us")),
        .fence = json_integer_value(json_object_get(event, "fence")),
        .has_value = json_is_integer(value) && !is_of_order(record),
        .value = json_integer_value(value),
    };
    split_name(ret, text_of(event, "actor"), text_of(event, "point"));
    snprintf(ret->words, sizeof ret->words, "%s", ret->point);
    for (size_t k = 0; k < sizeof notes / sizeof *notes; k++)
        if (matches(notes[k].pattern, ret->point, ret->parts)) {
            snprintf(ret->words, sizeof ret->words, "%s", notes[k].words);
            break;
        }
    if (strcmp(ret->point, "waiting") == 0 && json_object_get(record, "guard") != NULL &&
        lk_provider_find(text_of(record, "guard")) == NULL)
        strcpy(ret->words, "waiting-free");
    note_landing(record, i, ret);
    note_refusal(record, i, ret);
    return ret->point[0] != '\0';
}

/* A value that is not told has other words. */
void trace_write(const struct trace_event *event, const json_t *words, FILE *out)
{
    static const char *const with_value[] = {"read", "decided", "committed"};
    char key[TRACE_POINT_MAX + 8], who[sizeof event->who + 2];
    json_t *args = json_object();
    snprintf(key, sizeof key, "at.%s", event->words);
    for (size_t i = 0; i < sizeof with_value / sizeof *with_value && !event->has_value; i++)
        if (strcmp(event->words, with_value[i]) == 0)
            snprintf(key, sizeof key, "at.%s-", event->words);
    snprintf(who, sizeof who, "p.%s", event->who);
    const char *name = json_string_value(json_object_get(words, who));
    args_text(args, "who", event->who[1] != '\0' && name != NULL ? name : event->who);
    args_count(args, "v", event->value);
    for (int i = 0; i < TRACE_PARTS; i++)
        args_text(args, (char[]){(char)('1' + i), '\0'}, event->parts[i]);
    const char *text = json_string_value(json_object_get(words, key));
    if (text != NULL)
        words_fill(text, args, out);
    else
        html_escape(event->point, out);
    json_decref(args);
}
