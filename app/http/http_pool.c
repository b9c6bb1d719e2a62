#include "answer.h"
#include "http_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROOM_MIN = 384,       /* enough for an order, and for its answer */
    ROOM_KEPT_MAX = 1024, /* a larger buffer is freed after use */
    MALLOC_OWN = 16,      /* malloc's own bytes for each block */
    WAITING_MAX = 2560    /* bytes for a request that waits for the service */
};
_Static_assert(sizeof(struct call) + sizeof(struct request) + ROOM_MIN + 3 * MALLOC_OWN <=
                   WAITING_MAX,
               "a request that waits has become too large");

/* Clears an operation, except for its large texts. */
static void op_reset(struct op *op)
{
    op->next = NULL;
    op->kind = OP_READY;
    op->key[0] = op->request[0] = op->request_id[0] = op->id[0] = op->other[0] = '\0';
    op->guard[0] = op->resource[0] = op->caller[0] = '\0';
    op->reason[0] = op->reference[0] = '\0';
    op->own_only = false;
    op->amount = op->price = op->per_user_limit = op->reserve_s = 0;
    op->fence = -1;
    op->condition.kind = CONDITION_NONE;
    op->answer.version = 0;
    op->answer.status = 0;
    op->answer.problem = PROBLEM_NONE;
    op->answer.replayed = op->answer.decided = false;
    if (op->answer.body != NULL)
        op->answer.body[0] = '\0';
    op->deadline_us = 0;
    memset(op->point_us, 0, sizeof(op->point_us));
    op->shown_value = op->shown_fence = 0;
    op->n_crowds = 0;
    op->noted = 0;
    op->section = NULL;
    atomic_init(&op->abandoned, false);
    op->done = NULL;
}

struct call *call_get(struct http *http)
{
    struct call *call = (struct call *)(void *)http->free_calls;
    if (call != NULL)
        http->free_calls = call->op.next;
    else if ((call = calloc(1, sizeof(*call))) == NULL)
        return NULL;
    op_reset(&call->op);
    call->op.http = http;
    call->request = NULL;
    return call;
}

void call_put(struct http *http, struct call *call)
{
    if (call->op.answer.body_room > ROOM_KEPT_MAX)
        answer_free(&call->op.answer);
    call->op.next = http->free_calls;
    http->free_calls = &call->op;
}

static void swap_room(struct request *request)
{
    struct answer *answer = &request->call->op.answer;
    char *const sent = request->sent;
    const size_t room = request->sent_room;
    request->sent = answer->body;
    request->sent_room = answer->body_room;
    answer->body = sent;
    answer->body_room = room;
}

void request_give_room(struct request *request)
{
    struct answer *answer = &request->call->op.answer;
    answer_free(answer);
    swap_room(request);
    answer->body[0] = '\0';
}

bool request_room(struct request *request, size_t bytes)
{
    size_t room = request->sent_room > 0 ? request->sent_room : ROOM_MIN;
    while (room < bytes)
        room *= 2;
    if (room == request->sent_room)
        return true;
    char *sent = realloc(request->sent, room);
    if (sent == NULL)
        return false;
    request->sent = sent;
    request->sent_room = room;
    return true;
}

struct request *request_get(struct http *http)
{
    struct request *request = http->free_requests;
    if (request != NULL)
        http->free_requests = request->next;
    else if ((request = calloc(1, sizeof(*request))) == NULL)
        return NULL;
    request->call = call_get(http);
    if (request->call == NULL) {
        request_put(http, request);
        return NULL;
    }
    if (request->sent == NULL)
        swap_room(request);
    request->stage = STAGE_HEAD;
    request->close = request->bad_token = false;
    request->text = request->type = NULL;
    request->match.route = NULL;
    request->match.allow[0] = '\0';
    request->body_bytes = 0;
    return request;
}

void request_put(struct http *http, struct request *request)
{
    if (request->call != NULL)
        call_put(http, request->call);
    request->call = NULL;
    if (request->sent_room > ROOM_KEPT_MAX) {
        free(request->sent);
        request->sent = NULL;
        request->sent_room = 0;
    }
    request->next = http->free_requests;
    http->free_requests = request;
}

struct conn *conn_get(struct http *http)
{
    struct conn *conn = http->free_conns;
    if (conn != NULL)
        http->free_conns = conn->next;
    else
        conn = malloc(sizeof(*conn));
    return conn;
}

void conn_put(struct http *http, struct conn *conn)
{
    conn->next = http->free_conns;
    http->free_conns = conn;
}

void pool_free(struct http *http)
{
    for (struct op *op = http->free_calls, *next; op != NULL; op = next) {
        next = op->next;
        answer_free(&op->answer);
        free(op);
    }
    for (struct request *request = http->free_requests, *next; request != NULL; request = next) {
        next = request->next;
        free(request->sent);
        free(request);
    }
    for (struct conn *conn = http->free_conns, *next; conn != NULL; conn = next) {
        next = conn->next;
        free(conn);
    }
}
