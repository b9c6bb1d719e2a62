#include "tape.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool tape_open(struct tape *tape, const char *file)
{
    *tape = (struct tape){.out = fopen(file, "w")};
    return tape->out != NULL;
}

void tape_close(struct tape *tape)
{
    raw_free(&tape->reply);
    if (tape->out != NULL)
        fclose(tape->out);
    tape->out = NULL;
}

/* The header lines as an object; names in small letters. */
static json_t *headers_of(const char *head)
{
    json_t *headers = json_object();
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        char name[64];
        line += 2;
        const size_t length = strcspn(line, ":\r");
        if (line[length] != ':' || length >= sizeof name)
            continue;
        for (size_t i = 0; i < length; i++)
            name[i] = (char)tolower((unsigned char)line[i]);
        name[length] = '\0';
        const char *value = line + length + 1;
        value += strspn(value, " ");
        json_object_set_new(headers, name, json_stringn(value, strcspn(value, "\r")));
    }
    return headers;
}

void tape_record(struct tape *tape, const char *method, const char *path)
{
    const char *body = tape->reply.body != NULL ? tape->reply.body : "";
    json_t *answer =
        json_pack("{s:s, s:s, s:i, s:o, s:s}", "method", method, "path", path, "status",
                  tape->reply.status, "headers", headers_of(tape->reply.head), "body", body);
    char *line = answer != NULL ? json_dumps(answer, JSON_COMPACT) : NULL;
    if (line != NULL && fprintf(tape->out, "%s\n", line) > 0)
        tape->n++;
    free(line);
    json_decref(answer);
}

int tape_ask(struct tape *tape, int port, const char *method, const char *path, const char *headers,
             const char *body)
{
    const char *host = strstr(headers, "Host:") != NULL ? "" : "Host: 127.0.0.1\r\n";
    char length[48] = "", *text = NULL;
    const int fd = raw_connect(port);
    if (body != NULL)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
    const int n = asprintf(&text, "%s %s HTTP/1.1\r\n%s%s%s\r\n%s", method, path, host, headers,
                           length, body != NULL ? body : "");
    raw_free(&tape->reply);
    tape->reply.status = 0;
    if (fd >= 0 && n > 0 && raw_send_text(fd, text) == 0 &&
        raw_read(fd, strcmp(method, "HEAD") == 0, RAW_WAIT_MS, &tape->reply) > 0)
        tape_record(tape, method, path);
    if (n > 0)
        free(text);
    if (fd >= 0)
        close(fd);
    return tape->reply.status;
}
