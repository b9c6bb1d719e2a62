/* A request while the service has its operation: handed over, answered, given up or abandoned. */
#include "http_internal.h"

#include <assert.h>
#include <string.h>

/* Called by any worker's thread. */
static void op_done(struct op *op)
{
    struct http *http = op->http;
    http_done_push(&http->done, op);
}

enum MHD_Result request_end_unanswered(struct http *http, struct request *request)
{
    request->stage = STAGE_ANSWER;
    conn_shutdown(http, request->conn);
    http->log_ration.skips = true;
    return MHD_NO;
}

enum MHD_Result request_hand_over(struct http *http, struct request *request)
{
    struct call *call = request->call;
    const int64_t now_us = http_now_us();
    if (!request->conn->gone)
        gone_watch(http, request->conn);
    if (call->op.kind == OP_AUDIT) /* in a flood of them most clients have gone by now */
        gone_take(http);
    if (request->conn->gone)
        return request_end_unanswered(http, request);
    call->op.deadline_us = now_us + http->config->wait_ms * 1000;
    call->op.done = op_done;
    call->request = request;
    request_give_room(request); /* the operation has copied all that it needs */
    if (!service_submit(http->service, &call->op))
        return answer_send(http, request);
    request->stage = STAGE_SERVICE;
    http->in_flight++;
    conn_phase(http, request->conn, call->op.kind == OP_AUDIT ? PHASE_AUDIT : PHASE_SERVICE,
               now_us);
    /* op_done() may have run by now, but only this thread resumes, and only later */
    MHD_suspend_connection(request->conn->mhd);
    return MHD_YES;
}

static void resume(struct http *http, struct request *request)
{
    request->stage = STAGE_ANSWER;
    conn_phase(http, request->conn, PHASE_SENDING, http_now_us());
    conn_resume(http, request->conn);
}

void request_done(struct http *http, struct op *op)
{
    struct call *call = (struct call *)(void *)op;
    http->in_flight--;
    if (call->request == NULL) {
        call_put(http, call);
        return;
    }
    assert(call->request->call == call && call->request->stage == STAGE_SERVICE);
    resume(http, call->request);
}

void request_give_up(struct http *http, struct conn *conn)
{
    struct request *request = conn->request;
    assert(request->stage == STAGE_SERVICE);
    struct call *late = request->call;
    atomic_store(&late->op.abandoned, true);
    http->withdraws = true;
    late->request = NULL; /* request_done() frees it */
    request->call = call_get(http);
    if (request->call != NULL) {
        struct op *op = &request->call->op;
        op->kind = late->op.kind;
        const bool writes = op->kind < OP_GET_ITEM || op->kind == OP_FREE_LOCK;
        strcpy(op->request_id, late->op.request_id);
        op_problem(op, PROBLEM_UNAVAILABLE, "not answered in time%s",
                   late->op.key[0] != '\0' ? ", the outcome is unknown: retry with the same key"
                   : writes                ? ", the outcome is unknown: try again, or look"
                                           : "; nothing was changed: try again");
    }
    http->metrics.unanswered++;
    resume(http, request);
}

void request_abandon(struct http *http, struct conn *conn)
{
    struct request *request = conn->request;
    assert(request->stage == STAGE_SERVICE);
    atomic_store(&request->call->op.abandoned, true);
    request->call->request = NULL; /* request_done() frees it */
    request->call = NULL;
    resume(http, request);
}
