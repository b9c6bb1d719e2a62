#include "text.h"
#include "wide.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

char *text_count(char out[TEXT_MAX], int64_t value)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, value);
    int first = digits[0] == '-' ? 1 : 0;
    char *to = out;
    for (int i = 0; i < length; i++) {
        if (i > first && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return out;
}

char *text_signed(char out[TEXT_MAX], int64_t value)
{
    out[0] = '+';
    text_count(value < 0 ? out : out + 1, value);
    return out;
}

char *text_time_us(char out[TEXT_MAX], int64_t us)
{
    double ms = (double)us / 1000;
    if (us < 1000)
        snprintf(out, TEXT_MAX, "%" PRId64 " us", us);
    else if (ms < 99.95)
        snprintf(out, TEXT_MAX, "%.1f ms", ms);
    else if (ms < 999.5)
        snprintf(out, TEXT_MAX, "%.0f ms", ms);
    else
        snprintf(out, TEXT_MAX, "%.2f s", ms / 1000);
    return out;
}

char *text_percentile(char out[TEXT_MAX], int64_t us)
{
    if (us >= 0)
        return text_time_us(out, us);
    strcpy(out, "-");
    return out;
}

char *text_rate(char out[TEXT_MAX], double per_second)
{
    if (per_second < 10)
        snprintf(out, TEXT_MAX, "%.2f", per_second);
    else
        text_count(out, wide_clip_real(per_second + 0.5));
    return out;
}

char *text_wrap(char *out, size_t size, const char *text, int indent)
{
    enum { COLUMNS = 80 };
    size_t used = 0, column = 0;
    while (*text != '\0') {
        size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " \n");
        bool breaks = column > 0 && blanks > 0 && word > 0 && column + blanks + word > COLUMNS;
        size_t before = breaks ? 1 + (size_t)indent : blanks;
        if (used + before + word + 2 > size)
            break;
        memset(out + used, ' ', before);
        if (breaks)
            out[used] = '\n';
        memcpy(out + used + before, text + blanks, word);
        used += before + word;
        column = (breaks ? (size_t)indent : column + blanks) + word;
        text += blanks + word;
        if (*text == '\n') {
            out[used++] = *text++;
            column = 0;
        }
    }
    out[used] = '\0';
    return out;
}

char *text_html(char *out, size_t size, const char *text)
{
    size_t used = 0;
    for (; *text != '\0'; text++) {
        const char *as = *text == '<'    ? "&lt;"
                         : *text == '>'  ? "&gt;"
                         : *text == '&'  ? "&amp;"
                         : *text == '"'  ? "&quot;"
                         : *text == '\'' ? "&#39;"
                                         : NULL;
        size_t length = as == NULL ? 1 : strlen(as);
        if (used + length >= size)
            break;
        memcpy(out + used, as == NULL ? text : as, length);
        used += length;
    }
    out[used] = '\0';
    return out;
}
