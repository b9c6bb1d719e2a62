#include "check.h"

#include <stdio.h>
#include <stdlib.h>

int check_audit_read(const char *path, struct check_audit *ret, char *message, size_t size)
{
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    const json_t *resources = json_object_get(json, "resources");
    size_t n = json_array_size(resources);
    struct audit_row *rows = calloc(n + 1, sizeof *rows);
    int result = rows != NULL && json_is_array(resources) ? 0 : -1;
    if (json == NULL)
        snprintf(message, size, "%.200s", error.text);
    else
        snprintf(message, size, "not the answer of GET /v1/audit");
    for (size_t i = 0; i < n && result == 0; i++)
        result = audit_row_parse(json_array_get(resources, i), &rows[i]);
    json_decref(json);
    if (result == 0)
        *ret = (struct check_audit){.rows = rows, .n_rows = n};
    else
        free(rows);
    return result;
}

void check_audit_free(struct check_audit *audit)
{
    free(audit->rows);
    *audit = (struct check_audit){0};
}
