/* A thread's turns: it takes the lane that waits longest, serves it, and looks again. */
#include "lanes_private.h"

struct turn {
    struct lane *lanes[LANES_MANY_MAX];
    struct lanes_part parts[LANES_MANY_MAX];
    size_t n;
    bool many; /* for serve_many() */
};

/* Adds the operations of a lane to the turn. */
static void turn_add(struct turn *turn, struct thread *thread, struct lane *lane, size_t *n_ops)
{
    struct lanes_part *part = &turn->parts[turn->n];
    turn->lanes[turn->n++] = lane;
    part->ops = thread->ops + *n_ops;
    part->n = lane_take(thread->lanes, lane, part->ops);
    *n_ops += part->n;
}

/* The lane that waits longest; with it, if it has few operations, others that have few. */
static void turn_take(struct turn *turn, struct thread *thread)
{
    struct lanes *lanes = thread->lanes;
    struct run_queue *many = &lanes->many;
    const struct lane *single = lanes->single.head;
    size_t n_ops = 0;
    turn->n = 0;
    turn->many = lanes_have_many(lanes) && (!single || many->head->place < single->place);
    turn_add(turn, thread, run_queue_pop(turn->many ? many : &lanes->single), &n_ops);
    if (!turn->many)
        return;
    turn->many = n_ops > 0 && n_ops <= LANES_PART_MAX; /* 0: it was spread before its turn */
    while (turn->many && turn->n < LANES_MANY_MAX && many->head && many->head->n > 0 &&
           many->head->n <= LANES_PART_MAX && many->head->n + n_ops <= lanes->options.batch)
        turn_add(turn, thread, run_queue_pop(many), &n_ops);
    lanes->n_many += turn->many;
}

static void turn_end(struct turn *turn, struct lanes *lanes)
{
    lanes->n_many -= turn->many;
    for (size_t i = 0; i < turn->n; i++) {
        lane_put_back(lanes, turn->lanes[i], turn->parts[i].ops, turn->parts[i].n);
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
            break; /* the threads that serve now take what still waits */
        turn_take(&turn, thread);
        lanes_call(lanes);
        pthread_mutex_unlock(&lanes->mutex);
        if (turn.many) {
            lanes->options.serve_many(thread->state, turn.parts, turn.n);
        } else {
            if (turn.parts[0].n > 0)
                lanes->options.serve(thread->state, turn.parts[0].ops, turn.parts[0].n);
            turn.parts[0].n = 0;
        }
        pthread_mutex_lock(&lanes->mutex);
        turn_end(&turn, lanes);
    }
    pthread_mutex_unlock(&lanes->mutex);
    return NULL;
}
