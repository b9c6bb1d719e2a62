/* One request, from its first line to its last byte. */
#include "http_internal.h"
#include "http_origin.h"
#include "parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { DRAIN_MAX = 1 << 20 /* bytes read of a refused body, so that the answer arrives */ };

void *request_begin(void *context, const char *target, struct MHD_Connection *mhd)
{
    struct http *http = context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct conn *conn = info != NULL ? info->socket_context : NULL;
    struct request *request = conn != NULL ? request_get(http) : NULL;
    if (request == NULL)
        return NULL; /* request_step() closes the connection */
    assert(conn->request == NULL);
    const size_t length = strlen(target), kept = length <= ROUTE_TARGET_MAX ? length : 0;
    if (!request_room(request, kept + 1)) {
        request_put(http, request);
        return NULL;
    }
    memcpy(request->sent, target, kept);
    request->sent[kept] = '\0';
    request->target_bytes = kept + 1;
    conn->request = request;
    request->conn = conn;
    request->begun_us = http_now_us();
    request->raw = target;
    request->raw_length = length;
    if (conn->phase == PHASE_IDLE)
        conn_phase(http, conn, PHASE_READING, request->begun_us);
    return request;
}

/* Returns what is wrong, or NULL. framing_read() cannot check this: libmicrohttpd has changed the
 * target since request_begin(). */
static const char *check_request_line(const struct request *request, const char *method,
                                      const char *version)
{
    if (request->raw != method + strlen(method) + 1 ||
        version != request->raw + request->raw_length + 1)
        return "malformed request line";
    for (const char *c = request->sent; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            return "malformed request target";
    return NULL;
}

static void check_route(const struct http *http, struct request *request, const char *method)
{
    struct op *op = &request->call->op;
    switch (route_find(method, request->sent, http->extras, &request->match)) {
    case ROUTE_FOUND:
        return;
    case ROUTE_UNKNOWN:
        op_problem(op, PROBLEM_NOT_FOUND, "no such path; GET /openapi.json lists them");
        return;
    case ROUTE_WRONG_METHOD:
        op_problem(op, PROBLEM_METHOD, "this path takes %s", request->match.allow);
        return;
    case ROUTE_BAD_PARAMETER:
        op_problem(op, PROBLEM_BAD_REQUEST,
                   request->match.route == NULL || request->match.route->parameter == ROUTE_KEY
                       ? "the key in the path must be 1 to 255 printable ASCII characters"
                       : "the id in the path must be 1 to 64 of [A-Za-z0-9_-]");
        return;
    }
}

static void check_host(const struct http *http, struct op *op, const struct http_value *host)
{
    if (!origin_host_is_ours(host, http->config->listen, http->config->allow_host))
        op_problem(op, PROBLEM_FOREIGN_HOST,
                   "this service does not answer for the Host \"%.100s\"; if it is one of its "
                   "names, give it to --allow-host",
                   host->text);
}

/* Pages of other sites may send a GET, whose answer they cannot read. They may not hold a stream.
 */
static void check_origin(struct request *request, const struct http_head *head, const char *method)
{
    const struct route *route = request->match.route;
    const bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    const bool streams = route != NULL && route->action == ROUTE_EVENTS;
    if (streams && !origin_fetch_is_ours(&head->fetch_site))
        op_problem(&request->call->op, PROBLEM_FOREIGN_ORIGIN,
                   "a page of another site may not hold a stream (Sec-Fetch-Site)");
    else if ((!reads || streams) && !origin_is_ours(&head->origin, &head->host))
        op_problem(&request->call->op, PROBLEM_FOREIGN_ORIGIN,
                   "a page of \"%.100s\" may not send this; only pages of this service may",
                   head->origin.text);
}

/* Finds out who asks, and whether this route is for them. */
static void check_caller(const struct http *http, struct request *request,
                         const struct http_head *head)
{
    struct op *op = &request->call->op;
    struct caller caller;
    size_t length;
    const char *token = framing_bearer(&head->authorization, &length);
    const struct route *route = request->match.route;
    const enum role needed = route != NULL ? route->role : ROLE_OPERATOR;
    if (needed == ROLE_NOBODY)
        return;
    switch (tokens_find(http->tokens, token, length, &caller)) {
    case TOKENS_NONE:
        op_problem(op, PROBLEM_UNAUTHORIZED, "send a token: Authorization: Bearer TOKEN");
        return;
    case TOKENS_UNKNOWN:
        request->bad_token = true;
        op_problem(op, PROBLEM_UNAUTHORIZED, "this token is not known here");
        return;
    case TOKENS_OK:
        break;
    }
    if (caller.role < needed)
        op_problem(op, PROBLEM_FORBIDDEN, "this is for operators; the token is a buyer's");
    memcpy(op->caller, caller.name, sizeof(op->caller));
    op->own_only = caller.role == ROLE_BUYER;
}

/* Takes the key that a POST needs. */
static void check_key(struct op *op, const struct http_value *value)
{
    char key[OP_KEY_MAX + 1];
    if (value->count == 0)
        op_problem(op, PROBLEM_KEY_REQUIRED,
                   "send an Idempotency-Key header, a new one for each new intent");
    else if (framing_key(value, key, sizeof(key)) < 0)
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "Idempotency-Key must be 1 to %d printable ASCII characters, bare or a quoted "
                   "string",
                   OP_KEY_MAX);
    else
        op_set_key(op, key);
}

/* An item or account: what has a version, and so an entity tag. */
static bool has_tag(const struct route *route)
{
    return route->action == ROUTE_OPERATION && route->kind >= OP_PUT_ITEM &&
           route->kind <= OP_GET_ACCOUNT;
}

/* A PUT that is sent again must not act again. So it names the state that it replaces. */
static void check_condition(const struct route *route, const struct http_head *head, struct op *op)
{
    const struct http_value *match = &head->if_match, *none = &head->if_none_match;
    const char *wrong =
        match->count > 1 || none->count > 1
            ? "send one line of each"
            : condition_read(match->text, match->length, none->text, none->length, &op->condition);
    if (wrong != NULL)
        op_problem(op, PROBLEM_BAD_REQUEST, "If-Match or If-None-Match: %s", wrong);
    else if (route->conditional && !condition_protects(&op->condition))
        op_problem(op, PROBLEM_CONDITION_REQUIRED,
                   "send If-None-Match: * to create, or If-Match with the ETag of a GET to replace "
                   "just that state");
}

/* Checks all that the head alone decides. A refusal is a problem in op->answer. */
static void check_head(const struct http *http, struct request *request,
                       const struct http_head *head, const char *method)
{
    struct op *op = &request->call->op;
    check_host(http, op, &head->host);
    if (op->answer.status == 0)
        check_route(http, request, method);
    if (op->answer.status == 0)
        check_origin(request, head, method);
    if (op->answer.status == 0)
        check_caller(http, request, head);
    if (op->answer.status != 0)
        return;
    if (request->match.extra != NULL) {
        /* A page of another site cannot send this type, so it cannot start or kill anything. */
        if (strcmp(method, "POST") == 0 && !framing_is_json(&head->content_type))
            op_problem(op, PROBLEM_MEDIA_TYPE, "send the body as Content-Type: application/json");
        return;
    }
    const struct route *route = request->match.route;
    const bool takes_body = strcmp(route->method, "GET") != 0;
    if (route->lesson && !http->config->lab && !http->config->demo)
        op_problem(op, PROBLEM_NOT_FOUND, "only a service with --demo or --lab takes resets");
    else if (head->body_bytes > HTTP_BODY_MAX)
        op_problem(op, PROBLEM_TOO_LARGE, "the body may have %d bytes at most", HTTP_BODY_MAX);
    else if (takes_body && head->body_bytes != 0 &&
             !(op_is_patch(route->kind) ? framing_is_patch : framing_is_json)(&head->content_type))
        op_problem(op, PROBLEM_MEDIA_TYPE, "send the body as Content-Type: application/json");
    else if (route->canonical != NULL)
        check_key(op, &head->idempotency_key);
    else if (has_tag(route))
        check_condition(route, head, op);
}

static enum MHD_Result take_head(struct http *http, struct request *request, const char *method,
                                 const char *version)
{
    struct op *op = &request->call->op;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->conn->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct http_head head = {0};
    bool refused = true;
    if (info == NULL || info->header_size > HTTP_HEAD_MAX ||
        request->raw_length > ROUTE_TARGET_MAX) {
        answer_request_id(http, op, NULL);
        op_problem(op, PROBLEM_HEADERS_TOO_LARGE,
                   "request line and headers may have %d bytes, the target %d", HTTP_HEAD_MAX,
                   ROUTE_TARGET_MAX);
    } else {
        const char *wrong = check_request_line(request, method, version);
        if (wrong == NULL)
            wrong = framing_read(method, version, info->header_size, &head);
        answer_request_id(http, op, wrong == NULL ? &head.request_id : NULL);
        if (wrong != NULL)
            op_problem(op, PROBLEM_BAD_REQUEST, "%s", wrong);
        else if (head.transfer_encoding.count > 0) /* libmicrohttpd reads chunks leniently */
            op_problem(op, PROBLEM_LENGTH_REQUIRED,
                       "send the body with a Content-Length instead of chunked");
        refused = op->answer.status != 0;
    }
    if (refused) {
        http->metrics.refused_heads++;
        request->close = true;
        return answer_send(http, request);
    }

    check_head(http, request, &head, method);
    request->stage = STAGE_BODY;
    const bool answers_at_once = head.expect.count > 0 || head.body_bytes > DRAIN_MAX;
    if (op->answer.status != 0 && head.body_bytes != 0 && answers_at_once) {
        request->close = true;
        return answer_send(http, request);
    }
    return MHD_YES;
}

static bool keep_body(struct request *request, const char *data, size_t length)
{
    const size_t before = request->target_bytes + request->body_bytes;
    if (!request_room(request, before + length))
        return false;
    memcpy(request->sent + before, data, length);
    return true;
}

static enum MHD_Result take_body(struct http *http, struct request *request, const char *data,
                                 size_t *length)
{
    struct op *op = &request->call->op;
    if (op->answer.status == 0) {
        if (request->body_bytes + *length > HTTP_BODY_MAX)
            op_problem(op, PROBLEM_TOO_LARGE, "the body may have %d bytes at most", HTTP_BODY_MAX);
        else if (!keep_body(request, data, *length))
            op_problem(op, PROBLEM_OVERLOADED, "out of memory");
    }
    request->body_bytes += *length;
    http->metrics.received_bytes += *length;
    *length = 0;
    return request->body_bytes <= DRAIN_MAX ? MHD_YES : MHD_NO;
}

const char *request_query(const struct request *request)
{
    return request->match.query > 0 ? request->sent + request->match.query : NULL;
}

/* Fills the operation from path, query and body. False: op->answer has the problem. */
static bool fill_question(const struct http *http, struct request *request)
{
    const struct route *route = request->match.route;
    struct op *op = &request->call->op;
    op->kind = route->kind;
    if (route->parameter == ROUTE_ID)
        strcpy(op->id, request->match.parameter);
    else if (route->parameter == ROUTE_KEY)
        op_set_key(op, request->match.parameter);
    if (op->kind == OP_READY && atomic_load(&http->not_ready)) {
        op_problem(op, PROBLEM_DRAINING, "shutting down; use another instance");
        return false;
    }
    if (op->kind == OP_AUDIT)
        return parse_audit_query(request_query(request), op);
    if (route->rows_max > 0)
        return parse_list_query(request_query(request), route->rows_max, route->of_user, op);
    if (strcmp(route->method, "GET") == 0)
        return true;
    return parse_body(route, request->sent + request->target_bytes, request->body_bytes, op);
}

/* False: op must go to the service. */
static bool answer_extra(const struct http *http, struct request *request)
{
    const struct extra_request extra = {.url = http->url,
                                        .parameter = request->match.parameter,
                                        .body = request->sent + request->target_bytes,
                                        .body_bytes = request->body_bytes};
    return request->match.extra->answer(&extra, &request->call->op);
}

static enum MHD_Result take_whole(struct http *http, struct request *request)
{
    const struct op *op = &request->call->op;
    if (op->answer.status != 0)
        return answer_send(http, request);
    if (request->match.extra != NULL)
        return answer_extra(http, request) ? answer_send(http, request)
                                           : request_hand_over(http, request);
    if (request->match.route->action == ROUTE_EVENTS)
        return http_events_answer(http, request);
    if (request->match.route->action != ROUTE_OPERATION)
        answer_local(http, request);
    return op->answer.status == 0 && fill_question(http, request) ? request_hand_over(http, request)
                                                                  : answer_send(http, request);
}

enum MHD_Result request_step(void *context, struct MHD_Connection *mhd, const char *url,
                             const char *method, const char *version, const char *data,
                             size_t *data_bytes, void **context_of_request)
{
    struct http *http = context;
    struct request *request = *context_of_request;
    (void)mhd;
    (void)url;
    if (request == NULL)
        return MHD_NO;
    switch (request->stage) {
    case STAGE_HEAD:
        return take_head(http, request, method, version);
    case STAGE_BODY:
        return *data_bytes > 0 ? take_body(http, request, data, data_bytes)
                               : take_whole(http, request);
    case STAGE_ANSWER:
        return request->call != NULL ? answer_send(http, request)
                                     : request_end_unanswered(http, request);
    case STAGE_SERVICE:
    case STAGE_SENT:
        break;
    }
    return MHD_YES;
}

void request_end(void *context, struct MHD_Connection *mhd, void **context_of_request,
                 enum MHD_RequestTerminationCode why)
{
    struct http *http = context;
    struct request *request = *context_of_request;
    (void)mhd;
    if (request == NULL)
        return;
    struct conn *conn = request->conn;
    assert(request->stage != STAGE_SERVICE);
    const int64_t now_us = http_now_us();
    if (request->stage == STAGE_SENT)
        http_metrics_count(&http->metrics, request->match.route, request->call->op.answer.status,
                           now_us - request->begun_us);
    else if (why == MHD_REQUEST_TERMINATED_WITH_ERROR && request->stage == STAGE_HEAD)
        http->metrics.refused_heads++; /* refused by libmicrohttpd itself */
    else
        http->metrics.abandoned++;
    conn->request = NULL;
    if (conn->phase != PHASE_ENDING)
        conn_phase(http, conn, PHASE_IDLE, now_us);
    request_put(http, request);
    *context_of_request = NULL;
}
