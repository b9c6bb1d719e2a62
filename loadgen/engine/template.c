#include "template.h"
#include "splitmix.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANDOM_MAX = INT32_MAX, NUMBER_MAX = 40, SHOWN_MAX = 60 };

/* -- compiling --------------------------------------------------------------------------------- */

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* Parses the text between {{ and }}. */
static bool parse_placeholder(const char *text, size_t length, struct template_part *ret)
{
    char copy[NUMBER_MAX * 2], after;
    *ret = (struct template_part){.min = 0, .max = RANDOM_MAX};
    if (is_word(text, length, "seq"))
        ret->kind = TEMPLATE_SEQ;
    else if (is_word(text, length, "uuid"))
        ret->kind = TEMPLATE_UUID;
    else
        ret->kind = TEMPLATE_RANDOM;
    if (ret->kind != TEMPLATE_RANDOM || is_word(text, length, "random"))
        return true;
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return sscanf(copy, "random %" SCNd64 " %" SCNd64 " %c", &ret->min, &ret->max, &after) == 2 &&
           ret->min <= ret->max;
}

/* How many bytes at open a message shows: to the placeholder's end or the end of the line, at most
 * SHOWN_MAX. */
static int shown_length(const char *open, const char *close)
{
    size_t length = strcspn(open, "\r\n");
    if (close != NULL && (size_t)(close + 2 - open) < length)
        length = (size_t)(close + 2 - open);
    return length < SHOWN_MAX ? (int)length : SHOWN_MAX;
}

int template_compile(const char *text, struct template *ret, char *message, size_t size)
{
    struct template template = {0};
    while (*text != '\0') {
        if (template.n + 2 > TEMPLATE_PARTS_MAX) {
            snprintf(message, size, "more than %d placeholders", TEMPLATE_PARTS_MAX / 2);
            return -1;
        }
        const char *open = strstr(text, "{{");
        size_t length = open == NULL ? strlen(text) : (size_t)(open - text);
        if (length > 0)
            template.parts[template.n++] =
                (struct template_part){.kind = TEMPLATE_TEXT, .text = text, .length = length};
        if (open == NULL)
            break;
        const char *close = strstr(open, "}}");
        if (close == NULL ||
            !parse_placeholder(open + 2, (size_t)(close - open - 2), &template.parts[template.n])) {
            snprintf(message, size,
                     "'%.*s' is none of {{seq}}, {{uuid}}, {{random}}, {{random A B}}",
                     shown_length(open, close), open);
            return -1;
        }
        template.n++;
        text = close + 2;
    }
    *ret = template;
    return 0;
}

bool template_is_plain(const struct template *template)
{
    return template->n == 0 || (template->n == 1 && template->parts[0].kind == TEMPLATE_TEXT);
}

/* -- expanding --------------------------------------------------------------------------------- */

static int expand_part(const struct template_part *part, uint64_t dice, uint64_t seq,
                       char out[NUMBER_MAX])
{
    uint64_t second = splitmix(dice), range = (uint64_t)part->max - (uint64_t)part->min + 1;
    switch (part->kind) {
    case TEMPLATE_TEXT:
        break;
    case TEMPLATE_SEQ:
        return snprintf(out, NUMBER_MAX, "%" PRIu64, seq);
    case TEMPLATE_RANDOM:
        return snprintf(out, NUMBER_MAX, "%" PRId64,
                        (int64_t)((uint64_t)part->min + (range == 0 ? dice : dice % range)));
    case TEMPLATE_UUID:
        return snprintf(out, NUMBER_MAX, "%08x-%04x-4%03x-%04x-%012" PRIx64, (unsigned)(dice >> 32),
                        (unsigned)(dice >> 16 & 0xffff), (unsigned)(dice & 0xfff),
                        (unsigned)(second >> 48 & 0x3fff) | 0x8000,
                        second & UINT64_C(0xffffffffffff));
    }
    return 0;
}

long template_expand(const struct template *template, uint64_t seed, uint64_t seq, unsigned place,
                     char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < template->n; i++) {
        const struct template_part *part = &template->parts[i];
        char number[NUMBER_MAX];
        const char *text = part->text;
        size_t length = part->length;
        if (part->kind != TEMPLATE_TEXT) {
            uint64_t dice = splitmix(splitmix(splitmix(seed) + seq) + ((uint64_t)place << 32 | i));
            length = (size_t)expand_part(part, dice, seq, number);
            text = number;
        }
        if (length > size - used)
            return -1;
        memcpy(out + used, text, length);
        used += length;
    }
    return (long)used;
}
