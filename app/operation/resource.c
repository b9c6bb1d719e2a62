#include "resource.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void resource_name(char ret[DB_RESOURCE_MAX + 1], const char *kind, const char *id)
{
    int length = snprintf(ret, DB_RESOURCE_MAX + 1, "%s:%s", kind, id);
    assert(length > 0 && length <= DB_RESOURCE_MAX);
}

bool is_id(const char *text, size_t max)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t length = strspn(text, allowed);
    return length >= 1 && length <= max && text[length] == '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int percent_decode(const char *text, size_t length, char *ret, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        int c = (unsigned char)text[i];
        if (c == '%') {
            int high = i + 2 < length ? hex_digit(text[i + 1]) : -1;
            int low = i + 2 < length ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -1;
            c = high << 4 | low;
            i += 2;
        }
        if (c == '\0' || n + 1 >= size)
            return -1;
        ret[n++] = (char)c;
    }
    ret[n] = '\0';
    return (int)n;
}

bool resource_parse(const char *text, struct op *op)
{
    char *const resource = op->resource;
    int length = percent_decode(text, strlen(text), resource, sizeof(op->resource));
    const char *id = length < 0 ? NULL : strchr(resource, ':');
    if (id == NULL || !is_id(id + 1, DB_ID_MAX) ||
        (strncmp(resource, "item:", 5) != 0 && strncmp(resource, "account:", 8) != 0)) {
        op_problem(op, PROBLEM_BAD_REQUEST, "resource must be item:ID or account:ID");
        return false;
    }
    return true;
}
