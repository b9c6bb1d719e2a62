/*
 * Incremental parser of HTTP/1.x answers: it takes bytes in pieces of any size and returns the
 * content of the answer. It allocates nothing and copies only a header line that arrives in pieces.
 * Source: RFC 9112.
 *
 *     http_parse_start(&parser, is_head);
 *     for (;;)
 *         switch (http_parse(&parser, &data, &length, &span)) {
 *         case HTTP_BODY: take span; continue;
 *         case HTTP_MORE: all of data is used up: read more
 *         case HTTP_DONE: the answer is whole; data, length: what follows it
 *         case HTTP_BAD:  parser.error says why; the connection is of no more use
 *         }
 *
 * The result does not depend on how the bytes are cut into pieces (only the spans do).
 */
#ifndef HTTP_PARSE_H
#define HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_HEAD_MAX = 65536, /* bytes of all header and trailer lines, interim answers included */
    HTTP_LINE_MAX = 16384, /* bytes of one line */
    HTTP_LINE_KEPT = 160   /* bytes of a line that are looked at */
};

enum http_event { HTTP_MORE, HTTP_BODY, HTTP_DONE, HTTP_BAD };

struct http_span {
    const char *bytes;
    size_t length;
};

struct http_parser {
    /* valid once HTTP_DONE was returned */
    int status;
    bool keep_alive;        /* the connection may carry another answer */
    bool replayed;          /* Idempotent-Replayed: true */
    int64_t retry_after_ms; /* -1 without */
    const char *error;      /* static; after HTTP_BAD */

    /* private */
    uint8_t state;
    uint8_t minor; /* of HTTP/1.minor */
    bool is_head, has_length, has_coding, chunked, may_fold;
    char last;            /* byte of the unfinished line */
    uint32_t head_bytes;  /* against HTTP_HEAD_MAX */
    uint32_t line_length; /* of the unfinished line so far */
    uint64_t left;        /* bytes of body or chunk to come */
    char line[HTTP_LINE_KEPT];
};

/* Call before each answer. is_head: it answers a HEAD request, so it has no body. */
void http_parse_start(struct http_parser *parser, bool is_head);
enum http_event http_parse(struct http_parser *parser, const char **data, size_t *length,
                           struct http_span *ret_span);
/* The server closed the connection. True: that is the proper end of the answer. */
bool http_parse_end(struct http_parser *parser);

#endif
