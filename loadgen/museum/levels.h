/* The levels with their recorded runs (`loadgen levels`), and what the page's script and lists need
 * of them. */
#ifndef MUSEUM_LEVELS_H
#define MUSEUM_LEVELS_H

#include "site_page.h"

#include <stdbool.h>

/* The levels of levels.json, each with its "runs" from the recording. NULL with message
 * (MUSEUM_MESSAGE_MAX): one was not recorded, or its recording contradicts its data. */
json_t *levels_open(const json_t *recording, char *message);

/* Writes levels-data.js. 0, or -1 with site->message. */
int levels_write_data(const struct site *site);

/* NULL: there is no such level. */
const json_t *levels_find(const struct site *site, const char *id);
/* The run that its list shows: one that loses with the fewest moves, or else one in which a request
 * was refused or had to wait. */
const json_t *levels_solution(const json_t *level);
/* Did the row keep what the accepted requests say? */
bool levels_keeps(const json_t *run);

/* What the nth move of the run has done, in the page's language. */
void levels_tell(const struct page *page, const json_t *run, size_t n);

#endif
