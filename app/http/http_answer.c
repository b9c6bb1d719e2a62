/* Turns op->answer into bytes. */
#include "answer.h"
#include "http_internal.h"
#include "openapi.h"
#include "page.h"
#include "problem_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const char plain_type[] = "application/json";
static const char problem_type[] = "application/problem+json";

/* splitmix64, Sebastiano Vigna: distinct for 2^64 steps. An id needs no more. */
static uint64_t next_id(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void answer_request_id(struct http *http, struct op *op, const struct http_value *sent)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    if (sent != NULL && sent->count == 1 && sent->length >= 1 &&
        sent->length < sizeof(op->request_id) && strspn(sent->text, allowed) >= sent->length) {
        memcpy(op->request_id, sent->text, sent->length);
        op->request_id[sent->length] = '\0';
        return;
    }
    static const char digits[] = "0123456789abcdef";
    uint64_t id = next_id(&http->id_state);
    for (int i = 0; i < 16; i++, id >>= 4)
        op->request_id[i] = digits[id & 15];
    op->request_id[16] = '\0';
}

static void metrics_text(struct http *http, struct op *op)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        op_problem(op, PROBLEM_OVERLOADED, "out of memory");
        return;
    }
    const struct http_gauges gauges = {.connections_open = atomic_load(&http->open_conns),
                                       .in_flight = http->in_flight};
    http_metrics_write(&http->metrics, &gauges, out);
    http_events_metrics(http->events, out);
    service_metrics(http->service, out);
    if (fclose(out) != 0) {
        free(text);
        op_problem(op, PROBLEM_OVERLOADED, "out of memory");
        return;
    }
    answer_take(&op->answer, text);
    op->answer.status = MHD_HTTP_OK;
}

static void page_text(struct request *request)
{
    struct op *op = &request->call->op;
    const struct page_file *file = page_find(request->match.parameter);
    if (file == NULL) {
        op_problem(op, PROBLEM_NOT_FOUND, "the page has no such file");
        return;
    }
    request->text = file->text;
    request->text_bytes = file->bytes;
    request->type = file->type;
    op->answer.status = MHD_HTTP_OK;
}

void answer_local(struct http *http, struct request *request)
{
    struct op *op = &request->call->op;
    switch (request->match.route->action) {
    case ROUTE_LIVE:
        op_answer(op, MHD_HTTP_OK, "{\"status\":\"ok\"}");
        return;
    case ROUTE_METRICS:
        metrics_text(http, op);
        if (op->answer.status == MHD_HTTP_OK)
            request->type = "text/plain; version=0.0.4; charset=utf-8";
        return;
    case ROUTE_OPENAPI:
        request->text = openapi_json;
        request->text_bytes = openapi_json_bytes;
        op->answer.status = MHD_HTTP_OK;
        return;
    case ROUTE_PAGE:
        page_text(request);
        return;
    case ROUTE_PROBLEM:
        problem_page(op, request->match.parameter);
        if (op->answer.status == MHD_HTTP_OK)
            request->type = "text/plain; charset=utf-8";
        return;
    case ROUTE_EVENTS:
    case ROUTE_OPERATION:
        break;
    }
}

/* Gives "/v1/orders/ID" for a created order, new or replayed. The service's answer begins with the
 * id. */
static bool location(const struct op *op, char *ret, size_t size)
{
    static const char start[] = "{\"order_id\":\"";
    if (op->kind != OP_PLACE_ORDER || op->answer.status != MHD_HTTP_CREATED ||
        strncmp(op->answer.body, start, sizeof(start) - 1) != 0)
        return false;
    const char *const id = op->answer.body + sizeof(start) - 1;
    const int n = snprintf(ret, size, "/v1/orders/%.*s", (int)strcspn(id, "\""), id);
    return n > 0 && (size_t)n < size;
}

static bool add_headers(const struct http *http, const struct request *request,
                        struct MHD_Response *response)
{
    const struct op *op = &request->call->op;
    const struct answer *answer = &op->answer;
    const char *type = request->type;
    if (type == NULL)
        type = answer->status >= MHD_HTTP_BAD_REQUEST ? problem_type : plain_type;
    bool good = (answer->status == MHD_HTTP_NOT_MODIFIED || /* it has no body */
                 MHD_add_response_header(response, "Content-Type", type) == MHD_YES) &&
                MHD_add_response_header(response, "Cache-Control", "no-store") == MHD_YES &&
                MHD_add_response_header(response, "X-Request-Id", op->request_id) == MHD_YES;
    const int retry_s = problem_info(answer->problem)->retry_s;
    char text[128];
    if (retry_s > 0) {
        snprintf(text, sizeof(text), "%d", retry_s);
        good = good && MHD_add_response_header(response, "Retry-After", text) == MHD_YES;
    }
    if (answer->problem == PROBLEM_UNAUTHORIZED) /* RFC 6750, 3 */
        good = good &&
               MHD_add_response_header(response, "WWW-Authenticate",
                                       request->bad_token ? "Bearer realm=\"seckilld\", "
                                                            "error=\"invalid_token\""
                                                          : "Bearer realm=\"seckilld\"") == MHD_YES;
    if (answer->replayed)
        good = good && MHD_add_response_header(response, "Idempotent-Replayed", "true") == MHD_YES;
    if (answer->problem == PROBLEM_METHOD)
        good = good && MHD_add_response_header(response, "Allow", request->match.allow) == MHD_YES;
    if (request->text != NULL && request->match.route->action == ROUTE_PAGE)
        good =
            good &&
            MHD_add_response_header(response, "Content-Security-Policy", PAGE_POLICY) == MHD_YES &&
            MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES &&
            MHD_add_response_header(response, "Referrer-Policy", "no-referrer") == MHD_YES;
    if (answer->version != 0) {
        condition_tag(answer->version, text);
        good = good && MHD_add_response_header(response, "ETag", text) == MHD_YES;
    }
    if (location(op, text, sizeof(text)))
        good = good && MHD_add_response_header(response, "Location", text) == MHD_YES;
    if (request->close || http->draining)
        good = good && MHD_add_response_header(response, "Connection", "close") == MHD_YES;
    return good;
}

/* RFC 9110 13.2.2, for a GET. The service has tested the condition of a write. */
static void test_condition(struct op *op)
{
    const bool is_get = op->kind == OP_GET_ITEM || op->kind == OP_GET_ACCOUNT;
    const int64_t version = op->answer.version;
    if (!is_get || version == 0 || condition_holds(&op->condition, version))
        return;
    if (op->condition.kind == CONDITION_ONE_OF) {
        op_problem(op, PROBLEM_CHANGED, "its version is %" PRId64, version);
        op->answer.version = version;
        return;
    }
    op->answer.status = MHD_HTTP_NOT_MODIFIED;
}

enum MHD_Result answer_send(struct http *http, struct request *request)
{
    if (request->call == NULL)
        return MHD_NO; /* no memory for an answer: close */
    struct op *op = &request->call->op;
    test_condition(op);
    const char *text = request->text;
    size_t bytes = request->text_bytes;
    if (text == NULL) {
        bytes = answer_end_line(&op->answer);
        text = op->answer.body != NULL ? op->answer.body : "";
    }
    /* the text lives as long as the request, which outlives the response */
    union {
        const char *text;
        void *buffer;
    } borrowed = {.text = text};
    struct MHD_Response *response =
        MHD_create_response_from_buffer(bytes, borrowed.buffer, MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    if (op->answer.status != MHD_HTTP_NOT_MODIFIED) /* of which only the head is sent */
        http->metrics.sent_bytes += bytes;
    enum MHD_Result result = answer_queue(http, request, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result answer_queue(struct http *http, struct request *request,
                             struct MHD_Response *response)
{
    if (!add_headers(http, request, response))
        return MHD_NO;
    request->stage = STAGE_SENT;
    conn_phase(http, request->conn, PHASE_SENDING, http_now_us());
    return MHD_queue_response(request->conn->mhd, (unsigned)request->call->op.answer.status,
                              response);
}

void answer_straight(struct http *http, struct conn *conn, enum problem problem, const char *detail,
                     int64_t duration_us)
{
    struct call *call = call_get(http);
    if (call == NULL)
        return;
    struct op *op = &call->op;
    if (conn->request != NULL && conn->request->call->op.request_id[0] != '\0')
        strcpy(op->request_id, conn->request->call->op.request_id);
    else
        answer_request_id(http, op, NULL);
    op_problem(op, problem, "%s", detail);
    const size_t bytes = answer_end_line(&op->answer);
    const char *const body = op->answer.body != NULL ? op->answer.body : "";
    const struct problem_info *info = problem_info(problem);
    char text[DB_BODY_MAX + 2 + 512], retry[40] = "";
    if (info->retry_s > 0)
        snprintf(retry, sizeof(retry), "Retry-After: %d\r\n", (int)info->retry_s);
    int n = snprintf(text, sizeof(text),
                     "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n"
                     "Cache-Control: no-store\r\nX-Request-Id: %s\r\n%sConnection: close\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     info->status, info->title, problem_type, op->request_id, retry, bytes, body);
    if (n > 0 && (size_t)n < sizeof(text)) {
        ssize_t sent = send(conn->fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)sent; /* best effort: the connection ends anyway */
    }
    http_metrics_count(&http->metrics, conn->request != NULL ? conn->request->match.route : NULL,
                       info->status, duration_us);
    call_put(http, call);
}
