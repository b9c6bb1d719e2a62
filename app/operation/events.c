/*
 * One mutex, held for the copying of an event: at EVENTS_OPS_PER_S this is far from contended, and
 * the order in the list is the order in which the points were passed. The reader swaps two lists
 * and so holds it for a moment only, however much there is to encode.
 */
#include "events.h"
#include "resource.h"
#include "answer.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    STEPS = 4, /* histogram buckets per power of two: 19 % wide at most */
    BUCKETS = 36 * STEPS
};

struct tally {
    struct event_counts counts;
    bool used, changed;
    uint64_t touched; /* tick of the last change, to find the longest untouched */
    int64_t finished;
    uint32_t took[BUCKETS]; /* microseconds */
};

_Atomic int64_t events_until_us;

/* Apart from what is initialized: so they are no part of the program's file. */
static struct event lists[2][EVENTS_PENDING_MAX];
static struct tally tallies[EVENTS_RESOURCES_MAX];

static struct {
    pthread_mutex_t mutex; /* guards the above, too */
    int filling;           /* which of the two lists */
    size_t n;              /* in it */
    uint64_t lost, noted, unnoted, tick;
    bool keys_shown;
    int64_t per_s;                   /* the ration */
    int64_t tokens_ppm, refilled_us; /* millionths of operations that may be noted now */
} events = {.mutex = PTHREAD_MUTEX_INITIALIZER, .per_s = EVENTS_OPS_PER_S};

static const char *const point_texts[] = {
#define POINT_TEXT(name, text) [OP_##name] = text,
    OP_POINT_MAP(POINT_TEXT)
#undef POINT_TEXT
};

const char *event_point_text(enum op_point point)
{
    return point_texts[point];
}

const char *event_kind_text(enum op_kind kind)
{
    static const char *const texts[] = {
#define KIND_TEXT(kind, operation, metric, event) [OP_##kind] = event,
        OP_BUSINESS_MAP(KIND_TEXT)
#undef KIND_TEXT
    };
    return kind < OP_PUT_ITEM ? texts[kind] : "put";
}

/* -- noting ------------------------------------------------------------------------------------ */

static bool is_named_after_order(const struct op *op)
{
    return op->kind == OP_PAY_ORDER || op->kind == OP_CANCEL_ORDER || op->kind == OP_REFUND_ORDER;
}

static void name_resource(char ret[DB_RESOURCE_MAX + 1], const struct op *op)
{
    const bool item =
        op->kind == OP_PLACE_ORDER || op->kind == OP_CHANGE_STOCK || op->kind == OP_PUT_ITEM;
    const char *kind = item ? "item" : is_named_after_order(op) ? "order" : "account";
    resource_name(ret, kind, op->id);
}

/* A bucket of tokens: so many at once, so many per second. */
static bool may_note(int64_t at_us)
{
    const int64_t full = events.per_s * 1000000 * EVENTS_OPS_BURST / EVENTS_OPS_PER_S;
    int64_t passed_us = at_us - events.refilled_us;
    if (passed_us > 0) {
        events.refilled_us = at_us;
        events.tokens_ppm =
            passed_us > 1000000 ? full : events.tokens_ppm + passed_us * events.per_s;
        if (events.tokens_ppm > full)
            events.tokens_ppm = full;
    }
    if (events.tokens_ppm < 1000000) {
        events.unnoted++;
        return false;
    }
    events.tokens_ppm -= 1000000;
    return true;
}

static void note(const struct op *op, enum op_point point, int64_t at_us, const char *resource)
{
    if (events.n == EVENTS_PENDING_MAX) {
        events.lost++;
        return;
    }
    struct event *event = &lists[events.filling][events.n++];
    event->t_us = at_us;
    event->value = op->shown_value;
    event->fence = op->shown_fence;
    event->point = point;
    event->kind = op->kind;
    event->problem = point == OP_REJECTED ? op->answer.problem : PROBLEM_NONE;
    event->has_value = !is_named_after_order(op) &&
                       (point == OP_READ || point == OP_DECIDED || point == OP_COMMITTED);
    memcpy(event->resource, resource, sizeof event->resource);
    if (events.keys_shown)
        snprintf(event->key, sizeof event->key, "%.*s", EVENTS_KEY_MAX, op_client_key(op));
    else
        snprintf(event->key, sizeof event->key, "#%" PRIu64, op->noted);
    memcpy(event->request_id, op->request_id, sizeof event->request_id);
}

/* -- counting ---------------------------------------------------------------------------------- */

static struct tally *tally_of(const char *resource)
{
    struct tally *oldest = &tallies[0];
    for (size_t i = 0; i < EVENTS_RESOURCES_MAX; i++) {
        struct tally *tally = &tallies[i];
        if (tally->used && strcmp(tally->counts.resource, resource) == 0)
            return tally;
        if (tally->touched < oldest->touched)
            oldest = tally;
    }
    *oldest = (struct tally){.used = true, .counts.initial = -1};
    snprintf(oldest->counts.resource, sizeof oldest->counts.resource, "%s", resource);
    return oldest;
}

static size_t bucket_of(int64_t us)
{
    if (us < STEPS)
        return us > 0 ? (size_t)us : 0;
    const int power = 63 - __builtin_clzll((unsigned long long)us);
    const size_t bucket = (size_t)(power - 1) * STEPS + (size_t)(us >> (power - 2) & (STEPS - 1));
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/* The first value beyond the bucket. */
static int64_t bucket_end_us(size_t bucket)
{
    if (bucket < STEPS)
        return (int64_t)bucket + 1;
    const size_t power = bucket / STEPS + 1;
    return (int64_t)(STEPS + bucket % STEPS + 1) << (power - 2);
}

static int64_t quantile_us(const struct tally *tally, int64_t per_cent)
{
    int64_t rank = (tally->finished * per_cent + 99) / 100, below = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        below += tally->took[i];
        if (below >= rank && rank > 0)
            return bucket_end_us(i) < tally->counts.max_us ? bucket_end_us(i)
                                                           : tally->counts.max_us;
    }
    return 0;
}

static void count_took(struct tally *tally, const struct op *op, int64_t at_us)
{
    const int64_t took_us = at_us - op->point_us[OP_SUBMITTED];
    if (op->point_us[OP_SUBMITTED] == 0)
        return; /* the scheduled task's: nobody waited for it */
    tally->finished++;
    tally->took[bucket_of(took_us)]++;
    if (took_us > tally->counts.max_us)
        tally->counts.max_us = took_us;
}

/* These say what became of an operation. */
static bool is_counted(enum op_point point)
{
    return point == OP_COMMITTED || point == OP_RELEASED || point == OP_REJECTED;
}

/* A sum that does not fit stays at the limit. */
static void add_amount(int64_t *sum, const struct op *op)
{
    const bool negated = op->kind == OP_TRANSFER || op->kind == OP_CHANGE_STOCK;
    const int64_t change = negated ? -op->amount : op->amount;
    if (__builtin_add_overflow(*sum, change, sum))
        *sum = change < 0 ? INT64_MIN : INT64_MAX;
}

static void count(const struct op *op, enum op_point point, int64_t at_us, struct tally *tally)
{
    const bool good = op->answer.problem == PROBLEM_NONE;
    tally->changed = true;
    tally->touched = ++events.tick;
    if (op->kind >= OP_PUT_ITEM) {
        if (point == OP_COMMITTED) {
            struct tally anew = {.used = true, .changed = true, .touched = events.tick};
            memcpy(anew.counts.resource, tally->counts.resource, sizeof anew.counts.resource);
            anew.counts.initial = anew.counts.value = op->amount;
            *tally = anew;
        }
        return;
    }
    if (point == OP_COMMITTED && good) {
        tally->counts.value = op->shown_value;
        tally->counts.accepted++;
        add_amount(&tally->counts.amount, op);
    } else if (point == OP_REJECTED) {
        *(problem_info(op->answer.problem)->decided ? &tally->counts.decided_no
                                                    : &tally->counts.failed) += 1;
    }
    if (point == OP_REJECTED || (point == OP_RELEASED && good))
        count_took(tally, op, at_us);
}

void events_show_keys(bool shown)
{
    pthread_mutex_lock(&events.mutex);
    events.keys_shown = shown;
    pthread_mutex_unlock(&events.mutex);
}

/* Most operations are not noted, and most points are not counted: those cost no mutex. */
static bool concern_nobody(struct op *const *ops, size_t n, enum op_point point)
{
    if (is_counted(point) || point == OP_SUBMITTED)
        return false;
    for (size_t i = 0; i < n; i++)
        if (ops[i]->noted != 0)
            return false;
    return true;
}

void events_pass(struct op *const *ops, size_t n, enum op_point point, int64_t at_us)
{
    char resource[DB_RESOURCE_MAX + 1];
    const struct op *last = NULL; /* whose resource and tally these are: a batch shares them */
    struct tally *tally = NULL;
    if (concern_nobody(ops, n, point))
        return;
    pthread_mutex_lock(&events.mutex);
    for (size_t i = 0; i < n; i++) {
        struct op *op = ops[i];
        if (op->kind > OP_PUT_ACCOUNT)
            continue;
        if (point == OP_SUBMITTED && op->kind < OP_PUT_ITEM)
            op->noted = may_note(at_us) ? ++events.noted : 0;
        if (op->noted == 0 && !is_counted(point))
            continue;
        if (last == NULL || last->kind != op->kind || strcmp(last->id, op->id) != 0) {
            name_resource(resource, op);
            tally = is_counted(point) ? tally_of(resource) : NULL;
        }
        last = op;
        if (op->noted != 0)
            note(op, point, at_us, resource);
        if (tally != NULL)
            count(op, point, at_us, tally);
    }
    pthread_mutex_unlock(&events.mutex);
}

/* -- the reader's side ---------------------------------------------------------------------------
 */

/* The HTTP thread, which answers all clients, copies each event to each listener. The cost is in
 * the sending, so there is one ration for all listeners together. */
void events_listen(int listeners, int64_t now_us)
{
    pthread_mutex_lock(&events.mutex);
    events.per_s = listeners > EVENTS_SENT_PER_S / EVENTS_OPS_PER_S ? EVENTS_SENT_PER_S / listeners
                                                                    : EVENTS_OPS_PER_S;
    pthread_mutex_unlock(&events.mutex);
    atomic_store(&events_until_us, listeners > 0 ? INT64_MAX : now_us + EVENTS_LINGER_US);
}

size_t events_take(const struct event **ret, uint64_t *ret_lost, uint64_t *ret_unnoted)
{
    pthread_mutex_lock(&events.mutex);
    const size_t n = events.n;
    *ret = lists[events.filling];
    *ret_lost = events.lost;
    *ret_unnoted = events.unnoted;
    events.filling = !events.filling;
    events.n = 0;
    pthread_mutex_unlock(&events.mutex);
    return n;
}

size_t events_counts(struct event_counts *ret)
{
    size_t n = 0;
    pthread_mutex_lock(&events.mutex);
    for (size_t i = 0; i < EVENTS_RESOURCES_MAX; i++) {
        struct tally *tally = &tallies[i];
        if (!tally->changed)
            continue;
        tally->changed = false;
        tally->counts.p50_us = quantile_us(tally, 50);
        tally->counts.p99_us = quantile_us(tally, 99);
        ret[n++] = tally->counts;
    }
    pthread_mutex_unlock(&events.mutex);
    return n;
}
