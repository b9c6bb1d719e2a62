/* A plain blocking HTTP/1.1 client over one kept connection, for the end-to-end tests. */
#ifndef TEST_CLIENT_H
#define TEST_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { CLIENT_BODY_MAX = 65536, CLIENT_HEAD_MAX = 4096 };

struct client {
    int port;
    int fd; /* -1: not connected */
};

struct reply {
    int status; /* 0: no whole answer; nobody knows what was done */
    bool replayed;
    int retry_after_s; /* -1: none */
    int64_t took_ms;   /* from client_call()'s begin */
    char type[64];     /* content type */
    char location[96]; /* "" without one */
    char body[CLIENT_BODY_MAX];
};

/* Sends and reads; connects first if need be. key: Idempotency-Key, body: JSON text; either may be
 * NULL. Returns the status, or 0 (and closes) without a whole answer within wait_ms. */
int client_call(struct client *client, const char *method, const char *path, const char *key,
                const char *body, int64_t wait_ms, struct reply *ret);
/* The two halves. client_send() is 0, or -1 when nothing, or not all, could be sent. */
int client_send(struct client *client, const char *method, const char *path, const char *key,
                const char *body);
/* These bytes as they are; connects first if need be. */
int client_send_text(struct client *client, const char *text, size_t length);
int client_read(struct client *client, int64_t wait_ms, struct reply *ret);
void client_close(struct client *client);

/* GET path, which must answer 200, as JSON; NULL otherwise. To be released with json_decref(). */
json_t *client_get(int port, const char *path);
/* One number of GET path: client_number(port, "/v1/items/1", "stock"); INT64_MIN if there is
 * none.*/
int64_t client_number(int port, const char *path, const char *name);
/* The problem's name: the end of "type"; "" for an answer that is no problem document. */
const char *reply_problem(const struct reply *reply, char *ret, size_t size);

#endif
