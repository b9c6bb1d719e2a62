/* Shared by the files of the terminal's report. */
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

/* Writes one line, wrapped at a terminal's 80 columns. color NULL: plain. */
void report_say(const struct report_paper *paper, const char *color, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* report_remarks.c: remarks on what happened, and how the run lost an update. */
void report_text_remarks(const struct report_paper *paper, const struct report *report);
void report_text_example(const struct report_paper *paper, const struct run *run);

#endif
