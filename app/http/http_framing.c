#include "http_framing.h"

#include <string.h>
#include <strings.h>

enum { VERSION_LENGTH = 8, DIGITS_MAX = 15 };

/* RFC 9110, 5.6.2 */
static bool is_token_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* RFC 9110, 11.2: token68, without the = at its end */
static bool is_token68_char(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c != '\0' && strchr("-._~+/", c) != NULL);
}

static bool is_value_char(unsigned char c)
{
    return (c >= ' ' && c != 0x7f) || c == '\t';
}

static struct http_value *slot_of(struct http_head *head, const char *name, size_t length)
{
    static const struct known {
        const char *name;
        size_t offset;
    } known[] = {
        {"host", offsetof(struct http_head, host)},
        {"origin", offsetof(struct http_head, origin)},
        {"sec-fetch-site", offsetof(struct http_head, fetch_site)},
        {"content-length", offsetof(struct http_head, content_length)},
        {"transfer-encoding", offsetof(struct http_head, transfer_encoding)},
        {"expect", offsetof(struct http_head, expect)},
        {"content-type", offsetof(struct http_head, content_type)},
        {"idempotency-key", offsetof(struct http_head, idempotency_key)},
        {"x-request-id", offsetof(struct http_head, request_id)},
        {"authorization", offsetof(struct http_head, authorization)},
        {"if-match", offsetof(struct http_head, if_match)},
        {"if-none-match", offsetof(struct http_head, if_none_match)},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strlen(known[i].name) == length && strncasecmp(known[i].name, name, length) == 0)
            return (struct http_value *)(void *)((char *)head + known[i].offset);
    return NULL;
}

static void record(struct http_head *head, const char *name, size_t name_length, const char *value,
                   size_t length)
{
    struct http_value *slot = slot_of(head, name, name_length);
    if (slot == NULL || slot->count++ != 0)
        return;
    while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t'))
        length--;
    slot->text = value;
    slot->length = length;
}

/* Reads one field line at *at. The two bytes before end are the empty line. A folded line has no
 * name: it begins with a space, or libmicrohttpd has wiped the name of the line before it. */
static const char *read_line(const char **at, const char *end, struct http_head *head)
{
    const char *const name = *at;
    const char *p = name;
    while (p < end && is_token_char((unsigned char)*p))
        p++;
    if (p == name || p + 1 >= end || *p != '\0')
        return "malformed header name";
    const size_t name_length = (size_t)(p - name);
    p++;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    const char *const value = p;
    while (p < end && is_value_char((unsigned char)*p))
        p++;
    if (p + 4 > end || p[0] != '\0' || p[1] != '\0')
        return "control character in a header, or a line that does not end in CR LF";
    record(head, name, name_length, value, (size_t)(p - value));
    *at = p + 2;
    return NULL;
}

static const char *read_length(struct http_head *head)
{
    const struct http_value *length = &head->content_length;
    const struct http_value *coding = &head->transfer_encoding;
    if (length->count + coding->count > 1)
        return "more than one Content-Length or Transfer-Encoding";
    if (coding->count == 1) {
        /* as libmicrohttpd compares: with any other coding it reads until the client closes */
        if (strcasecmp(coding->text, "chunked") != 0)
            return "Transfer-Encoding other than chunked";
        head->body_bytes = -1;
    }
    if (length->count == 1) {
        if (length->length == 0 || length->length > DIGITS_MAX ||
            strspn(length->text, "0123456789") != length->length)
            return "Content-Length is not a number";
        for (size_t i = 0; i < length->length; i++)
            head->body_bytes = head->body_bytes * 10 + (length->text[i] - '0');
    }
    return NULL;
}

const char *framing_read(const char *method, const char *version, size_t head_bytes,
                         struct http_head *ret)
{
    const char *const end = method + head_bytes;
    memset(ret, 0, sizeof(*ret));
    if (version <= method || version > end || end - version < VERSION_LENGTH + 2)
        return "malformed request line";

    const char *at = version + VERSION_LENGTH;
    if (at[0] != '\0' || at[1] != '\0')
        return "request line does not end in CR LF";
    for (const char *p = method; *p != '\0'; p++)
        if (!is_token_char((unsigned char)*p))
            return "malformed method";

    at += 2;
    int lines = 0;
    while (end - at > 2) {
        const char *wrong =
            ++lines > FRAMING_HEADERS_MAX ? "too many header lines" : read_line(&at, end, ret);
        if (wrong != NULL)
            return wrong;
    }
    if (end - at != 2 || at[0] != '\0' || at[1] != '\0')
        return "header lines do not end in CR LF";

    const bool is_1_0 = version[VERSION_LENGTH - 1] == '0';
    if (ret->host.count > 1)
        return "more than one Host";
    if (ret->host.count == 0 && !is_1_0)
        return "no Host";
    if (is_1_0 && ret->transfer_encoding.count > 0)
        return "Transfer-Encoding in HTTP/1.0";
    if (ret->idempotency_key.count > 1 || ret->content_type.count > 1 ||
        ret->authorization.count > 1 || ret->origin.count > 1)
        return "more than one Idempotency-Key, Content-Type, Authorization or Origin";
    return read_length(ret);
}

static bool is_type(const struct http_value *content_type, const char *type)
{
    static const char charset[] = "charset=";
    if (content_type->count == 0)
        return false;
    const char *p = content_type->text, *const end = p + content_type->length;
    if ((size_t)(end - p) < strlen(type) || strncasecmp(p, type, strlen(type)) != 0)
        return false;
    p += strlen(type);
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (p == end)
        return true;
    if (*p++ != ';')
        return false;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (strncasecmp(p, charset, sizeof(charset) - 1) != 0)
        return false;
    p += sizeof(charset) - 1;
    const size_t left = (size_t)(end - p);
    return (left == 5 && strncasecmp(p, "utf-8", 5) == 0) ||
           (left == 7 && strncasecmp(p, "\"utf-8\"", 7) == 0);
}

bool framing_is_json(const struct http_value *content_type)
{
    return is_type(content_type, "application/json");
}

bool framing_is_patch(const struct http_value *content_type)
{
    return framing_is_json(content_type) || is_type(content_type, "application/merge-patch+json");
}

const char *framing_bearer(const struct http_value *authorization, size_t *ret_length)
{
    static const char scheme[] = "Bearer ";
    const size_t begin = sizeof(scheme) - 1;
    *ret_length = 0;
    if (authorization->count == 0)
        return NULL;
    const char *p = authorization->text, *const end = p + authorization->length;
    if (authorization->length <= begin || strncasecmp(p, scheme, begin) != 0)
        return "";
    p += begin;
    while (p < end && *p == ' ')
        p++;
    const char *const token = p;
    while (p < end && is_token68_char(*p))
        p++;
    while (p < end && p > token && *p == '=')
        p++;
    if (p != end)
        return "";
    *ret_length = (size_t)(end - token);
    return token;
}

int framing_key(const struct http_value *value, char *ret, size_t size)
{
    const char *p = value->text, *end = p + value->length;
    const bool quoted = value->length > 0 && *p == '"';
    if (quoted) {
        if (value->length < 2 || end[-1] != '"')
            return -1;
        p++;
        end--;
    }
    size_t n = 0;
    for (; p < end; p++) {
        if (quoted && *p == '"')
            return -1;
        if (quoted && *p == '\\') {
            p++;
            if (p == end || (*p != '"' && *p != '\\'))
                return -1;
        }
        if (*p < ' ' || *p > '~' || n + 1 >= size)
            return -1;
        ret[n++] = *p;
    }
    ret[n] = '\0';
    return n > 0 ? (int)n : -1;
}
