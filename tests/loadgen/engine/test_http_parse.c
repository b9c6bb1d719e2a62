/* The parser against a table of answers, each cut into pieces in many ways, and against noise. */
#include "http_parse.h"
#include "http_answers.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 4096, ANSWER_MAX = 4096 };

/* What came of an answer. */
struct outcome {
    enum http_event end; /* HTTP_MORE: cut short */
    int status;
    bool keep_alive, replayed;
    int64_t retry_after_ms;
    size_t body_length, surplus; /* bytes after the answer */
    char body[BODY_MAX];
};

/* Feeds one piece, from memory of exactly its size so that ASan sees every byte read beyond. */
static enum http_event feed(struct http_parser *parser, const char *bytes, size_t length,
                            struct outcome *outcome)
{
    char *copy = malloc(length > 0 ? length : 1);
    const char *data = copy;
    struct http_span span;
    enum http_event event;
    memcpy(copy, bytes, length);
    while ((event = http_parse(parser, &data, &length, &span)) == HTTP_BODY) {
        size_t room = sizeof outcome->body - outcome->body_length;
        size_t n = span.length < room ? span.length : room;
        memcpy(outcome->body + outcome->body_length, span.bytes, n);
        outcome->body_length += n;
    }
    outcome->surplus += length;
    free(copy);
    return event;
}

static void finish(struct http_parser *parser, enum http_event event, struct outcome *outcome)
{
    if (event == HTTP_MORE && http_parse_end(parser))
        event = HTTP_DONE;
    outcome->end = event;
    if (event != HTTP_DONE)
        return;
    outcome->status = parser->status;
    outcome->keep_alive = parser->keep_alive;
    outcome->replayed = parser->replayed;
    outcome->retry_after_ms = parser->retry_after_ms;
}

/* cuts: ascending positions at which the answer is cut. */
static void parse_cut(const char *text, size_t length, const size_t *cuts, size_t n_cuts,
                      bool is_head, struct outcome *ret)
{
    struct http_parser parser;
    enum http_event event = HTTP_MORE;
    size_t from = 0;
    memset(ret, 0, sizeof *ret);
    memset(&parser, 0xa5, sizeof parser);
    http_parse_start(&parser, is_head);
    for (size_t i = 0; i <= n_cuts; i++) {
        size_t to = i < n_cuts ? cuts[i] : length;
        if (event == HTTP_MORE)
            event = feed(&parser, text + from, to - from, ret);
        else if (event == HTTP_DONE)
            ret->surplus += to - from;
        from = to;
    }
    finish(&parser, event, ret);
    if (ret->end != HTTP_DONE) /* how far a bad answer got is nobody's business */
        *ret = (struct outcome){.end = ret->end};
}

static bool same(const struct outcome *a, const struct outcome *b)
{
    return a->end == b->end && a->status == b->status && a->keep_alive == b->keep_alive &&
           a->replayed == b->replayed && a->retry_after_ms == b->retry_after_ms &&
           a->surplus == b->surplus && a->body_length == b->body_length &&
           memcmp(a->body, b->body, a->body_length) == 0;
}

TEST_THAT(answers_mean_what_the_standard_says)
{
    for (size_t i = 0; i < ANSWERS; i++) {
        const struct answer *answer = &answers[i];
        struct outcome got;
        print_message("%s\n", answer->name);
        parse_cut(answer->text, strlen(answer->text), NULL, 0, answer->is_head, &got);
        if (answer->status <= 0) {
            assert_int_equal(got.end, answer->status == ANSWER_BAD ? HTTP_BAD : HTTP_MORE);
            continue;
        }
        assert_int_equal(got.end, HTTP_DONE);
        assert_int_equal(got.status, answer->status);
        assert_int_equal(got.body_length, strlen(answer->body));
        assert_memory_equal(got.body, answer->body, got.body_length);
        assert_int_equal(got.keep_alive, !answer->closes);
        assert_int_equal(got.surplus, answer->surplus);
    }
}

TEST_THAT(any_two_cuts_change_nothing)
{
    for (size_t i = 0; i < ANSWERS; i++) {
        const struct answer *answer = &answers[i];
        size_t length = strlen(answer->text);
        struct outcome whole, got;
        parse_cut(answer->text, length, NULL, 0, answer->is_head, &whole);
        for (size_t first = 0; first <= length; first++)
            for (size_t second = first; second <= length; second++) {
                size_t cuts[2] = {first, second};
                parse_cut(answer->text, length, cuts, 2, answer->is_head, &got);
                if (!same(&whole, &got))
                    fail_msg("'%s' cut at %zu and %zu", answer->name, first, second);
            }
    }
}

TEST_THAT(byte_by_byte_changes_nothing)
{
    for (size_t i = 0; i < ANSWERS; i++) {
        const struct answer *answer = &answers[i];
        size_t cuts[ANSWER_MAX], length = strlen(answer->text);
        struct outcome whole, got;
        for (size_t at = 0; at < length; at++)
            cuts[at] = at;
        parse_cut(answer->text, length, NULL, 0, answer->is_head, &whole);
        parse_cut(answer->text, length, cuts, length, answer->is_head, &got);
        assert_true(same(&whole, &got));
    }
}

TEST_THAT(interesting_headers_are_read)
{
    static const struct {
        const char *header;
        bool replayed;
        int64_t retry_after_ms;
    } cases[] = {{"X: y", false, -1},
                 {"Retry-After: 3", false, 3000},
                 {"retry-after:0", false, 0},
                 {"Retry-After: Fri, 31 Dec 1999 23:59:59 GMT", false, -1},
                 {"Retry-After: 99999999999999", false, 1000000000000},
                 {"Idempotent-Replayed: true", true, -1},
                 {"idempotent-replayed: TRUE", true, -1},
                 {"Idempotent-Replayed: false", false, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        struct outcome got;
        int n =
            snprintf(text, sizeof text, OK_LINE "%s\r\nContent-Length: 0\r\n\r\n", cases[i].header);
        parse_cut(text, (size_t)n, NULL, 0, false, &got);
        assert_int_equal(got.end, HTTP_DONE);
        assert_int_equal(got.replayed, cases[i].replayed);
        assert_int_equal(got.retry_after_ms, cases[i].retry_after_ms);
    }
}

/* The outcome of OK_LINE, `lines` times "X: aaa...\r\n" of line_length bytes each, and the rest. */
static void parse_long(size_t lines, size_t line_length, const char *rest, size_t cut,
                       struct outcome *ret)
{
    size_t length = strlen(OK_LINE) + lines * line_length + strlen(rest);
    char *text = malloc(length + 1), *to = stpcpy(text, OK_LINE);
    for (size_t i = 0; i < lines; i++, to += line_length) {
        memset(to, 'a', line_length);
        memcpy(to, "X: ", 3);
        memcpy(to + line_length - 2, "\r\n", 2);
    }
    memcpy(to, rest, strlen(rest));
    size_t cuts[ANSWER_MAX], n_cuts = 0;
    for (size_t at = cut; cut > 0 && at < length; at += cut)
        cuts[n_cuts++] = at;
    parse_cut(text, length, cuts, n_cuts, false, ret);
    free(text);
}

TEST_THAT(huge_headers_are_refused_at_their_bound)
{
    static const char rest[] = "Content-Length: 2\r\n\r\nok";
    static const size_t cuts[] = {0, 37, 1000};
    size_t overhead = strlen(OK_LINE) + strlen("Content-Length: 2\r\n\r\n");
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        struct outcome got;
        parse_long(1, HTTP_LINE_MAX, rest, cuts[i], &got);
        assert_int_equal(got.end, HTTP_DONE);
        parse_long(1, HTTP_LINE_MAX + 1, rest, cuts[i], &got);
        assert_int_equal(got.end, HTTP_BAD);
        parse_long(1, HTTP_LINE_MAX + 1, "", cuts[i], &got);
        assert_int_equal(got.end, HTTP_BAD);
        size_t lines = 32, fitting = (HTTP_HEAD_MAX - overhead) / lines;
        parse_long(lines, fitting, rest, cuts[i], &got);
        assert_int_equal(got.end, HTTP_DONE);
        parse_long(lines, fitting + 2, rest, cuts[i], &got);
        assert_int_equal(got.end, HTTP_BAD);
    }
}

TEST_THAT(known_header_beyond_the_kept_bytes_is_refused)
{
    char text[1024], blanks[HTTP_LINE_KEPT + 1];
    struct outcome got;
    memset(blanks, ' ', sizeof blanks - 1);
    blanks[sizeof blanks - 1] = '\0';
    int n = snprintf(text, sizeof text, OK_LINE "Content-Length: 2%s3\r\n\r\nok", blanks);
    parse_cut(text, (size_t)n, NULL, 0, false, &got);
    assert_int_equal(got.end, HTTP_BAD);
    size_t cuts[] = {40, 100};
    parse_cut(text, (size_t)n, cuts, 2, false, &got);
    assert_int_equal(got.end, HTTP_BAD);
}

TEST_THAT(endless_interim_answers_are_refused)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct http_parser parser;
    struct http_span span;
    enum http_event event = HTTP_MORE;
    size_t fed = 0;
    http_parse_start(&parser, false);
    while (event == HTTP_MORE && fed <= 2 * HTTP_HEAD_MAX) {
        const char *data = interim;
        size_t length = strlen(interim);
        event = http_parse(&parser, &data, &length, &span);
        fed += strlen(interim);
    }
    assert_int_equal(event, HTTP_BAD);
}

TEST_THAT(nul_in_the_head_is_refused)
{
    static const char text[] = OK_LINE "X: a\0b\r\nContent-Length: 0\r\n\r\n";
    struct outcome got;
    parse_cut(text, sizeof text - 1, NULL, 0, false, &got);
    assert_int_equal(got.end, HTTP_BAD);
}

static uint64_t random_state;

static size_t random_below(size_t bound) /* xorshift64*, Vigna 2014 */
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (size_t)((random_state * UINT64_C(2685821657736338717)) >> 33) % bound;
}

static size_t mutate(char *text, size_t length)
{
    static const char spice[] = "\r\n\0 :;,0123456789abcdefHTP/.\xff-";
    for (size_t n = 1 + random_below(4); n > 0 && length > 1; n--) {
        size_t at = random_below(length);
        switch (random_below(4)) {
        case 0:
            text[at] = spice[random_below(sizeof spice)];
            break;
        case 1:
            text[at] ^= (char)(1 << random_below(8));
            break;
        case 2: /* leave out */
            memmove(text + at, text + at + 1, length - at - 1);
            length--;
            break;
        default: /* double a stretch */
            if (length + 16 < ANSWER_MAX) {
                size_t stretch = 1 + random_below(length - at < 16 ? length - at : 16);
                memmove(text + at + stretch, text + at, length - at);
                length += stretch;
            }
        }
    }
    return length;
}

/* Whatever it is: no crash, no read beyond, and the same result however it is cut. */
TEST_THAT(mutated_answers_are_survived_and_cut_alike)
{
    size_t rounds = getenv("TEST_FULL") != NULL ? 20000000 : 300000;
    random_state = 42;
    for (size_t round = 0; round < rounds; round++) {
        const struct answer *answer = &answers[random_below(ANSWERS)];
        char text[ANSWER_MAX];
        size_t cuts[8], n_cuts = 1 + random_below(8), from = 0;
        struct outcome whole, got;
        size_t length = strlen(answer->text);
        memcpy(text, answer->text, length);
        length = mutate(text, length);
        for (size_t i = 0; i < n_cuts; i++)
            from = cuts[i] = from + random_below(length - from + 1);
        parse_cut(text, length, NULL, 0, answer->is_head, &whole);
        parse_cut(text, length, cuts, n_cuts, answer->is_head, &got);
        if (!same(&whole, &got))
            fail_msg("round %zu: '%.*s'", round, (int)length, text);
    }
}
