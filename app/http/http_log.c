/* Each half-open client can make libmicrohttpd write a line, so its lines are limited. */
#include "http_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINES_PER_SECOND = 5 };

void http_log(void *context, const char *format, va_list args)
{
    struct http *http = context;
    struct http_log_ration *ration = &http->log_ration;
    if (strstr(format, "Content-Length") != NULL)
        malformed_length(http);
    const int64_t second = http_now_us() / 1000000;
    if (ration->skips) {
        ration->skips = false;
        return;
    }
    if (second != ration->second) {
        if (ration->dropped > 0)
            fprintf(stderr, "level=warning component=http dropped_lines=%" PRIu64 "\n",
                    ration->dropped);
        *ration = (struct http_log_ration){.second = second};
    }
    if (ration->lines >= LINES_PER_SECOND) {
        ration->dropped++;
        return;
    }
    ration->lines++;
    char text[256];
    vsnprintf(text, sizeof(text), format, args);
    for (char *c = text; *c != '\0'; c++)
        if (*c == '"' || *c < ' ' || *c > '~')
            *c = *c == '\n' && c[1] == '\0' ? '\0' : '?';
    fprintf(stderr, "level=info component=libmicrohttpd message=\"%s\"\n", text);
}
