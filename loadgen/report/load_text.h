/* The figures of a load as text: how much was answered, how fast, and what went wrong. */
#ifndef LOAD_TEXT_H
#define LOAD_TEXT_H

#include "load.h"

#include <stdio.h>

/* The first line, if the load was stopped or overloaded. Otherwise nothing. */
void load_text_headline(const struct load_result *load, const struct load_options *options,
                        FILE *out);
void load_text(const struct load_result *load, const struct load_options *options, FILE *out);

#endif
