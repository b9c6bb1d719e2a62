/* The table of routes: method, path pattern, what the body holds, what is done. */
#ifndef ROUTES_H
#define ROUTES_H

#include "extra_routes.h"
#include "op.h"
#include "roles.h"

#include <stddef.h>

/* What one member of a JSON body is. */
enum field_type {
    FIELD_ID,      /* string of [A-Za-z0-9_-]{1,64} */
    FIELD_USER,    /* the same: a user. A buyer's token gives it, and no other may be sent */
    FIELD_NAME,    /* string of [A-Za-z0-9_-]{1,24}: a guard, or a word of a list */
    FIELD_TEXT,    /* string of printable characters, at most max bytes */
    FIELD_INTEGER, /* whole number from min to max */
    FIELD_BOOL     /* into an int8_t: 1, 0; -1 when absent */
};

enum { ROUTE_FIELDS_MAX = 8 };

struct field {
    const char *name;
    enum field_type type;
    size_t offset; /* in struct op */
    bool required;
    int64_t min, max, fallback; /* FIELD_INTEGER; FIELD_TEXT: max */
};

/* Who answers. */
enum route_action {
    ROUTE_OPERATION,
    ROUTE_LIVE,
    ROUTE_METRICS,
    ROUTE_OPENAPI,
    ROUTE_EVENTS,
    ROUTE_PAGE,
    ROUTE_PROBLEM
};

/* What {} in the path is, and where it goes. */
enum route_parameter { ROUTE_NONE, ROUTE_ID, ROUTE_KEY, ROUTE_FILE };

struct route {
    const char *method, *path;
    enum route_action action;
    enum route_parameter parameter;
    enum op_kind kind;
    enum role role;        /* the least that may ask it; extra routes are the operator's */
    bool conditional;      /* needs If-Match or If-None-Match: 428 */
    bool lesson;           /* only with --demo or --lab */
    const char *canonical; /* beginning of op.request: "order item="; NULL: none, and no key */
    struct field fields[ROUTE_FIELDS_MAX];
    int64_t rows_max; /* a list: of its limit=; 0: none */
    bool of_user;     /* a list: of ?user= */
};

extern const struct route routes[];
extern const size_t n_routes;

enum { ROUTE_TARGET_MAX = 1023, ROUTE_ALLOW_MAX = 32 };

enum route_outcome {
    ROUTE_FOUND,
    ROUTE_UNKNOWN,      /* no such path */
    ROUTE_WRONG_METHOD, /* allow says which would do */
    ROUTE_BAD_PARAMETER /* malformed id or key, or malformed percent-encoding */
};

struct route_match {
    const struct route *route;       /* of routes[]; NULL: none */
    const struct extra_route *extra; /* of the extra routes; NULL: none */
    char parameter[OP_KEY_MAX + 1];  /* decoded */
    size_t query;                    /* where it begins in the target, after '?'; 0: none */
    char allow[ROUTE_ALLOW_MAX];
};

/* Finds the route of a raw request target ("/v1/items/1?x=y" or "http://host/v1/items/1"), among
 * all routes and those of extras, whose NULL members are skipped. */
enum route_outcome route_find(const char *method, const char *target,
                              const struct extra_routes *const extras[EXTRAS_MAX],
                              struct route_match *ret);

#endif
