/* The subset of JSON Schema that our schemas use: type, enum, properties, required,
 * additionalProperties, items. */
#ifndef TEST_SCHEMA_H
#define TEST_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* False: message says where and why. */
bool schema_holds(const json_t *schema, const json_t *value, char *message, size_t size);

#endif
