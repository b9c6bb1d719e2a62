/* The answer parser of the load generator. The first two bytes say where the answer is cut and
 * whether it answers HEAD. Cut or not, the result must be the same. */
#include "fuzz.h"
#include "http_parse.h"

struct outcome {
    enum http_event end;
    int status;
    bool keep_alive;
    size_t used, body_length;
    uint64_t body_sum; /* FNV-1a */
};

static enum http_event feed(struct http_parser *parser, const uint8_t *bytes, size_t length,
                            struct outcome *outcome)
{
    char *copy = fuzz_copy(bytes, length);
    const char *data = copy;
    size_t left = length;
    struct http_span span;
    enum http_event event;
    while ((event = http_parse(parser, &data, &left, &span)) == HTTP_BODY)
        for (size_t i = 0; i < span.length; i++, outcome->body_length++)
            outcome->body_sum =
                (outcome->body_sum ^ (uint8_t)span.bytes[i]) * UINT64_C(1099511628211);
    outcome->used += length - left;
    free(copy);
    return event;
}

static struct outcome parse(const uint8_t *bytes, size_t length, size_t cut, bool is_head)
{
    struct http_parser parser;
    struct outcome outcome = {0};
    http_parse_start(&parser, is_head);
    enum http_event event = feed(&parser, bytes, cut, &outcome);
    if (event == HTTP_MORE)
        event = feed(&parser, bytes + cut, length - cut, &outcome);
    if (event == HTTP_MORE && http_parse_end(&parser))
        event = HTTP_DONE;
    if (event != HTTP_DONE)
        return (struct outcome){.end = event};
    outcome.end = event;
    outcome.status = parser.status;
    outcome.keep_alive = parser.keep_alive;
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    if (size < 2)
        return 0;
    const uint8_t *bytes = input + 2;
    size_t length = size - 2, cut = length * input[0] / 255;
    bool is_head = (input[1] & 1) != 0;
    struct outcome whole = parse(bytes, length, 0, is_head);
    struct outcome pieces = parse(bytes, length, cut, is_head);
    FUZZ_CHECK(whole.end == pieces.end && whole.status == pieces.status &&
               whole.keep_alive == pieces.keep_alive && whole.used == pieces.used);
    FUZZ_CHECK(whole.body_length == pieces.body_length && whole.body_sum == pieces.body_sum);
    FUZZ_CHECK(whole.end != HTTP_DONE || (whole.status >= 200 && whole.status <= 599));
    return 0;
}
