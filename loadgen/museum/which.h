/* Which lock? Questions, and the first rule of web/which.json that fits the answers. */
#ifndef WHICH_H
#define WHICH_H

#include "site_page.h"

void which_write(const struct page *page);

/* answers: an object question -> answer. The guard of the first rule that fits; NULL: none. */
const json_t *which_rule(const json_t *which, const json_t *answers);

#endif
