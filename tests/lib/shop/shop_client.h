/* A plain blocking HTTP/1.1 client over one kept connection, for the end-to-end tests. */
#ifndef TEST_CLIENT_H
#define TEST_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { CLIENT_BODY_MAX = 131072, CLIENT_HEAD_MAX = 4096 };

struct client {
    int port;
    int fd;                /* -1: not connected */
    const char *condition; /* header line of each PUT and PATCH; NULL: "If-None-Match: *" */
};

struct reply {
    int status; /* 0: no complete answer; the outcome is unknown */
    bool replayed;
    int retry_after_s; /* -1: none */
    int64_t took_ms;   /* since client_call() began */
    char type[64];     /* content type */
    char location[96]; /* "" without one */
    char etag[32];     /* likewise */
    char body[CLIENT_BODY_MAX];
};

/* Sends a request and reads the answer; connects if necessary. key: Idempotency-Key, body: JSON
 * text; either may be NULL. Returns the status. Without a complete answer within wait_ms it closes
 * the connection and returns 0. */
int client_call(struct client *client, const char *method, const char *path, const char *key,
                const char *body, int64_t wait_ms, struct reply *ret);
/* PUTs an item or account, whatever is there: after a 412 over the version that it tells. 201: it
 * was created. 200: it was reset. */
int client_put(struct client *client, const char *path, const char *body, int64_t wait_ms,
               struct reply *ret);
/* The two halves of client_call(). client_send() returns 0, or -1 if it could not send all. It
 * connects anew if the service has closed the connection since the last answer. */
int client_send(struct client *client, const char *method, const char *path, const char *key,
                const char *body);
/* Sends these bytes unchanged; connects if necessary. */
int client_send_text(struct client *client, const char *text, size_t length);
int client_read(struct client *client, int64_t wait_ms, struct reply *ret);
void client_close(struct client *client);

/* The answer of GET path as JSON, to be released with json_decref(); NULL unless it is 200. */
json_t *client_get(int port, const char *path);
/* One number of GET path: client_number(port, "/v1/items/1", "stock"); INT64_MIN if there is
 * none.*/
int64_t client_number(int port, const char *path, const char *name);
/* The problem's name: the end of "type"; "" if the answer is no problem document. */
const char *reply_problem(const struct reply *reply, char *ret, size_t size);

#endif
