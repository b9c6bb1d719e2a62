/* From the text of a request to the fields of an operation. */
#ifndef PARSE_H
#define PARSE_H

#include "routes.h"

/*
 * Reads a JSON body into op as route->fields say, fills defaults, and writes op->request, the
 * canonical text by which a retry is told from another request: every field in the table's order.
 * op->id must hold the path's id already. Allocates nothing for a body of usual size, once
 * json_room_set_up() has been called. Returns true, or false with a problem as op's answer.
 */
bool parse_body(const struct route *route, const char *body, size_t length, struct op *op);

/* Reads the query of GET /v1/audit ("resource=item:1" or nothing) into op->resource. */
bool parse_audit_query(const char *query, struct op *op);
/* Reads the query of GET /v1/ledger ("after=17&limit=1000", both or none) into op->after (0) and
 * op->limit (100). */
bool parse_ledger_query(const char *query, struct op *op);

#endif
