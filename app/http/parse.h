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
/* Reads the query of a list ("after=17&limit=20&user=u1") into op->after (""), op->limit (100) and
 * op->other. limit_max: of op->limit. with_user: it has a user, a buyer's own without being said;
 * else there is no such parameter. */
bool parse_list_query(const char *query, int64_t limit_max, bool with_user, struct op *op);

#endif
