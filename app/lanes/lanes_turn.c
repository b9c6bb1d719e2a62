/* A thread's turns: it takes what waits longest, serves it, and looks again. */
#include "lanes_private.h"

/* A thread's turn. */
struct turn {
    struct lane *lanes[LANES_TOGETHER];
    struct lanes_share shares[LANES_TOGETHER];
    size_t n;
    bool together;
};

/* Adds what waits in a lane to the turn. */
static void turn_add(struct turn *turn, struct thread *thread, struct lane *lane, size_t *n_ops)
{
    struct lanes_share *share = &turn->shares[turn->n];
    turn->lanes[turn->n++] = lane;
    share->ops = thread->ops + *n_ops;
    share->n = lane_take(thread->lanes, lane, share->ops);
    *n_ops += share->n;
}

/* A lane, and with it others of few operations if it has few itself. The line's order counts. */
static void turn_take(struct turn *turn, struct thread *thread)
{
    struct lanes *lanes = thread->lanes;
    struct run_queue *company = &lanes->company;
    const struct lane *single = lanes->singles.head;
    size_t n_ops = 0;
    turn->n = 0;
    turn->together = lanes_have_company(lanes) && (!single || company->head->place < single->place);
    if (!turn->together) {
        turn_add(turn, thread, run_queue_pop(&lanes->singles), &n_ops);
        return;
    }
    turn_add(turn, thread, run_queue_pop(company), &n_ops);
    turn->together = n_ops > 0 && n_ops <= LANES_SHARE; /* 0: it was spread before its turn */
    while (turn->together && turn->n < LANES_TOGETHER && company->head && company->head->n > 0 &&
           company->head->n <= LANES_SHARE && company->head->n + n_ops <= lanes->options.batch)
        turn_add(turn, thread, run_queue_pop(company), &n_ops);
    lanes->n_companies += turn->together;
}

static void turn_serve(struct turn *turn, struct thread *thread)
{
    const struct lanes_options *options = &thread->lanes->options;
    struct lanes_share *first = &turn->shares[0];
    if (turn->together) {
        options->serve_together(thread->state, turn->shares, turn->n);
    } else {
        if (first->n > 0)
            options->serve(thread->state, first->ops, first->n);
        first->n = 0;
    }
}

static void turn_end(struct turn *turn, struct lanes *lanes)
{
    lanes->n_companies -= turn->together;
    for (size_t i = 0; i < turn->n; i++) {
        lane_put_back(lanes, turn->lanes[i], turn->shares[i].ops, turn->shares[i].n);
        lane_return(lanes, turn->lanes[i]);
    }
}

static void be_idle(struct thread *thread)
{
    struct lanes *lanes = thread->lanes;
    thread->next_idle = lanes->idle;
    lanes->idle = thread;
    thread->idle = true;
    while (thread->idle)
        pthread_cond_wait(&thread->wanted, &lanes->mutex);
    lanes->waking = false;
}

void *lanes_thread(void *arg)
{
    struct thread *thread = arg;
    struct lanes *lanes = thread->lanes;
    struct turn turn;
    pthread_mutex_lock(&lanes->mutex);
    for (;;) {
        while (!lanes_have_work(lanes) && !lanes->closing)
            be_idle(thread);
        if (!lanes_have_work(lanes))
            break; /* what still waits is for those who serve now */
        turn_take(&turn, thread);
        lanes_call(lanes);
        pthread_mutex_unlock(&lanes->mutex);
        turn_serve(&turn, thread);
        pthread_mutex_lock(&lanes->mutex);
        turn_end(&turn, lanes);
    }
    pthread_mutex_unlock(&lanes->mutex);
    return NULL;
}
