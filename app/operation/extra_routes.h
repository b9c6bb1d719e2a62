/*
 * Routes that a service has only with --lab or --demo. Each of the two hands a table of its own to
 * http_start(), which knows no more of them than this header.
 *
 * Threading: the HTTP side's thread calls all of it; nothing in here may block.
 */
#ifndef EXTRA_ROUTES_H
#define EXTRA_ROUTES_H

#include "op.h"

#include <stddef.h>

enum { EXTRAS_MAX = 2 }; /* tables of one service */

/* A request, borrowed for the call. */
struct extra_request {
    const char *url;       /* of this service: "http://127.0.0.1:8080" */
    const char *parameter; /* what {} in the path stands for, decoded; "" */
    const char *body;      /* not NUL-terminated */
    size_t body_bytes;
};

struct extra_route {
    const char *method, *path; /* "GET", "/v1/lab/pauses/{}" */
    /* True: op->answer is filled. False: op has a question for the service. */
    bool (*answer)(const struct extra_request *request, struct op *op);
};

struct extra_routes {
    const struct extra_route *list;
    size_t n;
    void (*tick)(void); /* in each round of the thread's loop; must be cheap. NULL: none */
    void (*end)(void);  /* when the HTTP side drains, and again when it ends. NULL: none */
};

#endif
