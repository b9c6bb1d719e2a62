/* Numbers and times as people read them. Each writes into out and returns it. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { TEXT_MAX = 40 };

char *text_count(char out[TEXT_MAX], int64_t value);    /* 1,234,567 */
char *text_signed(char out[TEXT_MAX], int64_t value);   /* +300, -200 */
char *text_time_us(char out[TEXT_MAX], int64_t us);     /* 850 us, 12.3 ms, 1.20 s */
char *text_percentile(char out[TEXT_MAX], int64_t us);  /* as text_time_us(); -: not told (< 0) */
char *text_rate(char out[TEXT_MAX], double per_second); /* 1,234 or 0.52 */

/* Copies text with line breaks between words, for a terminal of 80 columns. A line that goes on is
 * indented; always NUL-terminated. */
char *text_wrap(char *out, size_t size, const char *text, int indent);

/* Copies text with the characters that HTML gives a meaning escaped; always NUL-terminated, cut
 * at a whole character. */
char *text_html(char *out, size_t size, const char *text);

#endif
