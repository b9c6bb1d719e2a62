#include "answered.h"
#include "fuzz.h"
#include "http_parse.h"

#include <jansson.h>

static void check_body(const char *type, char *body, size_t size)
{
    if (size > 0 && strstr(type, "json") != NULL) {
        json_t *json = json_loadb(body, size, JSON_DECODE_ANY, NULL);
        FUZZ_CHECK(json != NULL);
        json_decref(json);
    }
}

/* The Content-Type of the head that ends before body. */
static const char *type_of(const char *head, size_t size, char ret[64])
{
    static const char name[] = "Content-Type: ";
    const char *at = memmem(head, size, name, sizeof name - 1);
    snprintf(ret, 64, "%.40s", at != NULL ? at + sizeof name - 1 : "");
    ret[strcspn(ret, "\r")] = '\0';
    return ret;
}

/* Takes one answer from *at. False: it is not whole. */
static bool take_answer(const char **at, size_t *left, struct answered *ret)
{
    static char body[ANSWERS_MAX];
    struct http_parser parser;
    struct http_span span;
    enum http_event event;
    const char *head = *at;
    char type[64];
    size_t n = 0;
    http_parse_start(&parser, false);
    while ((event = http_parse(&parser, at, left, &span)) == HTTP_BODY) {
        memcpy(body + n, span.bytes, span.length);
        n += span.length;
    }
    type_of(head, (size_t)(*at - head), type);
    const size_t whole = (size_t)(*at - head) - n; /* of the head, if the body is not in chunks */
    if (event == HTTP_DONE && memmem(head, whole, "\r\nConnection: close\r\n", 21) != NULL)
        FUZZ_CHECK(*left == 0); /* one answer, not two */
    ret->streams |= strcmp(type, "text/event-stream") == 0;
    if (event != HTTP_DONE)
        return false;
    check_body(type, body, n);
    uint64_t sum = 0;
    for (size_t i = 0; i < n && strncmp(type, "text/plain", 10) != 0; i++)
        sum = (sum ^ (uint8_t)body[i]) * UINT64_C(1099511628211);
    if (ret->n < ANSWERED_MAX) {
        ret->status[ret->n] = parser.status;
        ret->body[ret->n++] = sum;
    }
    return true;
}

void answered_read(const char *bytes, size_t size, struct answered *ret)
{
    const char *at = bytes;
    size_t left = size;
    memset(ret, 0, sizeof *ret);
    while (left > 0 && !ret->streams)
        if (!take_answer(&at, &left, ret))
            break;
    FUZZ_CHECK(left == 0 || ret->streams || size == ANSWERS_MAX);
}
