#include "sim_points.h"
#include "lab_private.h"
#include "section.h"
#include "sim_threads.h"

#include <stdlib.h>
#include <string.h>

/* What a thread of an instance did last. */
struct memo {
    char who[DB_KEY_MAX + 16]; /* the operation that it runs */
    int64_t acquired_us;       /* of the hold that it used last; 0: none */
    bool later_turn, waited;
};

struct sim_trap sim_traps[SIM_HANDS_MAX];

/* A rare state is a place for faults, too. */
#define LATER_TURN    "later turn"
#define LATER_CHECKED "checked in a later turn" /* it has looked at its lock, and writes next */

static const char *const points[] = {
    LK_POINT_TRY,     LK_POINT_ACQUIRED, LK_POINT_RENEW, LK_POINT_RELEASE, LK_POINT_RELEASED,
    LK_POINT_CLEANUP, "waiting",         "acquired",     "read",           "decided",
    "checked",        "committed",       "released",     "disk.write",     "disk.flush",
    "disk.flushed"};

void sim_points_begin(void)
{
    memset(sim_traps, 0, sizeof sim_traps);
}

const char *sim_any_point(void)
{
    if (sim_world.is.lanes && sim_world.is.turns > 1 && sim_one_in(2))
        return sim_world.is.late_writes && sim_one_in(2) ? LATER_CHECKED : LATER_TURN;
    return points[sim_below(sizeof points / sizeof points[0])];
}

static struct sim_instance *own_instance(void)
{
    for (uint32_t i = 0; i < sim_world.is.instances; i++)
        if (sim_world.instances[i].group == sim_group())
            return &sim_world.instances[i];
    return NULL;
}

/* A stall hits every second one that passes, for as long as its trap stands. */
static bool fires(struct sim_trap *trap, const char *point)
{
    if (strcmp(trap->point, point) != 0)
        return false;
    return trap->kind == SIM_STALL ? sim_one_in(2) : trap->passes-- == 0;
}

void sim_pass(const char *point, const char *key)
{
    for (int i = 0; i < SIM_HANDS_MAX; i++) {
        struct sim_trap *trap = &sim_traps[i];
        struct sim_instance *instance = trap->point ? own_instance() : NULL;
        if (!instance || !fires(trap, point))
            continue;
        trap->victim = instance;
        if (trap->kind != SIM_STALL)
            trap->point = NULL;
        sim_count(SIM_AT_POINT);
        sim_tell("i%d  passes \"%s\", and there:", instance->number, point);
        sim_harm(instance, trap->kind, key);
    }
}

static struct memo *memo(void)
{
    static struct memo outside;
    void **own = sim_own();
    if (!own)
        return &outside;
    if (!*own && !(*own = calloc(1, sizeof(struct memo))))
        abort();
    return *own;
}

/* -- rare states ------------------------------------------------------------------------------ */

static const lk_hold *hold_of(const struct op *op)
{
    return op->section && op->section->n_rows > 0 ? op->section->rows[0].hold : NULL;
}

/* A hold that was granted before the last turn of this thread is kept for one more. */
static void note_acquired(const struct op *op)
{
    const lk_hold *hold = hold_of(op);
    struct memo *mine = memo();
    if (op != op->section->ops[0]) { /* of one batch */
        sim_count(SIM_BATCHED);
        return;
    }
    mine->later_turn = hold && mine->acquired_us == hold->acquired_us;
    mine->acquired_us = hold ? hold->acquired_us : 0;
    if (mine->later_turn) {
        sim_count(SIM_LATER_TURN);
        sim_pass(LATER_TURN, hold->key);
    } else if (hold && hold->attempts == 0) {
        sim_count(SIM_HANDED_OVER);
    }
}

static void note_read(const struct op *op)
{
    if (!op->section->tx && !op->section->snapshot)
        sim_count(SIM_TOGETHER);
    if (op->point_us[OP_DECIDED] != 0)
        sim_count(SIM_RERUN);
}

static void note_lost(const struct op *op)
{
    sim_count(op->section->lost ? SIM_LOCK_LOST : SIM_STALE_FENCE);
    if (memo()->later_turn)
        sim_count(SIM_LATE_TURN);
}

static void note_rare_states(const struct op *op, enum op_point point)
{
    const lk_hold *hold = hold_of(op);
    if (point == OP_ACQUIRED)
        note_acquired(op);
    else if (point == OP_READ)
        note_read(op);
    else if (point == OP_LOST)
        note_lost(op);
    else if (point == OP_COMMITTED && hold && lk_check(hold, NULL) != LK_OK)
        sim_count(SIM_ENDED_IN_COMMIT);
    else if (point == OP_RELEASED && op->section->outcome_unknown)
        sim_count(op->section->rows[0].fence > 0 && op->section->config->fence ? SIM_KEPT
                                                                               : SIM_KEPT_ALONE);
}

/* -- the timeline, as the lab's: when, where, who, point, value, fence ------------------------- */

static void show(const char *point, const struct op *op)
{
    const struct sim_instance *instance = own_instance();
    char value[64] = "";
    if (op && (strcmp(point, "read") == 0 || strcmp(point, "decided") == 0 ||
               strcmp(point, "committed") == 0))
        snprintf(value, sizeof value, "%lld  fence %lld", (long long)op->shown_value,
                 (long long)op->shown_fence);
    sim_tell("i%d  %-10s %-14s %s", instance ? instance->number : -1, memo()->who, point, value);
}

static void at_op_point(struct op *op, enum op_point point)
{
    const char *name = lab_point_names[point];
    char lock[LK_KEY_MAX + 1] = "";
    if (op->kind >= OP_PUT_ITEM)
        return;
    if (op->key[0] != '\0')
        snprintf(memo()->who, sizeof memo()->who, "%s", op->key);
    else
        snprintf(memo()->who, sizeof memo()->who, "close:%s", op->id);
    memo()->waited = false;
    if (sim_world.timeline)
        show(name, op);
    if (op->section && point != OP_SUBMITTED && point != OP_WAITING)
        note_rare_states(op, point);
    if (op->section && op->section->n_rows > 0)
        snprintf(lock, sizeof lock, "lock:%s", op->section->rows[0].resource);
    if (point == OP_CHECKED && memo()->later_turn)
        sim_pass(LATER_CHECKED, lock);
    sim_pass(name, lock);
}

static void at_lock_point(void *ctx, const char *point, const char *key)
{
    const bool waits = strcmp(point, LK_POINT_WAIT) == 0;
    (void)ctx;
    if (memo()->who[0] == '\0')
        snprintf(memo()->who, sizeof memo()->who, "watchdog");
    if (sim_world.timeline && strcmp(point, LK_POINT_TRY) != 0 && !(waits && memo()->waited))
        show(point, NULL);
    memo()->waited = memo()->waited || waits;
    if (strcmp(point, LK_POINT_RENEW) == 0)
        sim_count(SIM_RENEWED);
    sim_pass(point, key);
}

const struct seams *sim_seams(void)
{
    static struct seams seams;
    static lk_env env;
    env = *lk_env_system();
    env.point = at_lock_point;
    seams = (struct seams){.at_point = at_op_point,
                           .env = &env,
                           .one_by_one = sim_world.is.alone,
                           .query = lab_query_lock};
    return &seams;
}

/* -- hand-overs: no setting of the service, but of the library --------------------------------- */

lk_status __wrap_lk_open(const char *provider, const char *endpoints, const lk_options *options,
                         lk_client **ret, lk_error *error);
lk_status __real_lk_open(const char *provider, const char *endpoints, const lk_options *options,
                         lk_client **ret, lk_error *error);

lk_status __wrap_lk_open(const char *provider, const char *endpoints, const lk_options *options,
                         lk_client **ret, lk_error *error)
{
    lk_options drawn = *options;
    drawn.local_handovers = drawn.local_queue ? (int32_t)sim_world.is.hand_overs : 0;
    return __real_lk_open(provider, endpoints, &drawn, ret, error);
}
