/*
 * What a client sends to the service, through the real HTTP side: libmicrohttpd, heads, bodies,
 * routes, answers. A stub is the service. No thread and no clock decides: the loop runs in the
 * harness, and each of its rounds gives it the next piece of the input.
 *
 * Each input is sent in one piece and in pieces (first byte: their length; second: what the service
 * does). The answers must be the same. They must be whole answers to loadgen's parser, and JSON if
 * they say so. What reaches the service must be in range.
 */
#include "answer.h"
#include "answered.h"
#include "fuzz.h"
#include "http_internal.h"
#include "resource.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { IDLE_ROUNDS = 6, MODE_HOLD = 1, MODE_REFUSE = 2 };

static struct {
    const uint8_t *bytes;
    size_t size, step, at;
    int mode;
    struct http *http;
    int client; /* our end of the connection; -1: not connected yet */
    int idle;   /* rounds in which nothing happened */
    bool ended;
    struct op *held;
    char answers[ANSWERS_MAX];
    size_t n;
} side;

/* -- no threads, no randomness ------------------------------------------------------------------
 */

static bool opening;
static void *(*loop)(void *);
static void *loop_argument;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    if (!opening)
        return __real_pthread_create(thread, attributes, run, argument);
    loop = run;
    loop_argument = argument;
    *thread = pthread_self(); /* joining it returns at once */
    return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
    (void)flags;
    memset(bytes, 7, size);
    return (ssize_t)size;
}

/* -- the service --------------------------------------------------------------------------------
 */

static void check_question(const struct op *op)
{
    FUZZ_CHECK(op->kind < OP_KIND_COUNT);
    FUZZ_CHECK(strlen(op->key) <= DB_KEY_MAX && strlen(op->request) <= DB_REQUEST_MAX);
    FUZZ_CHECK(op->id[0] == '\0' || is_id(op->id, DB_ID_MAX));
    FUZZ_CHECK(op->other[0] == '\0' || is_id(op->other, DB_ID_MAX));
    FUZZ_CHECK(op->guard[0] == '\0' || is_id(op->guard, DB_GUARD_MAX));
    FUZZ_CHECK(op->request_id[0] != '\0' && op->fence >= -1 && op->fence <= 1);
    if (op->kind == OP_PLACE_ORDER || op->kind == OP_TRANSFER)
        FUZZ_CHECK(op->amount >= 1 && op->key[0] != '\0' && op->request[0] != '\0');
    if (op->kind == OP_PUT_ITEM || op->kind == OP_PUT_ACCOUNT)
        FUZZ_CHECK(op->amount >= 0 && op->price >= 0 && op->per_user_limit >= 0);
    if (op->kind == OP_CHANGE_BALANCE)
        FUZZ_CHECK(op->amount >= -INT64_MAX);
    if (op->kind == OP_GET_LEDGER)
        FUZZ_CHECK(op->limit >= 1 && op->limit <= DB_PAGE_MAX);
}

static void reply(struct op *op)
{
    op_answer(op, op->kind < OP_PUT_ITEM ? 201 : 200,
              "{\"order_id\":\"o1\",\"id\":\"%s\",\"amount\":%ld}", op->id, (long)op->amount);
    op->done(op);
}

bool service_submit(struct service *service, struct op *op)
{
    (void)service;
    check_question(op);
    if (side.mode == MODE_REFUSE) {
        op_problem(op, PROBLEM_OVERLOADED, "refused");
        return false;
    }
    if (side.mode == MODE_HOLD) {
        op->next = side.held;
        side.held = op;
    } else {
        reply(op);
    }
    side.idle = 0;
    return true;
}

void service_metrics(struct service *service, FILE *out)
{
    (void)service;
    (void)out;
}

static void release(void)
{
    struct op *op = side.held;
    side.held = NULL;
    for (struct op *next; op != NULL; op = next) {
        next = op->next;
        reply(op);
    }
}

/* What is held is as if a thread ran it. */
void service_withdraw(struct service *service)
{
    (void)service;
}

/* -- the client: called in each round of the loop -----------------------------------------------
 */

static void connect_client(void)
{
    int ends[2];
    const struct sockaddr_un address = {.sun_family = AF_UNIX};
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    side.client = ends[0];
    side.http->door.enters = conn_accepted(side.http, ends[1], &(struct sockaddr_in6){0});
    FUZZ_CHECK(MHD_add_connection(side.http->daemon, ends[1], (const struct sockaddr *)&address,
                                  sizeof address) == MHD_YES);
}

static void take_answers(void)
{
    ssize_t n;
    while (side.n < ANSWERS_MAX &&
           (n = recv(side.client, side.answers + side.n, ANSWERS_MAX - side.n, 0)) > 0) {
        side.n += (size_t)n;
        side.idle = 0;
    }
}

static void send_piece(void)
{
    const size_t left = side.size - side.at, length = left < side.step ? left : side.step;
    const ssize_t n = send(side.client, side.bytes + side.at, length, MSG_NOSIGNAL);
    if (n > 0)
        side.at += (size_t)n;
    else if (errno != EAGAIN)
        side.at = side.size; /* the server has closed */
    if (n >= 0)
        side.idle = 0;
}

/* All is sent and nothing moves: the client ends its side, then the service ends. */
static void tick(void)
{
    if (side.ended) {
        atomic_store(&side.http->stop_wanted,
                     atomic_load(&side.http->open_conns) == 0 || ++side.idle > 4 * IDLE_ROUNDS);
    } else if (side.client < 0) {
        connect_client();
    } else {
        take_answers();
        if (side.at < side.size)
            send_piece();
        else if (side.idle++ == IDLE_ROUNDS)
            release();
        else if (side.idle == 2 * IDLE_ROUNDS)
            shutdown(side.client, SHUT_WR);
        else if (side.idle > 3 * IDLE_ROUNDS) {
            atomic_store(&side.http->drain_wanted, true);
            side.ended = true;
            side.idle = 0;
        }
    }
    if (side.ended)
        take_answers();
    http_done_wake(&side.http->done); /* the loop must not wait */
}

static bool answer_extra(const struct extra_request *request, struct op *op)
{
    FUZZ_CHECK(strlen(request->parameter) <= OP_KEY_MAX);
    op_answer(op, 200, "{\"bytes\":%ld}", (long)request->body_bytes);
    return true;
}

/* -- one input ----------------------------------------------------------------------------------
 */

static void run(const uint8_t *bytes, size_t size, size_t step, int mode)
{
    static const struct extra_route extra[] = {{"POST", "/v1/lab/pauses/{}", answer_extra},
                                               {"GET", "/v1/lab/pauses", answer_extra}};
    static const struct extra_routes extras = {.list = extra, .n = 2, .tick = tick};
    static const struct http_options options = {.extras = {&extras}};
    static struct config config = {.listen = "127.0.0.1:0",
                                   .allow_host = "a,t,x",
                                   .wait_ms = 100000,
                                   .connections = 10,
                                   .instance = "fuzz"};
    side.bytes = bytes;
    side.size = size;
    side.step = step;
    side.mode = mode;
    side.at = side.n = 0;
    side.client = -1;
    side.idle = 0;
    side.ended = false;
    opening = true;
    FUZZ_CHECK(http_start(&config, NULL, &options, &side.http) == 0);
    opening = false;
    http_done_wake(&side.http->done); /* the first round must not wait */
    loop(loop_argument);
    FUZZ_CHECK(side.held == NULL && side.http->in_flight == 0);
    http_stop(side.http);
    http_free(side.http);
    close(side.client);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct answered whole, pieces;
    const size_t step = (size_t)fuzz_byte(&input, &size) + 1;
    const int mode = fuzz_byte(&input, &size) % 3;
    run(input, size, size + 1, mode);
    if (memmem(input, size, "HEAD", 4) != NULL)
        return 0; /* the parser would have to know which answers have no body */
    answered_read(side.answers, side.n, &whole);
    run(input, size, step * step, mode);
    answered_read(side.answers, side.n, &pieces);
    if (whole.streams || pieces.streams)
        return 0;
    FUZZ_CHECK(whole.n == pieces.n);
    for (int i = 0; i < whole.n; i++)
        FUZZ_CHECK(whole.status[i] == pieces.status[i] && whole.body[i] == pieces.body[i]);
    return 0;
}
