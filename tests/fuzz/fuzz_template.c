/* Templates of requests: what is compiled is expanded. A random number lies in its range. The same
 * seed and request give the same text, and the text's parts stand in it. */
#include "fuzz.h"
#include "template.h"

#include <inttypes.h>

enum { TEXT_ROOM = 1 << 16 };

/* Compares the text with its parts, up to the first random number that is not at the end: there it
 * is not known where the number ends. */
static void check_text(const struct template *template, const char *text, uint64_t seq)
{
    char number[24];
    for (size_t i = 0; i < template->n; i++) {
        const struct template_part *part = &template->parts[i];
        switch (part->kind) {
        case TEMPLATE_TEXT:
            FUZZ_CHECK(strncmp(text, part->text, part->length) == 0);
            text += part->length;
            break;
        case TEMPLATE_SEQ:
            snprintf(number, sizeof number, "%" PRIu64, seq);
            FUZZ_CHECK(strncmp(text, number, strlen(number)) == 0);
            text += strlen(number);
            break;
        case TEMPLATE_UUID:
            FUZZ_CHECK(strspn(text, "0123456789abcdef-") >= 36 && text[14] == '4' &&
                       strchr("89ab", text[19]) != NULL);
            text += 36;
            break;
        case TEMPLATE_RANDOM: {
            char *end;
            const int64_t value = strtoll(text, &end, 10);
            FUZZ_CHECK(end > text);
            if (i + 1 < template->n)
                return;
            FUZZ_CHECK(*end == '\0' && value >= part->min && value <= part->max);
            text = end;
            break;
        }
        }
    }
    FUZZ_CHECK(*text == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static const uint64_t seqs[] = {0, 1, INT64_MAX, UINT64_MAX};
    static char first[TEXT_ROOM], second[TEXT_ROOM];
    char *text = fuzz_text(input, size), message[400] = "";
    struct template template;
    if (template_compile(text, &template, message, sizeof message) != 0) {
        FUZZ_CHECK(message[0] != '\0');
        free(text);
        return 0;
    }
    FUZZ_CHECK(template.n <= TEMPLATE_PARTS_MAX);
    FUZZ_CHECK(template_is_plain(&template) == (strstr(text, "{{") == NULL));
    for (size_t i = 0; i < sizeof seqs / sizeof *seqs; i++) {
        const long length = template_expand(&template, size, seqs[i], 1, first, sizeof first);
        FUZZ_CHECK(length >= 0 || size > sizeof first / 64);
        if (length < 0)
            continue;
        FUZZ_CHECK(template_expand(&template, size, seqs[i], 1, second, (size_t)length) == length);
        FUZZ_CHECK(memcmp(first, second, (size_t)length) == 0);
        FUZZ_CHECK(length == 0 ||
                   template_expand(&template, size, seqs[i], 1, second, (size_t)length - 1) == -1);
        char *copy = fuzz_text(first, (size_t)length);
        check_text(&template, copy, seqs[i]);
        free(copy);
    }
    free(text);
    return 0;
}
