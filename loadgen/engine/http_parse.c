/* http_parse -> take_line -> status_line | header -> head_done -> body states; see http_parse.h. */
#include "http_parse.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum state {
    STATUS_LINE,
    HEADER,
    BODY, /* by Content-Length */
    BODY_TO_CLOSE,
    CHUNK_SIZE,
    CHUNK_DATA,
    CHUNK_END, /* the line end after a chunk's data */
    TRAILER,
    DONE,
    BAD
};

enum {
    LENGTH_DIGITS_MAX = 18, /* a decimal length that fits 64 bits */
    CHUNK_DIGITS_MAX = 15,  /* a hexadecimal one */
    RETRY_AFTER_MAX_S = 1000000000
};

/* The start of a line, without its line end. */
struct line {
    const char *text;
    size_t length;
    bool truncated; /* the line is longer */
};

static enum http_event bad(struct http_parser *parser, const char *why)
{
    parser->state = BAD;
    parser->error = why;
    return HTTP_BAD;
}

void http_parse_start(struct http_parser *parser, bool is_head)
{
    /* The line buffer stays as it is: it is never read beyond line_length. */
    memset(parser, 0, offsetof(struct http_parser, line));
    parser->is_head = is_head;
    parser->retry_after_ms = -1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* RFC 9110, 5.6.2: token. */
static bool is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        if (!letter && c != '-' && !is_digit((char)c) &&
            (c == '\0' || strchr("!#$%&'*+.^_`|~", c) == NULL))
            return false;
    }
    return length > 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct http_span trim(const char *text, size_t length)
{
    while (length > 0 && is_blank(*text))
        text++, length--;
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    return (struct http_span){text, length};
}

static bool equals(struct http_span span, const char *word)
{
    return span.length == strlen(word) && strncasecmp(span.bytes, word, span.length) == 0;
}

/* False unless span has 1 to LENGTH_DIGITS_MAX digits and nothing else. */
static bool decimal(struct http_span span, uint64_t *ret)
{
    uint64_t number = 0;
    if (span.length == 0 || span.length > LENGTH_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < span.length; i++) {
        if (!is_digit(span.bytes[i]))
            return false;
        number = number * 10 + (uint64_t)(span.bytes[i] - '0');
    }
    *ret = number;
    return true;
}

/* Cuts the next element off a comma-separated list; false at its end. */
static bool next_element(struct http_span *list, struct http_span *ret)
{
    if (list->length == 0)
        return false;
    const char *comma = memchr(list->bytes, ',', list->length);
    size_t length = comma != NULL ? (size_t)(comma - list->bytes) : list->length;
    size_t used = comma != NULL ? length + 1 : length;
    *ret = trim(list->bytes, length);
    list->bytes += used;
    list->length -= used;
    return true;
}

/* Takes one line or the part of it that has arrived. HTTP_DONE: *ret is the line. HTTP_MORE: it is
 * not whole yet. */
static enum http_event take_line(struct http_parser *parser, const char **data, size_t *length,
                                 struct line *ret)
{
    const char *bytes = *data;
    const char *end = memchr(bytes, '\n', *length);
    size_t used = end != NULL ? (size_t)(end - bytes) + 1 : *length;
    size_t before = parser->line_length;
    if (used > HTTP_LINE_MAX - before)
        return bad(parser, "header line too long");
    if (memchr(bytes, '\0', used) != NULL)
        return bad(parser, "NUL in the header");
    *data += used;
    *length -= used;

    char previous = end != NULL && used > 1 ? end[-1] : parser->last;
    bool whole_here = end != NULL && before == 0;
    if (!whole_here && before < HTTP_LINE_KEPT) {
        size_t room = HTTP_LINE_KEPT - before;
        memcpy(parser->line + before, bytes, used < room ? used : room);
    }
    if (end == NULL) {
        parser->line_length += (uint32_t)used;
        parser->last = bytes[used - 1];
        return HTTP_MORE;
    }
    size_t whole = before + used - 1;
    if (whole > 0 && previous == '\r')
        whole--;
    ret->text = whole_here ? bytes : parser->line;
    ret->truncated = whole > HTTP_LINE_KEPT;
    ret->length = ret->truncated ? HTTP_LINE_KEPT : whole;
    parser->line_length = 0;
    return HTTP_DONE;
}

/* "HTTP/1.1 200 OK"; RFC 9112, 4. */
static enum http_event status_line(struct http_parser *parser, const struct line *line)
{
    const char *text = line->text;
    enum { SHORTEST = sizeof "HTTP/1.1 200" - 1 };
    if (line->length < SHORTEST || memcmp(text, "HTTP/1.", 7) != 0 || !is_digit(text[7]) ||
        text[8] != ' ')
        return bad(parser, "no HTTP/1 status line");
    if (!is_digit(text[9]) || !is_digit(text[10]) || !is_digit(text[11]) ||
        (line->length > SHORTEST && text[SHORTEST] != ' '))
        return bad(parser, "malformed status code");
    parser->status = (text[9] - '0') * 100 + (text[10] - '0') * 10 + (text[11] - '0');
    if (parser->status < 100 || parser->status > 599)
        return bad(parser, "status code out of range");
    parser->minor = (uint8_t)(text[7] - '0');
    parser->keep_alive = parser->minor >= 1;
    parser->state = HEADER;
    return HTTP_MORE;
}

static enum http_event content_length(struct http_parser *parser, struct http_span value)
{
    uint64_t length;
    if (!decimal(value, &length) || (parser->has_length && length != parser->left))
        return bad(parser, "malformed Content-Length");
    parser->has_length = true;
    parser->left = length;
    return HTTP_MORE;
}

/* Only the last coding matters: chunked, or else the body ends when the connection closes. */
static void transfer_encoding(struct http_parser *parser, struct http_span value)
{
    struct http_span coding;
    parser->has_coding = true;
    while (next_element(&value, &coding))
        parser->chunked = equals(coding, "chunked");
}

static void connection(struct http_parser *parser, struct http_span value)
{
    struct http_span option;
    while (next_element(&value, &option)) {
        if (equals(option, "close"))
            parser->keep_alive = false;
        else if (equals(option, "keep-alive") && parser->minor == 0)
            parser->keep_alive = true;
    }
}

static enum http_event known_header(struct http_parser *parser, struct http_span name,
                                    struct http_span value, bool *ret_known)
{
    uint64_t seconds;
    *ret_known = true;
    if (equals(name, "Content-Length"))
        return content_length(parser, value);
    if (equals(name, "Transfer-Encoding"))
        transfer_encoding(parser, value);
    else if (equals(name, "Connection"))
        connection(parser, value);
    else if (equals(name, "Idempotent-Replayed"))
        parser->replayed = equals(value, "true");
    else if (!equals(name, "Retry-After"))
        *ret_known = false;
    else if (decimal(value, &seconds)) /* the other form, a date, is ignored */
        parser->retry_after_ms =
            (int64_t)(seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * 1000;
    return HTTP_MORE;
}

static enum http_event header(struct http_parser *parser, const struct line *line)
{
    if (is_blank(line->text[0])) /* obsolete folding continues the value before; RFC 9112, 5.2 */
        return parser->may_fold ? HTTP_MORE : bad(parser, "folded header line");
    const char *colon = memchr(line->text, ':', line->length);
    size_t name_length = colon != NULL ? (size_t)(colon - line->text) : 0;
    if (!is_token(line->text, name_length))
        return bad(parser, "malformed header line");
    parser->may_fold = true;
    if (parser->state == TRAILER)
        return HTTP_MORE;
    struct http_span name = {line->text, name_length};
    struct http_span value = trim(colon + 1, line->length - name_length - 1);
    bool known;
    if (known_header(parser, name, value, &known) == HTTP_BAD)
        return HTTP_BAD;
    if (known && line->truncated)
        return bad(parser, "header value too long");
    parser->may_fold = !known;
    return HTTP_MORE;
}

/* How long is the body? RFC 9112, 6.3. */
static enum http_event head_done(struct http_parser *parser)
{
    if (parser->status == 101)
        return bad(parser, "switching protocols unasked");
    if (parser->status < 200) { /* interim: the final answer follows and shares HTTP_HEAD_MAX */
        uint32_t head_bytes = parser->head_bytes;
        http_parse_start(parser, parser->is_head);
        parser->head_bytes = head_bytes;
        return HTTP_MORE;
    }
    if (parser->is_head || parser->status == 204 || parser->status == 304) {
        parser->state = DONE;
    } else if (parser->has_coding) {
        if (parser->minor == 0)
            return bad(parser, "Transfer-Encoding in HTTP/1.0");
        if (parser->has_length || !parser->chunked)
            parser->keep_alive = false;
        parser->state = parser->chunked ? CHUNK_SIZE : BODY_TO_CLOSE;
    } else if (parser->has_length) {
        parser->state = parser->left > 0 ? BODY : DONE;
    } else {
        parser->keep_alive = false;
        parser->state = BODY_TO_CLOSE;
    }
    return HTTP_MORE;
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "1a;name=value"; extensions are ignored. RFC 9112, 7.1. */
static enum http_event chunk_size(struct http_parser *parser, const struct line *line)
{
    size_t digits = 0;
    uint64_t size = 0;
    while (digits < line->length && hex_value(line->text[digits]) >= 0) {
        if (digits == CHUNK_DIGITS_MAX)
            return bad(parser, "chunk size too large");
        size = size << 4 | (uint64_t)hex_value(line->text[digits]);
        digits++;
    }
    size_t next = digits;
    while (next < line->length && is_blank(line->text[next]))
        next++;
    if (digits == 0 || (next < line->length && line->text[next] != ';'))
        return bad(parser, "malformed chunk size");
    parser->left = size;
    parser->may_fold = false;
    parser->state = size > 0 ? CHUNK_DATA : TRAILER;
    return HTTP_MORE;
}

static enum http_event line_done(struct http_parser *parser, const struct line *line)
{
    switch (parser->state) {
    case STATUS_LINE:
        return status_line(parser, line);
    case HEADER:
        return line->length > 0 ? header(parser, line) : head_done(parser);
    case CHUNK_SIZE:
        return chunk_size(parser, line);
    case CHUNK_END:
        if (line->length > 0)
            return bad(parser, "chunk longer than its size");
        parser->state = CHUNK_SIZE;
        return HTTP_MORE;
    default:
        assert(parser->state == TRAILER);
        if (line->length > 0)
            return header(parser, line);
        parser->state = DONE;
        return HTTP_MORE;
    }
}

/* Cuts the next piece of the body off data. */
static enum http_event take_body(struct http_parser *parser, const char **data, size_t *length,
                                 struct http_span *ret_span)
{
    size_t used = *length;
    if (parser->state != BODY_TO_CLOSE) {
        if (used > parser->left)
            used = (size_t)parser->left;
        parser->left -= used;
        if (parser->left == 0)
            parser->state = parser->state == BODY ? DONE : CHUNK_END;
    }
    *ret_span = (struct http_span){*data, used};
    *data += used;
    *length -= used;
    return HTTP_BODY;
}

enum http_event http_parse(struct http_parser *parser, const char **data, size_t *length,
                           struct http_span *ret_span)
{
    for (;;) {
        if (parser->state == DONE)
            return HTTP_DONE;
        if (parser->state == BAD)
            return HTTP_BAD;
        if (*length == 0)
            return HTTP_MORE;
        if (parser->state == BODY || parser->state == BODY_TO_CLOSE || parser->state == CHUNK_DATA)
            return take_body(parser, data, length, ret_span);

        struct line line;
        size_t before = *length;
        bool in_head = parser->state != CHUNK_SIZE && parser->state != CHUNK_END;
        enum http_event event = take_line(parser, data, length, &line);
        if (in_head)
            parser->head_bytes += (uint32_t)(before - *length);
        if (parser->head_bytes > HTTP_HEAD_MAX)
            event = bad(parser, "header too long");
        if (event == HTTP_DONE)
            line_done(parser, &line);
    }
}

bool http_parse_end(struct http_parser *parser)
{
    if (parser->state == BODY_TO_CLOSE)
        parser->state = DONE;
    else if (parser->state != DONE)
        bad(parser, parser->head_bytes > 0 ? "answer cut short" : "closed without an answer");
    return parser->state == DONE;
}
