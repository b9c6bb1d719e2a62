/* Names of resources: "item:1", "account:12345". Checks of the names in a request. */
#ifndef RESOURCE_H
#define RESOURCE_H

#include "op.h"

#include <stddef.h>

/* "item:1" from its parts. */
void resource_name(char ret[DB_RESOURCE_MAX + 1], const char *kind, const char *id);

/* Percent-decodes "item:ID" or "account:ID" into op->resource. Returns false, with a problem as
 * op's answer, when it is neither. */
bool resource_parse(const char *text, struct op *op);

/* Is text 1 to max characters of [A-Za-z0-9_-]? */
bool is_id(const char *text, size_t max);

/* Decodes %XX of text[0..length) into ret. Returns the length, or -1: malformed or too long. */
int percent_decode(const char *text, size_t length, char *ret, size_t size);

#endif
