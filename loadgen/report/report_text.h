/* What the files of the terminal's report share. */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include "report.h"

#define COLOR_OFF    "\033[0m"
#define COLOR_RED    "\033[1;31m"
#define COLOR_GREEN  "\033[32m"
#define COLOR_STRONG "\033[1m"
#define COLOR_DIM    "\033[2m"

struct report_paper {
    FILE *out;
    bool color;
};

void report_paint(const struct report_paper *paper, const char *color, const char *text);
/* One line, broken between words where it is wider than a terminal of 80 columns. color: NULL: as
 * other text. */
void report_say(const struct report_paper *paper, const char *color, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* report_remarks.c: only what happened; and how the run lost an update. */
void report_text_remarks(const struct report_paper *paper, const struct report *report);
void report_text_example(const struct report_paper *paper, const struct run *run);

#endif
