/* Raw bytes to and from an HTTP server: for requests that a correct client cannot send. */
#ifndef RAW_HTTP_H
#define RAW_HTTP_H

#include <stddef.h>
#include <stdint.h>

enum { RAW_HEAD_MAX = 8192, RAW_WAIT_MS = 20000 };

struct raw_reply {
    int status;              /* 0: closed before a complete answer; -1: none within wait_ms */
    char head[RAW_HEAD_MAX]; /* status line and headers, NUL-terminated */
    char *body;              /* malloc()ed, NUL-terminated */
    size_t body_bytes;
};

int raw_connect(int port); /* a socket, or -1 */
/* Sends all; -1 if the other side has closed. */
int raw_send(int fd, const void *bytes, size_t n);
int raw_send_text(int fd, const char *text);
/* Reads one answer (a 100 Continue is one). no_body: the request was a HEAD. Returns ret->status.
 */
int raw_read(int fd, int no_body, int64_t wait_ms, struct raw_reply *ret);
void raw_free(struct raw_reply *reply);
/* 1 when the other side has closed within wait_ms; bytes before that are skipped. */
int raw_closed(int fd, int64_t wait_ms);
/* Copies the value of a header to ret; "" if there is none. */
const char *raw_header(const struct raw_reply *reply, const char *name, char *ret, size_t size);

#endif
