#include "http_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Readies an operation without touching its large texts. */
static void op_reset(struct op *op)
{
    op->next = NULL;
    op->kind = OP_READY;
    op->key[0] = op->request[0] = op->request_id[0] = op->id[0] = op->other[0] = '\0';
    op->guard[0] = op->resource[0] = '\0';
    op->amount = op->price = op->per_user_limit = op->reserve_s = 0;
    op->fence = -1;
    op->answer.status = 0;
    op->answer.problem = PROBLEM_NONE;
    op->answer.replayed = op->answer.decided = false;
    op->answer.body[0] = '\0';
    op->answer.long_body = NULL;
    op->deadline_us = 0;
    memset(op->point_us, 0, sizeof(op->point_us));
    op->shown_value = op->shown_fence = 0;
    op->noted = 0;
    op->section = NULL;
    op->done = NULL;
}

struct call *call_get(struct http *http)
{
    struct call *call = (struct call *)(void *)http->free_calls;
    if (call != NULL)
        http->free_calls = call->op.next;
    else if ((call = malloc(sizeof(*call))) == NULL)
        return NULL;
    op_reset(&call->op);
    call->op.http = http;
    call->request = NULL;
    return call;
}

void call_put(struct http *http, struct call *call)
{
    free(call->op.answer.long_body);
    call->op.next = http->free_calls;
    http->free_calls = &call->op;
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
    request->stage = STAGE_HEAD;
    request->close = false;
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
        free(op);
    }
    for (struct request *request = http->free_requests, *next; request != NULL; request = next) {
        next = request->next;
        free(request->body);
        free(request);
    }
    for (struct conn *conn = http->free_conns, *next; conn != NULL; conn = next) {
        next = conn->next;
        free(conn);
    }
}
