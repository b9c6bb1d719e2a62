/* The opening: one item sold without a lock, and two of its buyers who have read one value. */
#ifndef OPENING_H
#define OPENING_H

#include "site_page.h"

void opening_write(const struct page *page);

#endif
