/* Problem documents, RFC 9457: every way in which an operation can end without a success. */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "db.h"

#include <stdbool.h>

/* Problem documents: name (end of "type"), HTTP status, title, Retry-After in seconds (0: none),
 * decided (a decision about the business, stored under its idempotency key). */
#define PROBLEM_MAP(X)                                                                             \
    X(BAD_REQUEST, "bad-request", 400, "Bad request", 0, false)                                    \
    X(KEY_REQUIRED, "key-required", 400, "Idempotency-Key required", 0, false)                     \
    X(UNAUTHORIZED, "unauthorized", 401, "Token required", 0, false)                               \
    X(FORBIDDEN, "forbidden", 403, "Not for this token", 0, false)                                 \
    X(FOREIGN_ORIGIN, "foreign-origin", 403, "Sent by a page of another site", 0, false)           \
    X(NOT_FOUND, "not-found", 404, "Not found", 0, false)                                          \
    X(METHOD, "method-not-allowed", 405, "Method not allowed", 0, false)                           \
    X(REQUEST_TIMEOUT, "request-timeout", 408, "Request not complete in time", 0, false)           \
    X(SOLD_OUT, "sold-out", 409, "Sold out", 0, true)                                              \
    X(USER_LIMIT, "user-limit", 409, "Limit per user reached", 0, true)                            \
    X(FUNDS, "insufficient-funds", 409, "Insufficient funds", 0, true)                             \
    X(STOCK, "insufficient-stock", 409, "Insufficient stock", 0, true)                             \
    X(OUT_OF_RANGE, "out-of-range", 409, "Value would leave the 64-bit range", 0, true)            \
    X(ORDER_CLOSED, "order-closed", 409, "Order is no longer open", 0, true)                       \
    X(ALREADY_DONE, "already-done", 409, "Done before; the answer is no longer kept", 0, false)    \
    X(IN_FLIGHT, "in-flight", 409, "A request with this key is still running", 1, false)           \
    X(ARCHIVED, "archived", 410, "Moved to an archive", 0, false)                                  \
    X(LENGTH_REQUIRED, "length-required", 411, "Content-Length required", 0, false)                \
    X(CHANGED, "precondition-failed", 412, "Not the state that the request asks for", 0, false)    \
    X(TOO_LARGE, "too-large", 413, "Request too large", 0, false)                                  \
    X(MEDIA_TYPE, "media-type", 415, "application/json expected", 0, false)                        \
    X(FOREIGN_HOST, "foreign-host", 421, "Host of another server", 0, false)                       \
    X(KEY_REUSED, "key-reused", 422, "Idempotency-Key was used for another request", 0, false)     \
    X(UNKNOWN_GUARD, "unknown-guard", 422, "Unknown guard", 0, false)                              \
    X(CONDITION_REQUIRED, "condition-required", 428, "If-Match or If-None-Match required", 0,      \
      false)                                                                                       \
    X(TOO_MANY_WAITING, "too-many-waiting", 429, "Too many requests wait for the same", 1, false)  \
    X(HEADERS_TOO_LARGE, "headers-too-large", 431, "Header fields too large", 0, false)            \
    X(INTERNAL, "internal", 500, "Internal error", 0, false)                                       \
    X(LOCK_TIMEOUT, "lock-timeout", 503, "Lock not had in time", 1, false)                         \
    X(LOCK_LOST, "lock-lost", 503, "Lock lost before the write; nothing written", 1, false)        \
    X(UNAVAILABLE, "unavailable", 503, "Lock server or database away", 1, false)                   \
    X(STORAGE_FULL, "storage-full", 503, "Storage full", 1, false)                                 \
    X(READ_ONLY, "read-only", 503, "Database takes no writes", 1, false)                           \
    X(CROWDED, "out-of-connections", 503, "Database takes no further connection", 1, false)        \
    X(OVERLOADED, "overloaded", 503, "Queue full", 1, false)                                       \
    X(DRAINING, "draining", 503, "Shutting down", 1, false)

enum problem {
    PROBLEM_NONE,
#define PROBLEM_ENUM(name, id, status, title, retry_s, decided) PROBLEM_##name,
    PROBLEM_MAP(PROBLEM_ENUM)
#undef PROBLEM_ENUM
        PROBLEM_COUNT
};

struct problem_info {
    const char *id, *title;
    int status, retry_s;
    bool decided;
};
/* Static. */
const struct problem_info *problem_info(enum problem problem);

/* Answers op with PROBLEM_ALREADY_DONE, if the stored answer of its key has been pruned: true. */
struct op;
bool op_is_pruned(struct op *op, const db_answer *stored);

/* The problem of a failed store: a special one if the status tells, else PROBLEM_UNAVAILABLE. */
enum problem problem_of_store(db_status status);

/* Answers op with PROBLEM_ARCHIVED: rows of a list were moved; next: the cursor of the first one
 * that is there. */
void op_archived(struct op *op, const char *next);

/* Makes op's answer this problem. The detail is printf-style: what happened, to what, what to do.
 * The document carries op->request_id. Without memory there is no document, and nothing to store
 * for the key. */
void op_problem(struct op *op, enum problem problem, const char *detail, ...)
    __attribute__((format(printf, 3, 4)));

#endif
