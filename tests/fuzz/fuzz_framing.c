/*
 * The head of a request, as libmicrohttpd leaves it: each CR, LF and first colon of a line, and the
 * spaces of the request line, are NUL bytes. The harness prepares the input so, and gives it to the
 * strict reader. Values that it takes are read once more by hand; keys are quoted again.
 */
#include "fuzz.h"
#include "http_framing.h"

#include <strings.h>

enum { KEY_ROOM = 256 };

/* Returns the version's place in the head; NULL: there is no request line. */
static const char *prepare(char *head, size_t size)
{
    char *const end = head + size;
    char *line_end = memchr(head, '\n', size);
    if (line_end == NULL)
        return NULL;
    char *space = memchr(head, ' ', (size_t)(line_end - head));
    char *last = memrchr(head, ' ', (size_t)(line_end - head));
    if (space == NULL || last == space)
        return NULL;
    *space = *last = '\0';
    for (char *line = head; line < end; line = line_end + 1) {
        line_end = memchr(line, '\n', (size_t)(end - line));
        if (line_end == NULL)
            break;
        char *colon = line == head ? NULL : memchr(line, ':', (size_t)(line_end - line));
        if (colon != NULL)
            *colon = '\0';
        if (line_end > line && line_end[-1] == '\r')
            line_end[-1] = '\0';
        *line_end = '\0';
    }
    return last + 1;
}

static void check_value(const char *head, size_t size, const struct http_value *value)
{
    if (value->count == 0)
        return;
    FUZZ_CHECK(value->text >= head && value->text + value->length < head + size);
    FUZZ_CHECK(memchr(value->text, '\0', value->length) == NULL);
    FUZZ_CHECK(value->length == 0 ||
               (value->text[0] != ' ' && value->text[value->length - 1] != ' '));
}

static void check_length(const struct http_head *head)
{
    FUZZ_CHECK(head->content_length.count + head->transfer_encoding.count <= 1);
    if (head->content_length.count == 1) {
        char *digits = fuzz_text(head->content_length.text, head->content_length.length), *end;
        FUZZ_CHECK(strtoll(digits, &end, 10) == head->body_bytes && *end == '\0');
        free(digits);
    } else {
        FUZZ_CHECK(head->body_bytes == -head->transfer_encoding.count);
    }
}

/* A key, as a quoted string, is the same key. */
static void check_key(const struct http_value *value)
{
    char key[KEY_ROOM], again[KEY_ROOM], quoted[2 * KEY_ROOM + 2], *to = quoted;
    const int length = framing_key(value, key, sizeof key);
    FUZZ_CHECK(length == -1 || (length >= 1 && length < KEY_ROOM && (int)strlen(key) == length));
    if (length < 0)
        return;
    *to++ = '"';
    for (const char *c = key; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            *to++ = '\\';
        *to++ = *c;
    }
    *to++ = '"';
    const struct http_value same = {.text = quoted, .length = (size_t)(to - quoted), .count = 1};
    FUZZ_CHECK(framing_key(&same, again, sizeof again) == length && strcmp(key, again) == 0);
}

/* A token has no space, comma or quote, and stands again after the scheme. */
static void check_bearer(const struct http_value *value)
{
    size_t length, same_length;
    const char *token = framing_bearer(value, &length);
    FUZZ_CHECK(token != NULL);
    if (length == 0)
        return;
    FUZZ_CHECK(token + length == value->text + value->length);
    char *text = fuzz_text(token, length), *again;
    FUZZ_CHECK(strpbrk(text, " ,\"\t\\") == NULL && asprintf(&again, "bEARER %s", text) > 0);
    const struct http_value same = {.text = again, .length = strlen(again), .count = 1};
    const char *same_token = framing_bearer(&same, &same_length);
    FUZZ_CHECK(same_length == length && memcmp(same_token, token, length) == 0);
    free(again);
    free(text);
}

static void check_type(const struct http_value *value)
{
    if (!framing_is_json(value))
        return;
    char *text = fuzz_text(value->text, value->length);
    FUZZ_CHECK(strncasecmp(text, "application/json", 16) == 0);
    FUZZ_CHECK(strchr(text, ';') == NULL ? strspn(text + 16, " \t") == strlen(text + 16)
                                         : strcasestr(text, "charset=") != NULL);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    char *head = fuzz_copy(input, size);
    struct http_head read;
    if (size > 0 && memchr(head, '\0', size) == NULL) {
        char *text = fuzz_text(input, size);
        const struct http_value value = {.text = text, .length = size, .count = 1};
        check_key(&value);
        check_bearer(&value);
        check_type(&value);
        free(text);
    }
    const char *version = prepare(head, size);
    if (version != NULL && framing_read(head, version, size, &read) == NULL) {
        const struct http_value *values[] = {
            &read.host,         &read.content_length,  &read.expect,     &read.transfer_encoding,
            &read.content_type, &read.idempotency_key, &read.request_id, &read.authorization};
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            check_value(head, size, values[i]);
        check_length(&read);
        FUZZ_CHECK(read.host.count <= 1 && read.idempotency_key.count <= 1);
        if (read.idempotency_key.count == 1)
            check_key(&read.idempotency_key);
        if (read.authorization.count == 1)
            check_bearer(&read.authorization);
    }
    free(head);
    return 0;
}
