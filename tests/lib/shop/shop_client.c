#include "shop_client.h"
#include "process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GET_WAIT_MS = 30000, PUT_TRIES_MAX = 10 };

static int connect_client(struct client *client)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)client->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    client->fd = fd;
    return 0;
}

void client_close(struct client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
}

int client_send_text(struct client *client, const char *text, size_t length)
{
    size_t sent = 0;
    if (client->fd < 0 && connect_client(client) != 0)
        return -1;
    while (sent < length) {
        ssize_t n = send(client->fd, text + sent, length - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            client_close(client);
            return -1;
        }
        sent += (size_t)n;
    }
    return 0;
}

/* The service closes connections that are idle for long. */
static bool is_closed_by_peer(const struct client *client)
{
    char byte;
    ssize_t n = recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

int client_send(struct client *client, const char *method, const char *path, const char *key,
                const char *body)
{
    char *request = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&request, &length);
    if (out == NULL)
        return -1;
    if (client->fd >= 0 && is_closed_by_peer(client))
        client_close(client);
    fprintf(out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, path);
    if (key != NULL)
        fprintf(out, "Idempotency-Key: %s\r\n", key);
    if (strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0)
        fprintf(out, "%s\r\n", client->condition != NULL ? client->condition : "If-None-Match: *");
    if (body != NULL)
        fprintf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    fprintf(out, "\r\n%s", body != NULL ? body : "");
    int result = fclose(out) == 0 ? client_send_text(client, request, length) : -1;
    free(request);
    return result;
}

/* Copies the value of a header to ret; "" if there is none. */
static void header(const char *head, const char *name, char *ret, size_t size)
{
    size_t length = strlen(name);
    ret[0] = '\0';
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            line += length + 1;
            line += strspn(line, " ");
            snprintf(ret, size, "%.*s", (int)strcspn(line, "\r"), line);
            return;
        }
    }
}

static void read_head(const char *head, struct reply *ret, size_t *ret_length)
{
    char value[64];
    header(head, "Content-Length", value, sizeof value);
    *ret_length = strtoul(value, NULL, 10);
    header(head, "Idempotent-Replayed", value, sizeof value);
    ret->replayed = strcmp(value, "true") == 0;
    header(head, "Retry-After", value, sizeof value);
    ret->retry_after_s = value[0] != '\0' ? atoi(value) : -1;
    header(head, "Content-Type", ret->type, sizeof ret->type);
    header(head, "Location", ret->location, sizeof ret->location);
    header(head, "ETag", ret->etag, sizeof ret->etag);
}

int client_read(struct client *client, int64_t wait_ms, struct reply *ret)
{
    enum { BUFFER = CLIENT_HEAD_MAX + CLIENT_BODY_MAX };
    char *buffer = malloc(BUFFER + 1), *end = NULL;
    size_t got = 0, length = 0, head = 0;
    int64_t deadline_ms = test_now_ms() + wait_ms;
    ret->status = 0;
    while (buffer != NULL && client->fd >= 0 && (end == NULL || got < head + length)) {
        int64_t left_ms = deadline_ms - test_now_ms();
        struct pollfd readable = {.fd = client->fd, .events = POLLIN};
        if (left_ms <= 0 || poll(&readable, 1, (int)left_ms) <= 0)
            break;
        ssize_t n = recv(client->fd, buffer + got, BUFFER - got, 0);
        if (n <= 0)
            break;
        got += (size_t)n;
        buffer[got] = '\0';
        if (end == NULL && (end = strstr(buffer, "\r\n\r\n")) != NULL) {
            head = (size_t)(end - buffer) + 4;
            read_head(buffer, ret, &length);
            if (length >= CLIENT_BODY_MAX)
                break;
        }
    }
    if (end != NULL && got == head + length && length < CLIENT_BODY_MAX &&
        strncmp(buffer, "HTTP/1.1 ", 9) == 0) {
        char connection[64];
        ret->status = atoi(buffer + 9);
        memcpy(ret->body, buffer + head, length);
        ret->body[length] = '\0';
        header(buffer, "Connection", connection, sizeof connection);
        if (strcasecmp(connection, "close") == 0)
            client_close(client);
    } else {
        client_close(client);
    }
    free(buffer);
    return ret->status;
}

int client_call(struct client *client, const char *method, const char *path, const char *key,
                const char *body, int64_t wait_ms, struct reply *ret)
{
    int64_t start_ms = test_now_ms();
    ret->status = 0;
    ret->body[0] = '\0';
    if (client_send(client, method, path, key, body) == 0)
        client_read(client, wait_ms, ret);
    ret->took_ms = test_now_ms() - start_ms;
    return ret->status;
}

int client_put(struct client *client, const char *path, const char *body, int64_t wait_ms,
               struct reply *ret)
{
    const char *before = client->condition;
    char over[sizeof ret->etag + 16];
    client->condition = NULL;
    for (int i = 0; i < PUT_TRIES_MAX; i++) { /* an earlier request may still change it */
        if (client_call(client, "PUT", path, NULL, body, wait_ms, ret) != 412)
            break;
        snprintf(over, sizeof over, "If-Match: %s", ret->etag);
        client->condition = over;
    }
    client->condition = before;
    return ret->status;
}

json_t *client_get(int port, const char *path)
{
    struct client client = {.port = port, .fd = -1};
    struct reply *reply = calloc(1, sizeof *reply);
    json_t *json = NULL;
    if (reply != NULL && client_call(&client, "GET", path, NULL, NULL, GET_WAIT_MS, reply) == 200)
        json = json_loads(reply->body, 0, NULL);
    client_close(&client);
    free(reply);
    return json;
}

int64_t client_number(int port, const char *path, const char *name)
{
    json_t *json = client_get(port, path);
    json_t *value = json_object_get(json, name);
    int64_t number = json_is_integer(value) ? json_integer_value(value) : INT64_MIN;
    json_decref(json);
    return number;
}

const char *reply_problem(const struct reply *reply, char *ret, size_t size)
{
    json_t *json = json_loads(reply->body, 0, NULL);
    const char *type = json_string_value(json_object_get(json, "type"));
    const char *slash = type != NULL ? strrchr(type, '/') : NULL;
    bool is_problem = strcmp(reply->type, "application/problem+json") == 0;
    snprintf(ret, size, "%s", is_problem && slash != NULL ? slash + 1 : "");
    json_decref(json);
    return ret;
}
