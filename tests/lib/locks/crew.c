#include "crew.h"
#include "tests.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct crew crew;

static struct op ops[CREW_OPS_MAX];

static void *state_new(void *ctx)
{
    return ctx;
}

static void state_free(void *state)
{
    (void)state;
}

/* -- turns; except for run(), the mutex is held -------------------------------------------------
 */

static int lane_of(const struct op *op)
{
    return op->id[0] == 'l' ? atoi(op->id + 1) : CREW_NO_LANE;
}

/* step 1: a thread begins to serve its lane; -1: it ends. Called without the mutex, which would
 * hide an overlap. */
static void run(const struct op *first, int step)
{
    int lane = lane_of(first);
    if (lane != CREW_NO_LANE && atomic_fetch_add(&crew.running[lane], step) + step > 1)
        atomic_store(&crew.overlap, true);
}

static struct crew_turn *begin_turn(bool together, size_t n_lanes)
{
    assert(crew.n_turns < CREW_TURNS_MAX);
    struct crew_turn *turn = &crew.turns[crew.n_turns++];
    *turn = (struct crew_turn){.together = together, .n_lanes = n_lanes};
    crew.at_gate++;
    pthread_cond_broadcast(&crew.changed);
    while (crew.gate_closed && !crew.pass)
        pthread_cond_wait(&crew.changed, &crew.mutex);
    crew.pass = false;
    crew.at_gate--;
    return turn;
}

static void note(struct crew_turn *turn, struct op **served, size_t n)
{
    turn->n_ops += n;
    turn->n_batches++;
    turn->largest = n > turn->largest ? n : turn->largest;
    for (size_t i = 0; i < n; i++) {
        int lane = lane_of(served[i]);
        crew.order[crew.served++] = served[i]->amount;
        if (lane == CREW_NO_LANE)
            continue;
        crew.disorder = crew.disorder || served[i]->amount <= crew.last[lane];
        crew.last[lane] = served[i]->amount;
    }
    pthread_cond_broadcast(&crew.changed);
}

static void serve(void *state, struct op **taken, size_t n)
{
    const struct op *first = taken[0];
    (void)state;
    run(first, 1);
    pthread_mutex_lock(&crew.mutex);
    if (crew.spreads)
        n -= lanes_spread(crew.lanes, first->id, taken + 1, n - 1);
    struct crew_turn *turn = begin_turn(false, 1);
    note(turn, taken, n);
    while (crew.goes_on && lanes_goes_on(crew.lanes, first->id))
        note(turn, taken, lanes_more(crew.lanes, first->id, taken));
    pthread_mutex_unlock(&crew.mutex);
    run(first, -1);
}

static bool is_postponed(const struct op *op)
{
    crew.n_parts++;
    return (crew.postpones && strcmp(op->id, crew.postpones) == 0) ||
           (crew.postpones_every > 0 && crew.n_parts % (size_t)crew.postpones_every == 0);
}

static void serve_many(void *state, struct lanes_part *parts, size_t n)
{
    (void)state;
    for (size_t i = 0; i < n; i++)
        run(parts[i].ops[0], 1);
    pthread_mutex_lock(&crew.mutex);
    struct crew_turn *turn = begin_turn(true, n);
    for (size_t i = 0; i < n; i++) {
        if (is_postponed(parts[i].ops[0]))
            continue;
        note(turn, parts[i].ops, parts[i].n);
        parts[i].n = 0;
    }
    pthread_mutex_unlock(&crew.mutex);
    for (size_t i = 0; i < n; i++)
        run(parts[i].ops[0], -1);
}

/* -- the test's side ----------------------------------------------------------------------------
 */

void crew_open(bool together, size_t threads, size_t batch, size_t waiting_max)
{
    memset(&crew, 0, sizeof crew);
    memset(crew.last, -1, sizeof crew.last);
    pthread_mutex_init(&crew.mutex, NULL);
    pthread_cond_init(&crew.changed, NULL);
    crew.gate_closed = true;
    crew.lanes = lanes_open(&(struct lanes_options){
        .thread_name = "test",
        .threads = threads,
        .batch = batch,
        .waiting_max = waiting_max,
        .state_new = state_new,
        .state_free = state_free,
        .serve = serve,
        .serve_many = together ? serve_many : NULL,
        .ctx = &crew,
    });
    assert_non_null(crew.lanes);
}

bool crew_submit(int number, int lane)
{
    struct op *op = &ops[number];
    snprintf(op->id, sizeof op->id, lane == CREW_NO_LANE ? "single" : "l%d", lane);
    op->amount = number;
    return lanes_submit(crew.lanes, lane == CREW_NO_LANE ? NULL : op->id, op);
}

void crew_open_gate(void)
{
    pthread_mutex_lock(&crew.mutex);
    crew.gate_closed = false;
    pthread_cond_broadcast(&crew.changed);
    pthread_mutex_unlock(&crew.mutex);
}

void crew_wait_at_gate(int n)
{
    pthread_mutex_lock(&crew.mutex);
    while (crew.at_gate < n)
        pthread_cond_wait(&crew.changed, &crew.mutex);
    pthread_mutex_unlock(&crew.mutex);
}

void crew_pass_gate_until_turn(size_t n_turns)
{
    pthread_mutex_lock(&crew.mutex);
    while (crew.n_turns < n_turns || crew.at_gate == 0) {
        crew.pass = crew.n_turns < n_turns && crew.at_gate > 0;
        pthread_cond_broadcast(&crew.changed);
        pthread_cond_wait(&crew.changed, &crew.mutex);
    }
    pthread_mutex_unlock(&crew.mutex);
}

void crew_wait_served(size_t n)
{
    pthread_mutex_lock(&crew.mutex);
    while (crew.served < n)
        pthread_cond_wait(&crew.changed, &crew.mutex);
    pthread_mutex_unlock(&crew.mutex);
}
