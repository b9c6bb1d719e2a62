/* The pages of the site in one language. */
#ifndef PAGES_H
#define PAGES_H

#include "site_page.h"

/* The first page: opening, story, which lock. */
int pages_index(const struct site *site, const json_t *words, int language);
/* A page for each failure that was recorded. */
int pages_lessons(const struct site *site, const json_t *words, int language);
/* Failures down, guards across. */
int pages_matrix(const struct site *site, const json_t *words, int language);
/* The levels of step mode as a game on recorded runs. */
int pages_levels(const struct site *site, const json_t *words, int language);
/* The lesson to teach from; questions on locks, with answers. */
int pages_teach(const struct site *site, const json_t *words, int language);
int pages_interview(const struct site *site, const json_t *words, int language);

#endif
