/*
 * Strict reading of a request head that libmicrohttpd has already parsed leniently.
 *
 * libmicrohttpd parses in place: each CR, LF and first colon of a line, and the spaces of the
 * request line, have become NUL bytes; everything else stands in its buffer as it was sent. So the
 * head can be read once more, and what must not pass (RFC 9112: bare LF, folded lines, space before
 * a colon, NUL, several lengths, length beside transfer coding, several or no Host) is seen.
 *
 * What cannot be seen afterwards: a NUL directly before a bare LF, which looks like CR LF, and
 * empty lines before the request line.
 */
#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAMING_HEADERS_MAX = 64 };

struct http_value {
    const char *text; /* in the connection's buffer, NUL-terminated; NULL: not sent */
    size_t length;    /* without white space at the end */
    int count;        /* lines of this name; text is the first */
};

struct http_head {
    struct http_value host, origin, fetch_site, content_length, transfer_encoding, expect;
    struct http_value content_type, idempotency_key, request_id, authorization;
    struct http_value if_match, if_none_match;
    int64_t body_bytes; /* from Content-Length; 0 without, -1: chunked */
};

/*
 * Reads the head that begins at method and is head_bytes long; version points into it.
 * Returns NULL when it is well-formed and fills *ret, else what is wrong with it: the connection
 * cannot be trusted any further.
 */
const char *framing_read(const char *method, const char *version, size_t head_bytes,
                         struct http_head *ret);

/* True if value is application/json, with no other charset than utf-8. */
bool framing_is_json(const struct http_value *content_type);
/* The same, or application/merge-patch+json (RFC 7396). */
bool framing_is_patch(const struct http_value *content_type);

/* The token of "Bearer TOKEN" (RFC 6750, 2.1), borrowed. NULL without the header. Of another scheme
 * or a malformed token it is "", which nobody has. */
const char *framing_bearer(const struct http_value *authorization, size_t *ret_length);

/* The idempotency key of a header value, bare or a quoted string (RFC 8941). Returns its length, or
 * -1: not 1 to size - 1 printable ASCII characters. */
int framing_key(const struct http_value *value, char *ret, size_t size);

#endif
