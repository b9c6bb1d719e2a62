#include "answer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void op_answer(struct op *op, int status, const char *format, ...)
{
    struct answer *answer = &op->answer;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(answer->body, sizeof answer->body, format, args);
    va_end(args);
    assert(length >= 0 && (size_t)length < sizeof answer->body); /* DB_BODY_MAX holds them all */
    answer->status = status;
    answer->problem = PROBLEM_NONE;
    answer->decided = true;
}

size_t json_escape(char *out, size_t size, const char *text)
{
    size_t n = 0;
    assert(size > 0);
    for (; *text; text++) {
        bool escaped = *text == '"' || *text == '\\';
        if (n + 1 + escaped >= size)
            break;
        if (escaped)
            out[n++] = '\\';
        out[n++] = *text >= 0x20 && *text < 0x7f ? *text : '?';
    }
    out[n] = '\0';
    return n;
}

void resource_name(char ret[DB_RESOURCE_MAX + 1], const char *kind, const char *id)
{
    int length = snprintf(ret, DB_RESOURCE_MAX + 1, "%s:%s", kind, id);
    assert(length > 0 && length <= DB_RESOURCE_MAX);
}
