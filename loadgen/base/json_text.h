/* Members of JSON objects as text. */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include <jansson.h>

/* "" where there is no text of this name. Lives as long as the object. */
static inline const char *json_text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? "" : text;
}

#endif
