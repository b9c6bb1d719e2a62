#include "problem_page.h"
#include "answer.h"

#include <string.h>

#define SAME_KEY "Send the same request again, with the same Idempotency-Key"

/* The only place of these texts. Each problem of problem.h has a row. */
static const char *const advice[PROBLEM_COUNT] = {
    [PROBLEM_BAD_REQUEST] = "The request is malformed: its head, its path, its query or its body. "
                            "\"detail\" says where. Correct it; the same request will fail again.",
    [PROBLEM_KEY_REQUIRED] = "This POST needs an Idempotency-Key header, so that it can be sent "
                             "again without acting twice. Make a new one for each new intent, "
                             "and repeat it with each retry.",
    [PROBLEM_UNAUTHORIZED] = "No token came with the request, or one that is not known here. Send "
                             "Authorization: Bearer TOKEN. The operator of the service gives "
                             "tokens.",
    [PROBLEM_FORBIDDEN] = "The token is known, but it may not do this. Ask with an operator's "
                          "token, or about the token's own user.",
    [PROBLEM_FOREIGN_ORIGIN] = "A browser sent this for a page of another site. Only pages of this "
                               "service may change anything or listen to events.",
    [PROBLEM_NOT_FOUND] = "Nothing has this name, or nothing that may be shown to this token. "
                          "/openapi.json lists the paths.",
    [PROBLEM_METHOD] = "The path exists, but does not take this method. The Allow header has "
                       "those that it takes.",
    [PROBLEM_REQUEST_TIMEOUT] = "The request did not arrive whole in time. Nothing was done. "
                                "Send it again, in one go.",
    [PROBLEM_SOLD_OUT] = "The item has fewer pieces left than were wanted. This answer is kept "
                         "under the Idempotency-Key. Order fewer, or try later with a new key: "
                         "reservations that nobody pays return.",
    [PROBLEM_USER_LIMIT] = "The item allows each user so many pieces, and this order would be "
                           "beyond that. Order fewer, or cancel another order first.",
    [PROBLEM_FUNDS] = "The balance of the account is too small. Nothing was taken. Pay in, then "
                      "try with a new Idempotency-Key.",
    [PROBLEM_STOCK] = "The item has fewer pieces than are to be taken away. Nothing was changed. "
                      "GET the item, then try with a new Idempotency-Key.",
    [PROBLEM_OUT_OF_RANGE] = "The result would not fit into 64 bits. Nothing was changed. Check "
                             "the amounts.",
    [PROBLEM_ORDER_CLOSED] = "The order is paid, cancelled or closed, its time is over, or its "
                             "sale was reset. GET the order to see. Order again if pieces are "
                             "left.",
    [PROBLEM_ALREADY_DONE] = "The request was done before, so it does not act again. Its answer is "
                             "no longer kept. GET the order, the item or the account to see.",
    [PROBLEM_IN_FLIGHT] = "A request with this Idempotency-Key is still running. Wait as "
                          "Retry-After says, then send the same again: it is answered as the "
                          "first.",
    [PROBLEM_ARCHIVED] =
        "The rows that come next were moved to an archive file, and this service no longer has "
        "them. A reader who needs them asks the operator. \"next\" is the cursor of the rows that "
        "follow: send it as after= to go on.",
    [PROBLEM_LENGTH_REQUIRED] = "The body was sent in chunks. Send it with a Content-Length, which "
                                "most clients do for a body that they have as a whole.",
    [PROBLEM_CHANGED] = "The item or account is not in the state that If-Match or If-None-Match "
                        "names. Nothing was written. GET it: perhaps an earlier try of the same "
                        "request has done it. Else decide again, and send the new ETag.",
    [PROBLEM_TOO_LARGE] = "The body is larger than 16 KiB. No request of this service needs so "
                          "much.",
    [PROBLEM_MEDIA_TYPE] = "A body must be JSON in UTF-8. Send Content-Type: application/json.",
    [PROBLEM_FOREIGN_HOST] = "The Host header names another server. The service answers for its "
                             "own address, loopback names, and the names that its operator gives "
                             "it (--allow-host).",
    [PROBLEM_KEY_REUSED] = "This Idempotency-Key was used for another request. Make a new key for "
                           "each new intent.",
    [PROBLEM_UNKNOWN_GUARD] = "The service has no guard of this name, or cannot reach its "
                              "servers. GET /v1/guards lists them.",
    [PROBLEM_TOO_MANY_WAITING] = "So many requests about the same item, account or order, or for "
                                 "the same user, wait already that no more are taken: others "
                                 "shall get their turn. Nothing was done. " SAME_KEY
                                 ", after Retry-After, and wait longer each time.",
    [PROBLEM_CONDITION_REQUIRED] = "A PUT that is sent again must not act again. Send "
                                   "If-None-Match: * to create, or If-Match with the ETag of the "
                                   "state that is to be replaced.",
    [PROBLEM_HEADERS_TOO_LARGE] = "Request line and headers may have 8 KiB together, the target "
                                  "1 KiB. Send fewer or shorter ones.",
    [PROBLEM_INTERNAL] = "The service has met something that it cannot handle, such as a damaged "
                         "row. Tell its operator the request_id; the log has it.",
    [PROBLEM_LOCK_TIMEOUT] = "Others held the lock of this item or account for too long. Nothing "
                             "was changed. " SAME_KEY ", after Retry-After.",
    [PROBLEM_LOCK_LOST] = "The lock was lost before the write, so nothing was "
                          "written. " SAME_KEY ".",
    [PROBLEM_UNAVAILABLE] =
        "A lock server or the database does not answer, or did not in time. "
        "What became of the request may be unknown. " SAME_KEY ": it acts once.",
    [PROBLEM_STORAGE_FULL] = "The disk of the database is full. Nothing was changed. The operator "
                             "makes room; then " SAME_KEY ".",
    [PROBLEM_READ_ONLY] = "The database takes no writes at present: a standby, or a read-only "
                          "file. " SAME_KEY " later.",
    [PROBLEM_CROWDED] = "The database takes no further connection. " SAME_KEY
                        ", after Retry-After. Operators: see pool= of --db.",
    [PROBLEM_OVERLOADED] = "More requests wait than the service can hold. " SAME_KEY
                           ", after Retry-After, and wait longer each time.",
    [PROBLEM_DRAINING] = "This instance is shutting down. " SAME_KEY " to another instance.",
};

const char *problem_advice(enum problem problem)
{
    return advice[problem];
}

void problem_page(struct op *op, const char *name)
{
    for (int i = PROBLEM_NONE + 1; i < PROBLEM_COUNT; i++) {
        const struct problem_info *info = problem_info((enum problem)i);
        if (strcmp(info->id, name) != 0)
            continue;
        const char *text = problem_advice((enum problem)i);
        op_answer(op, 200, "%s (HTTP %d)\n%s\n\n%s\n", info->id, info->status, info->title,
                  text != NULL ? text : "");
        return;
    }
    op_problem(op, PROBLEM_NOT_FOUND, "no problem has this name");
}
