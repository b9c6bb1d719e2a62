#include "json_schema.h"

#include <stdio.h>
#include <string.h>

enum { PATH_MAX_BYTES = 200 };

struct check {
    char path[PATH_MAX_BYTES];
    char *message;
    size_t size;
};

static bool fail(struct check *check, const char *what)
{
    snprintf(check->message, check->size, "%s: %s", check->path, what);
    return false;
}

static bool is_type(const json_t *value, const char *type)
{
    return (strcmp(type, "object") == 0 && json_is_object(value)) ||
           (strcmp(type, "array") == 0 && json_is_array(value)) ||
           (strcmp(type, "string") == 0 && json_is_string(value)) ||
           (strcmp(type, "integer") == 0 && json_is_integer(value)) ||
           (strcmp(type, "number") == 0 && json_is_number(value)) ||
           (strcmp(type, "boolean") == 0 && json_is_boolean(value)) ||
           (strcmp(type, "null") == 0 && json_is_null(value));
}

static bool holds(struct check *check, const json_t *schema, const json_t *value);

static bool member_holds(struct check *check, const json_t *schema, const char *name,
                         const json_t *value)
{
    size_t length = strlen(check->path);
    snprintf(check->path + length, sizeof check->path - length, "/%s", name);
    bool result = holds(check, schema, value);
    if (result)
        check->path[length] = '\0';
    return result;
}

static bool member_fails(struct check *check, const char *name)
{
    char what[PATH_MAX_BYTES];
    snprintf(what, sizeof what, "%s is not in the schema", name);
    return fail(check, what);
}

static bool object_holds(struct check *check, const json_t *schema, const json_t *value)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *others = json_object_get(schema, "additionalProperties"), *name;
    const char *key;
    json_t *member;
    size_t i;
    json_array_foreach(json_object_get(schema, "required"), i, name)
    {
        if (json_object_get(value, json_string_value(name)) == NULL)
            return member_holds(check, NULL, json_string_value(name), NULL);
    }
    json_object_foreach((json_t *)value, key, member)
    {
        const json_t *known = json_object_get(properties, key);
        if (known == NULL && json_is_false(others))
            return member_fails(check, key);
        if (known == NULL)
            known = others;
        if (json_is_object(known) && !member_holds(check, known, key, member))
            return false;
    }
    return true;
}

static bool type_holds(const json_t *wanted, const json_t *value)
{
    const json_t *type;
    size_t i;
    if (json_is_string(wanted))
        return is_type(value, json_string_value(wanted));
    json_array_foreach(wanted, i, type)
    {
        if (is_type(value, json_string_value(type)))
            return true;
    }
    return wanted == NULL;
}

static bool enum_holds(const json_t *wanted, const json_t *value)
{
    const json_t *one;
    size_t i;
    json_array_foreach(wanted, i, one)
    {
        if (json_equal(one, value))
            return true;
    }
    return wanted == NULL;
}

static bool holds(struct check *check, const json_t *schema, const json_t *value)
{
    const json_t *item;
    size_t i;
    if (value == NULL)
        return fail(check, "is missing");
    if (!type_holds(json_object_get(schema, "type"), value))
        return fail(check, "is of another type");
    if (!enum_holds(json_object_get(schema, "enum"), value))
        return fail(check, "is none of the values allowed");
    if (json_is_object(value) && !object_holds(check, schema, value))
        return false;
    json_array_foreach(value, i, item)
    {
        char name[24];
        snprintf(name, sizeof name, "%zu", i);
        if (!member_holds(check, json_object_get(schema, "items"), name, item))
            return false;
    }
    return true;
}

bool schema_holds(const json_t *schema, const json_t *value, char *message, size_t size)
{
    struct check check = {.message = message, .size = size};
    return holds(&check, schema, value);
}
