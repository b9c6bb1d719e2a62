#include "answer_problem.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

void answer_problem_name(const char *body, char *out, size_t size)
{
    static const char before[] = "\"type\":\"";
    const char *type = strstr(body, before);
    const char *title = strstr(body, "\"title\":");
    size_t length = 0;
    if (type != NULL && title != NULL) {
        type += strlen(before);
        const char *end = strchr(type, '"');
        for (const char *c = type; end != NULL && c < end; c++)
            if (*c == '/')
                type = c + 1;
        length = end == NULL ? 0 : (size_t)(end - type);
    }
    if (length >= size)
        length = size - 1;
    memcpy(out, type == NULL ? "" : type, length);
    out[length] = '\0';
}

void answer_problem_detail(const char *body, char out[ANSWER_DETAIL_MAX + 1])
{
    json_t *json = json_loads(body, 0, NULL);
    const char *detail = json_string_value(json_object_get(json, "detail"));
    snprintf(out, ANSWER_DETAIL_MAX + 1, "%s", detail != NULL ? detail : body);
    json_decref(json);
}
