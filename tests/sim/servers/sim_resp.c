/* Answers in RESP2, the protocol of Redis. */
#include "sim_redis.h"

#include <stdio.h>
#include <string.h>

static void add_text(struct sim_bytes *ret, const char *text)
{
    sim_bytes_add(ret, text, strlen(text));
}

void sim_resp_integer(struct sim_bytes *ret, long long value)
{
    char line[32];
    snprintf(line, sizeof line, ":%lld\r\n", value);
    add_text(ret, line);
}

void sim_resp_text(struct sim_bytes *ret, const char *text)
{
    char line[32] = "$-1";
    if (text)
        snprintf(line, sizeof line, "$%zu\r\n", strlen(text));
    add_text(ret, line);
    add_text(ret, text ? text : "");
    add_text(ret, "\r\n");
}

static void line_of(struct sim_bytes *ret, const char *kind, const char *text)
{
    add_text(ret, kind);
    add_text(ret, text);
    add_text(ret, "\r\n");
}

void sim_resp_status(struct sim_bytes *ret, const char *text)
{
    line_of(ret, "+", text);
}

void sim_resp_error(struct sim_bytes *ret, const char *text)
{
    line_of(ret, "-", text);
}

void sim_resp_array(struct sim_bytes *ret, size_t n)
{
    char line[32];
    snprintf(line, sizeof line, "*%zu\r\n", n);
    add_text(ret, line);
}
