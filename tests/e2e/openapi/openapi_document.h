/* What openapi.json says of an operation. */
#ifndef TEST_OPENAPI_DOCUMENT_H
#define TEST_OPENAPI_DOCUMENT_H

#include "tests.h"

#include <stdint.h>
#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#define DOCUMENT "app/openapi.json"

static json_t *document; /* the test loads it */

/* As the document has it. ret_method may be NULL. */
static inline const json_t *described_operation(const char *operation, const char **ret_method)
{
    const char *path, *method;
    json_t *item, *described;
    json_object_foreach(json_object_get(document, "paths"), path, item)
    {
        json_object_foreach(item, method, described)
        {
            const char *id = json_string_value(json_object_get(described, "operationId"));
            if (id == NULL || strcmp(id, operation) != 0)
                continue;
            if (ret_method != NULL)
                *ret_method = method;
            return described;
        }
    }
    fail_msg("%s is not in " DOCUMENT, operation);
    return NULL;
}

/* In capitals. */
static inline const char *method_of(const char *operation)
{
    static char method[8];
    const char *small = "";
    described_operation(operation, &small);
    for (size_t i = 0; i < sizeof method && (i == 0 || small[i - 1] != '\0'); i++)
        method[i] = (char)toupper((unsigned char)small[i]);
    return method;
}

/* The document says of an operation that a token of this kind will do. */
static inline bool takes_token(const char *operation, const char *kind)
{
    const json_t *described = described_operation(operation, NULL);
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(described, "security"), i, one)
    {
        if (json_object_get(one, kind) != NULL)
            return true;
    }
    return false;
}

#endif
