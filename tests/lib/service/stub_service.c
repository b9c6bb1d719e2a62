#include "stub_service.h"
#include "answer.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct service {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    enum stub_mode mode;
    struct op *queue, *held;
    long submitted, n_held, running, withdrawn;
    bool draining, stop;
    struct op last;
};

static void long_answer(struct op *op)
{
    char *body = malloc(STUB_LONG_BYTES + 1);
    assert(body != NULL);
    memset(body, ' ', STUB_LONG_BYTES);
    body[0] = '[';
    body[STUB_LONG_BYTES - 1] = ']';
    body[STUB_LONG_BYTES] = '\0';
    answer_take(&op->answer, body);
    op->answer.status = 200;
}

static void answer(struct op *op)
{
    if (op->kind == OP_GUARDS) {
        long_answer(op);
    } else if (strcmp(op->other, "sold-out") == 0) {
        op_problem(op, PROBLEM_SOLD_OUT, "nothing left of item %s", op->id);
    } else {
        op_answer(op, op->kind < OP_PUT_ITEM ? 201 : 200,
                  "{\"order_id\":\"o1\",\"id\":\"%s\",\"other\":\"%s\",\"amount\":%" PRId64
                  ",\"request\":\"%s\"}",
                  op->id, op->other, op->amount, op->request);
    }
    op->answer.replayed = strncmp(op->key, "replay", 6) == 0;
    op->done(op);
}

static void *run(void *context)
{
    struct service *s = context;
    pthread_mutex_lock(&s->mutex);
    while (!s->stop || s->queue != NULL) {
        struct op *list = s->queue;
        s->queue = NULL;
        if (list == NULL) {
            pthread_cond_wait(&s->cond, &s->mutex);
            continue;
        }
        pthread_mutex_unlock(&s->mutex);
        long n = 0;
        for (struct op *next; list != NULL; list = next, n++) {
            next = list->next;
            answer(list);
        }
        pthread_mutex_lock(&s->mutex);
        s->running -= n;
        pthread_cond_broadcast(&s->cond);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

int service_open(const struct config *config, const struct business *table,
                 const struct seams *seams, struct service **ret)
{
    (void)config;
    (void)table;
    (void)seams;
    struct service *s = calloc(1, sizeof(*s));
    assert(s != NULL);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->cond, NULL);
    int code = pthread_create(&s->thread, NULL, run, s);
    assert(code == 0);
    *ret = s;
    return 0;
}

bool service_submit(struct service *s, struct op *op)
{
    pthread_mutex_lock(&s->mutex);
    const bool refused = s->draining || s->mode == STUB_REFUSE;
    if (s->draining) {
        op_problem(op, PROBLEM_DRAINING, "the stub drains");
    } else if (refused) {
        op_problem(op, PROBLEM_OVERLOADED, "the stub refuses");
    } else {
        const bool holds = s->mode == STUB_HOLD || s->mode == STUB_QUEUE;
        struct op **list = holds ? &s->held : &s->queue;
        s->submitted++;
        s->n_held += holds;
        s->running++;
        s->last = *op;
        op->next = *list;
        *list = op;
        if (op->next == NULL && s->mode == STUB_ANSWER)
            pthread_cond_broadcast(&s->cond);
    }
    pthread_mutex_unlock(&s->mutex);
    return !refused;
}

/* Held operations that wait and were abandoned are answered. */
void service_withdraw(struct service *s)
{
    pthread_mutex_lock(&s->mutex);
    for (struct op **at = &s->held; s->mode == STUB_QUEUE && *at != NULL;) {
        struct op *op = *at;
        if (!atomic_load(&op->abandoned)) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        op->next = s->queue;
        s->queue = op;
        s->n_held--;
        s->withdrawn++;
    }
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->mutex);
}

bool service_drain(struct service *s, int64_t timeout_ms)
{
    (void)timeout_ms; /* the test must release the held operations */
    pthread_mutex_lock(&s->mutex);
    s->draining = true;
    while (s->running > 0)
        pthread_cond_wait(&s->cond, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
    return true;
}

void service_close(struct service *s)
{
    stub_release(s);
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->cond);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

void service_metrics(struct service *s, FILE *out)
{
    fprintf(out, "stub_submitted_total %ld\n", stub_submitted(s));
}

void stub_mode(struct service *s, enum stub_mode mode)
{
    pthread_mutex_lock(&s->mutex);
    s->mode = mode;
    pthread_mutex_unlock(&s->mutex);
}

void stub_release(struct service *s)
{
    pthread_mutex_lock(&s->mutex);
    while (s->held != NULL) {
        struct op *op = s->held;
        s->held = op->next;
        op->next = s->queue;
        s->queue = op;
    }
    s->n_held = 0;
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->mutex);
}

static long read_count(struct service *s, const long *count)
{
    pthread_mutex_lock(&s->mutex);
    long n = *count;
    pthread_mutex_unlock(&s->mutex);
    return n;
}

long stub_submitted(struct service *s)
{
    return read_count(s, &s->submitted);
}

long stub_held(struct service *s)
{
    return read_count(s, &s->n_held);
}

long stub_withdrawn(struct service *s)
{
    return read_count(s, &s->withdrawn);
}

void stub_last(struct service *s, struct op *ret)
{
    pthread_mutex_lock(&s->mutex);
    *ret = s->last;
    pthread_mutex_unlock(&s->mutex);
}
