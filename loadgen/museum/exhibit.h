/* One record on a page: what happened as an ordered list, its verdict, and its data for the
 * player. */
#ifndef EXHIBIT_H
#define EXHIBIT_H

#include "bind.h"
#include "site_page.h"

/* Writes the list, the verdict and the data. scene, bound: whose sentences mark the beats; NULL:
 * none. */
void exhibit_write(const struct page *page, const json_t *record, const struct scene *scene,
                   const struct bound *bound);

/* "redis-token.fence-on": of guard and variant, for the address. */
enum { EXHIBIT_SLUG_MAX = 120 };
void exhibit_slug(const json_t *record, char out[EXHIBIT_SLUG_MAX]);

/* What is special about the case, in the page's language; "": nothing. */
const char *exhibit_variant(const struct page *page, const json_t *record);
/* A sign beside the word for an outcome, for those who do not see colours. */
const char *exhibit_sign(const char *outcome);
/* The sign as a link to the run, for pages at the top of a language. */
void exhibit_link(const struct page *page, const json_t *record);

#endif
