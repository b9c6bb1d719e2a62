#include "history_sim.h"
#include "splitmix.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESOURCES = 5, ITEMS = 2, USERS = 4, LIMIT = 3, LATENCY_MAX = 50 };

static const char names[RESOURCES][2] = {"a", "b", "x", "y", "z"};

static uint64_t dice(struct sim *sim, uint64_t sides)
{
    return splitmix(sim->seed++ * 0x9e3779b97f4a7c15u) % sides;
}

/* -- requests -----------------------------------------------------------------------------------
 */

static void choose(struct sim *sim, struct sim_op *op)
{
    op->kind = (enum sim_kind)dice(sim, SIM_CANCEL);
    op->resource = (int)dice(sim, ITEMS);
    op->amount = 1 + (int64_t)dice(sim, 2);
    op->user = (int)dice(sim, USERS);
    if (op->kind == SIM_READ)
        op->resource = (int)dice(sim, RESOURCES);
    if (op->kind == SIM_ADD || op->kind == SIM_MOVE) {
        op->resource = ITEMS + (int)dice(sim, RESOURCES - ITEMS);
        op->amount = 1 + (int64_t)dice(sim, 60);
    }
    if (op->kind == SIM_ADD && dice(sim, 2) == 0)
        op->amount = -op->amount;
    op->other = ITEMS + (op->resource - ITEMS + 1 + (int)dice(sim, RESOURCES - ITEMS - 1)) %
                            (RESOURCES - ITEMS);
}

/* Sometimes turns the operation into a repetition or a cancellation of an earlier one. */
static void refer_back(struct sim *sim, struct sim_op *op, int i)
{
    struct sim_op *of = i == 0 ? NULL : &sim->ops[dice(sim, (uint64_t)i)];
    if (of == NULL || of->number < 0 || of->asked >= op->asked)
        return;
    if (dice(sim, 8) == 0 && of->kind != SIM_READ && of->number == (int)(of - sim->ops)) {
        op->kind = of->kind;
        op->number = of->number;
    } else if (dice(sim, 3) == 0 && of->kind == SIM_BUY && of->end == SIM_ANSWERED &&
               of->answered < op->asked && of->number == (int)(of - sim->ops)) {
        op->kind = SIM_CANCEL;
        op->other = (int)(of - sim->ops);
        op->resource = of->resource;
    }
}

static void plan(struct sim *sim)
{
    int64_t free_at[64] = {0};
    for (int i = 0; i < sim->n; i++) {
        struct sim_op *op = &sim->ops[i];
        int64_t *client = &free_at[dice(sim, (uint64_t)sim->options.clients)];
        choose(sim, op);
        op->number = i;
        op->asked = *client + 1 + (int64_t)dice(sim, LATENCY_MAX);
        op->effect = op->asked + (int64_t)dice(sim, LATENCY_MAX);
        op->answered = op->effect + (int64_t)dice(sim, LATENCY_MAX);
        *client = op->answered;
        bool lost = (int)dice(sim, 100) < sim->options.lost_pct;
        if (lost)
            op->end = (enum sim_end)(SIM_LOST + dice(sim, 3));
        op->happened = !lost || (op->end != SIM_UNSENT && dice(sim, 2) == 0);
        if (lost && op->happened && dice(sim, 3) == 0)
            op->effect += 5 * LATENCY_MAX; /* long after its client gave up */
        refer_back(sim, op, i);
    }
}

/* -- execution ----------------------------------------------------------------------------------
 */

struct world {
    int bought[ITEMS][USERS];
    struct {
        bool done, closed;
        struct sim_op *as;
    } keys[SIM_OPS_MAX]; /* by number */
    int64_t fence;
};

static int64_t change(struct sim *sim, int resource, int64_t delta)
{
    sim->values[resource] += delta;
    return ++sim->versions[resource];
}

static void execute(struct sim *sim, struct world *world, struct sim_op *op)
{
    int64_t delta = op->kind == SIM_ADD ? op->amount : -op->amount;
    int *bought = op->resource < ITEMS ? &world->bought[op->resource][op->user] : NULL;
    if (op->kind == SIM_CANCEL) {
        const struct sim_op *order = &sim->ops[op->other];
        if (!world->keys[order->number].done || order->refused != NULL ||
            world->keys[order->number].closed) {
            op->refused = "order-closed";
            return;
        }
        world->keys[order->number].closed = true;
        world->bought[op->resource][order->user] -= (int)order->amount;
        change(sim, op->resource, order->amount);
        return;
    }
    op->before = sim->values[op->resource];
    if (op->kind != SIM_READ && op->before + delta < 0)
        op->refused = op->kind == SIM_BUY ? "sold-out" : "insufficient-funds";
    else if (op->kind == SIM_BUY && *bought + op->amount > LIMIT)
        op->refused = "user-limit";
    if (op->kind == SIM_READ || op->refused != NULL) {
        op->after = op->before;
        op->version = sim->versions[op->resource];
        return;
    }
    op->version = change(sim, op->resource, delta);
    op->after = sim->values[op->resource];
    op->fence = ++world->fence;
    if (op->kind == SIM_BUY)
        *bought += (int)op->amount;
    if (op->kind == SIM_MOVE)
        op->other_version = change(sim, op->other, op->amount);
}

static int by_effect(const void *a, const void *b)
{
    const struct sim_op *x = *(struct sim_op *const *)a, *y = *(struct sim_op *const *)b;
    return x->effect != y->effect ? (x->effect > y->effect) - (x->effect < y->effect)
                                  : (x > y) - (x < y);
}

/* Executes the first arrival of a key; a repeated key gets the stored answer. */
static void repeat(struct sim *sim, struct world *world, struct sim_op *op)
{
    const struct sim_op *first = &sim->ops[op->number];
    if (op != first) {
        op->resource = first->resource, op->other = first->other, op->user = first->user;
        op->amount = first->amount;
    }
    if (!world->keys[op->number].done) {
        execute(sim, world, op);
        world->keys[op->number].done = true;
        world->keys[op->number].as = op;
        return;
    }
    const struct sim_op *stored = world->keys[op->number].as;
    op->refused = stored->refused;
    op->before = stored->before, op->after = stored->after;
    op->version = stored->version, op->other_version = stored->other_version;
    op->fence = stored->fence;
}

void sim_run(struct sim *sim, uint64_t seed, const struct sim_options *options)
{
    static struct world world;
    struct sim_op *order[SIM_OPS_MAX] = {NULL};
    memset(&world, 0, sizeof world);
    *sim = (struct sim){.options = *options, .seed = splitmix(seed), .n = options->n};
    for (int i = 0; i < RESOURCES; i++) {
        sim->initial[i] = sim->values[i] = 5 + (int64_t)dice(sim, i < ITEMS ? 20 : 100);
        sim->versions[i] = 1;
    }
    plan(sim);
    for (int i = 0; i < sim->n; i++)
        order[i] = &sim->ops[i];
    qsort(order, (size_t)sim->n, sizeof *order, by_effect);
    for (int i = 0; i < sim->n; i++)
        if (order[i]->happened)
            repeat(sim, &world, order[i]);
}

/* -- as text -------------------------------------------------------------------------------------
 */

static void print_question(FILE *out, const struct sim *sim, const struct sim_op *op)
{
    fprintf(out, "%" PRId64 "-", op->asked);
    if (op->end == SIM_CUT)
        fputs("?", out);
    else
        fprintf(out, "%" PRId64, op->answered);
    fprintf(out, " k%d ", op->number);
    const char *name = names[op->resource];
    if (op->kind == SIM_BUY)
        fprintf(out, "buy %" PRId64 " %s u%d", op->amount, name, op->user);
    else if (op->kind == SIM_ADD)
        fprintf(out, "add %" PRId64 " %s", op->amount, name);
    else if (op->kind == SIM_MOVE)
        fprintf(out, "move %" PRId64 " %s %s", op->amount, name, names[op->other]);
    else if (op->kind == SIM_READ)
        fprintf(out, "read %s", name);
    else
        fprintf(out, "cancel o-k%d", sim->ops[op->other].number);
}

static void print_answer(FILE *out, const struct sim *sim, const struct sim_op *op)
{
    if (op->refused != NULL) {
        fprintf(out, ": %s", op->refused);
        return;
    }
    if (op->kind == SIM_CANCEL) {
        fputs(": ok", out);
        return;
    }
    if (op->kind == SIM_READ)
        fprintf(out, ": %" PRId64, op->after);
    else
        fprintf(out, ": %" PRId64 ">%" PRId64 " f%" PRId64, op->before, op->after, op->fence);
    if (sim->options.versions)
        fprintf(out, " v%" PRId64, op->version);
    if (sim->options.versions && op->kind == SIM_MOVE)
        fprintf(out, " to %" PRId64, op->other_version);
}

const char *sim_text(const struct sim *sim)
{
    static char text[SIM_TEXT_MAX];
    FILE *out = fmemopen(text, sizeof text, "w");
    for (int i = 0; out != NULL && i < RESOURCES; i++) {
        fprintf(out, "%s %s %" PRId64, i < ITEMS ? "item" : "account", names[i], sim->initial[i]);
        if (sim->options.versions)
            fputs(i < ITEMS ? " v1 limit 3" : " v1", out);
        fputs("\n", out);
    }
    for (int i = 0; out != NULL && i < sim->n; i++) {
        const struct sim_op *op = &sim->ops[i];
        print_question(out, sim, op);
        if (op->end == SIM_ANSWERED)
            print_answer(out, sim, op);
        else if (op->end != SIM_CUT)
            fputs(op->end == SIM_LOST ? ": lost" : ": unsent", out);
        fputs("\n", out);
    }
    if (out != NULL)
        fclose(out);
    return text;
}

const char *sim_audit(const struct sim *sim)
{
    static char text[2000];
    FILE *out = fmemopen(text, sizeof text, "w");
    for (int i = 0; out != NULL && i < RESOURCES; i++) {
        int64_t sum = sim->values[i] - sim->initial[i];
        fprintf(out,
                "%s{\"resource\":\"%s:%s\",\"initial\":%" PRId64 ",\"current\":%" PRId64
                ",\"ledger_sum\":%" PRId64 ",\"sold\":%" PRId64
                ",\"oversold\":0,\"lost_updates\":0,\"lost_amount\":0,\"duplicates\":0,"
                "\"broken\":0,\"forks\":[]}",
                i == 0 ? "{\"resources\":[" : ",", i < ITEMS ? "item" : "account", names[i],
                sim->initial[i], sim->values[i], sum, i < ITEMS ? -sum : 0);
    }
    if (out != NULL) {
        fputs("]}", out);
        fclose(out);
    }
    return text;
}

/* -- one mistake ---------------------------------------------------------------------------------
 */

static bool is_change(const struct sim_op *op)
{
    return op->end == SIM_ANSWERED && op->refused == NULL && op->kind <= SIM_MOVE;
}

/* The first operation from a random place on that fits and whose key was sent only once. NULL:
 * none.
 */
static struct sim_op *find(struct sim *sim, uint64_t from, const struct sim_op *beside,
                           bool (*fits)(const struct sim_op *op, const struct sim_op *beside))
{
    for (int i = 0; i < sim->n; i++) {
        struct sim_op *op = &sim->ops[(from + (uint64_t)i) % (uint64_t)sim->n];
        bool again = false;
        for (int j = 0; j < sim->n; j++)
            again = again || (&sim->ops[j] != op && sim->ops[j].number == op->number);
        if (!again && op != beside && fits(op, beside))
            return op;
    }
    return NULL;
}

static bool any_change(const struct sim_op *op, const struct sim_op *beside)
{
    (void)beside;
    return is_change(op);
}

static bool any_read(const struct sim_op *op, const struct sim_op *beside)
{
    (void)beside;
    return op->kind == SIM_READ;
}

static bool same_number(const struct sim_op *op, const struct sim_op *beside)
{
    return is_change(op) && op->resource == beside->resource;
}

static bool later_version(const struct sim_op *op, const struct sim_op *beside)
{
    return same_number(op, beside) && op->version > beside->version;
}

static bool answered_read_before(const struct sim_op *op, const struct sim_op *beside)
{
    return op->kind == SIM_READ && op->resource == beside->resource && op->asked > beside->answered;
}

const char *sim_spoil(struct sim *sim, uint64_t dice_of)
{
    uint64_t place = splitmix(dice_of);
    struct sim_op *op = find(sim, place, NULL, any_change), *second;
    if (op == NULL)
        return NULL;
    switch (dice_of % 10) {
    case 0:
        second = find(sim, splitmix(place), op, same_number);
        if (second == NULL)
            return NULL;
        second->version = op->version;
        return "a version made twice";
    case 1:
        op->refused = "order-closed";
        return "refused, and took effect";
    case 2:
        op->before++, op->after++;
        return "read what was not there";
    case 3:
        op->after++;
        return "a sum that is wrong";
    case 4:
        second = find(sim, splitmix(place), op, later_version);
        if (second == NULL || op->asked < 3)
            return NULL;
        second->asked = op->asked - 2, second->answered = op->asked - 1;
        return "answered before an earlier version was asked";
    case 5:
        op = find(sim, place, NULL, any_read);
        if (op == NULL)
            return NULL;
        op->after++;
        return "a read of a value that its version did not have";
    case 6:
        second = find(sim, place, op, answered_read_before);
        if (second == NULL)
            return NULL;
        second->version = op->version - 1, second->after = op->before;
        return "a read that misses an acknowledged change";
    case 7:
        second = find(sim, splitmix(place), op, later_version);
        if (second == NULL || op->fence < 2)
            return NULL;
        second->fence = op->fence - 1;
        return "a fence that falls";
    case 8:
        op->amount += op->amount > 0 ? 1 : -1;
        return "another amount than was asked for";
    default:
        sim->values[op->resource]++;
        return "an audit that is one off";
    }
}
