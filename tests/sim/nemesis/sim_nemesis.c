/* What goes wrong, drawn from the kinds that exist in this run; then all is healed. */
#include "sim_archive.h"
#include "sim_disk.h"
#include "sim_nemesis_pg.h"
#include "sim_nemesis_net.h"
#include "sim_points.h"
#include "sim_nemesis_zk.h"
#include "sim_pg.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESTART_US = 100000, AS_LONG_AS_US = 400000, TRAP_US = 200000, FOREVER_US = 5000000 };

static void restart(struct sim_instance *instance)
{
    sim_sleep_us(sim_below(RESTART_US));
    sim_instance_start(instance);
}

static struct sim_instance *any_instance(void)
{
    return &sim_world.instances[sim_below(sim_world.is.instances)];
}

/* -- at any step of an instance ---------------------------------------------------------------- */

static void at_step(int group)
{
    sim_archive_at_step(group);
    for (uint32_t i = 0; i < sim_world.is.instances; i++) {
        struct sim_instance *instance = &sim_world.instances[i];
        if (instance->group == group && instance->kill_in > 0 && --instance->kill_in == 0)
            sim_instance_kill(instance);
    }
}

static void kill_soon(void)
{
    struct sim_instance *instance = any_instance();
    uint32_t life = instance->life;
    if (instance->state == SIM_DOWN)
        return;
    instance->kill_in = INT64_C(1) << sim_below(12);
    int64_t until_us = sim_now_us() + AS_LONG_AS_US;
    while (instance->life == life && sim_now_us() < until_us)
        sim_sleep_us(1000);
    instance->kill_in = 0;
    if (instance->life == life)
        sim_instance_kill(instance);
    sim_count(SIM_KILL);
    restart(instance);
}

static void stop(void)
{
    struct sim_instance *instance = any_instance();
    if (instance->state != SIM_UP)
        return;
    sim_instance_stop(instance);
    sim_count(SIM_STOP);
    restart(instance);
}

static int64_t some_us(void)
{
    return INT64_C(1000) << sim_below(14);
}

static void pause_one(struct sim_instance *instance)
{
    int64_t us = some_us();
    sim_tell("i%d is stopped for %lld ms", instance->number, (long long)us / 1000);
    sim_pause(instance->group, sim_now_us() + us);
    sim_count(SIM_PAUSE);
    if (sim_group() == instance->group)
        sim_step();
}

static void stall(const struct sim_instance *instance)
{
    int64_t us = some_us();
    sim_tell("a thread of i%d stands still for %lld ms", instance->number, (long long)us / 1000);
    sim_count(SIM_STALL);
    sim_sleep_us(us);
}

static void kill_all(void)
{
    for (uint32_t i = 0; i < sim_world.is.instances; i++)
        if (sim_world.instances[i].state != SIM_DOWN)
            sim_instance_kill(&sim_world.instances[i]);
}

static void cut_power(void)
{
    sim_tell("the power fails");
    kill_all();
    sim_archive_kill();
    if (sim_archive_begun())
        sim_disk_power_cut(sim_archive);
    sim_disk_power_cut(sim_store);
    sim_disk_power_cut(sim_lock_store);
    sim_count(SIM_POWER);
    for (uint32_t i = 0; i < sim_world.is.instances; i++)
        restart(&sim_world.instances[i]);
}

/* An archive has the store for itself, and may be killed, and the power may fail then. */
static void move_rows(void)
{
    kill_all();
    if (sim_archive_run() && sim_world.is.faults[SIM_POWER] && sim_one_in(2)) {
        cut_power();
        return;
    }
    for (uint32_t i = 0; i < sim_world.is.instances; i++)
        restart(&sim_world.instances[i]);
}

static void spoil_disk(enum sim_event kind)
{
    struct sim_disk_faults faults = {.slow = 20};
    uint32_t one_in = 2u << sim_below(6);
    if (kind == SIM_WRITE_FAILED)
        faults.write_fails = one_in;
    else if (kind == SIM_FLUSH_FAILED)
        faults.flush_fails = one_in;
    else
        faults.full = one_in;
    sim_tell("of the disk's calls, one in %u meets: %s", one_in, sim_event_texts[kind]);
    sim_disk_faults(&faults);
    struct sim_instance *instance = any_instance();
    if (sim_one_in(3) && sim_world.is.faults[SIM_KILL] && instance->state == SIM_UP) {
        sim_instance_kill(instance); /* it has to start while the disk is like that */
        sim_count(SIM_KILL);
        sim_instance_start(instance);
    }
    sim_sleep_us(1000 + sim_below(AS_LONG_AS_US));
    sim_disk_faults(&(struct sim_disk_faults){.slow = 0});
    sim_tell("the disk is well");
}

static void leap(struct sim_instance *instance)
{
    /* A lease ends by this clock. One that was granted during a leap stands until the clock is
     * there again, as the guard says: before the clients' patience ends. */
    const bool leases = sim_settings_lease_by_clock(&sim_world.is);
    int64_t us = (INT64_C(1000000) << sim_below(leases ? 3 : 13)) * (sim_one_in(2) ? 1 : -1);
    sim_tell("the clock of i%d leaps by %lld s", instance->number, (long long)us / 1000000);
    sim_wall_ahead_us[instance->group] += us;
    sim_count(SIM_CLOCK);
}

/* -- keys that are deleted --------------------------------------------------------------------- */

static void *free_lock(void *arg)
{
    sim_free_lock(arg);
    sim_wake(arg, INT32_MAX);
    return NULL;
}

/* The thread that holds the key stands still meanwhile. key "": of any item or account. */
static void delete_key(const char *key)
{
    const struct sim_settings *is = &sim_world.is;
    const bool item = sim_one_in(2);
    char *resource = calloc(1, DB_RESOURCE_MAX + 1);
    if (!resource)
        abort();
    if (strncmp(key, "lock:item:", 10) == 0 || strncmp(key, "lock:account:", 13) == 0)
        snprintf(resource, DB_RESOURCE_MAX + 1, "%s", key + strlen("lock:"));
    else
        snprintf(resource, DB_RESOURCE_MAX + 1, item ? "item:%u" : "account:u%u",
                 sim_below(item ? is->items : is->accounts));
    sim_spawn(SIM_WORLD, "operator", free_lock, resource);
    if (sim_group() != SIM_WORLD)
        sim_wait(resource, sim_now_us() + some_us());
}

/* -- faults at named points -------------------------------------------------------------------- */

void sim_harm(struct sim_instance *victim, enum sim_event kind, const char *key)
{
    if (kind == SIM_KILL)
        sim_instance_kill(victim);
    else if (kind == SIM_PAUSE)
        pause_one(victim);
    else if (kind == SIM_STALL)
        stall(victim);
    else if (kind == SIM_CLOCK)
        leap(victim);
    else if (kind == SIM_KEY_DELETED)
        delete_key(key);
}

static bool is_for_points(enum sim_event kind)
{
    return kind == SIM_KILL || kind == SIM_PAUSE || kind == SIM_STALL || kind == SIM_CLOCK ||
           kind == SIM_KEY_DELETED;
}

static void do_at_point(enum sim_event kind, struct sim_trap *trap)
{
    const int64_t until_us = sim_now_us() + TRAP_US;
    *trap = (struct sim_trap){
        .point = sim_any_point(), .passes = (1u << sim_below(4)) - 1, .kind = kind};
    while (trap->point && sim_now_us() < until_us && sim_world.clients_left > 0)
        sim_sleep_us(1000);
    trap->point = NULL;
    if (kind == SIM_KILL && trap->victim) {
        sim_count(SIM_KILL);
        restart(trap->victim);
    }
}

static void *change_guard(void *arg)
{
    const struct sim_settings *is = &sim_world.is;
    const bool item = sim_one_in(2);
    char id[16];
    (void)arg;
    snprintf(id, sizeof id, item ? "%u" : "u%u", sim_below(item ? is->items : is->accounts));
    if (sim_one_in(2)) {
        if (sim_patch(item, id, sim_one_in(3) ? is->guard : is->other_guard)) {
            sim_tell("%s %s goes on under another guard", item ? "item" : "account", id);
            sim_count(SIM_GUARD_PATCHED);
        }
        return NULL;
    }
    sim_put(item ? OP_PUT_ITEM : OP_PUT_ACCOUNT, id, item ? is->stock : is->balance,
            sim_one_in(3) ? "" : is->other_guard);
    sim_tell("%s %s begins anew, with another guard", item ? "item" : "account", id);
    sim_count(SIM_GUARD_CHANGED);
    return NULL;
}

static void do_one(enum sim_event kind, struct sim_trap *trap)
{
    if (is_for_points(kind) && (kind == SIM_STALL || sim_one_in(2))) {
        do_at_point(kind, trap);
        return;
    }
    switch (kind) {
    case SIM_KILL:
        kill_soon();
        return;
    case SIM_STOP:
        stop();
        return;
    case SIM_PAUSE:
        pause_one(any_instance());
        return;
    case SIM_POWER:
        cut_power();
        return;
    case SIM_ARCHIVED:
        move_rows();
        return;
    case SIM_CLOCK:
        leap(any_instance());
        return;
    case SIM_KEY_DELETED:
        delete_key("");
        return;
    case SIM_WRITE_FAILED:
    case SIM_FLUSH_FAILED:
    case SIM_DISK_FULL:
        spoil_disk(kind);
        return;
    case SIM_GUARD_CHANGED:
        sim_spawn(SIM_WORLD, "operator", change_guard, NULL);
        return;
    default:
        if (!sim_pg_fault(kind) && !sim_zk_fault(kind))
            sim_net_fault(kind);
        return;
    }
}

/* After a flush that failed the store takes no more writes until it is started again, as it says.
 */
static void restart_where_flushes_failed(void)
{
    if (sim_disk_counts()->flush_failures == 0)
        return;
    for (uint32_t i = 0; i < sim_world.is.instances; i++) {
        sim_instance_stop(&sim_world.instances[i]);
        sim_instance_start(&sim_world.instances[i]);
    }
}

/* The row of a dead holder of sql-unique-forever stays. An operator deletes those that stood at his
 * last look already, in the database: the service frees locks of items and accounts only. */
static void *free_rows(void *arg)
{
    static const char delete_them[] =
        "DELETE FROM lockkit_rows WHERE token IN (SELECT token FROM temp.stood)";
    static const char look[] =
        "CREATE TEMP TABLE IF NOT EXISTS stood (token);"
        "DELETE FROM temp.stood; INSERT INTO temp.stood SELECT token FROM lockkit_rows";
    sqlite3 *locks = NULL;
    (void)arg;
    if (!sim_world.is.lock_postgres &&
        sqlite3_open_v2(sim_lock_store, &locks, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        abort();
    for (;;) {
        sim_sleep_us(FOREVER_US);
        size_t n = 0;
        if (!locks)
            n = sim_pg_free_rows();
        else if (sqlite3_exec(locks, delete_them, NULL, NULL, NULL) == SQLITE_OK)
            n = (size_t)sqlite3_changes(locks);
        if (locks) /* busy: they are deleted later */
            sqlite3_exec(locks, look, NULL, NULL, NULL);
        if (n > 0)
            sim_count(SIM_ROW_FREED);
    }
    return NULL;
}

static void heal(void)
{
    sim_disk_faults(&(struct sim_disk_faults){.slow = 0});
    sim_points_begin();
    for (uint32_t i = 0; i < sim_world.is.instances; i++) {
        struct sim_instance *instance = &sim_world.instances[i];
        sim_pause(instance->group, 0);
        instance->kill_in = 0;
        if (instance->state == SIM_DOWN)
            sim_instance_start(instance);
    }
    sim_net_heal();
    sim_zk_heal();
    restart_where_flushes_failed();
    if (sim_world.is.n_faults > 0 && strcmp(sim_world.is.guard, "sql-unique-forever") == 0)
        sim_spawn(SIM_WORLD, "operator", free_rows, NULL);
    sim_world.healed = true;
    sim_world.healed_us = sim_now_us();
    sim_tell("all is healed");
}

/* The lock's own server fails twice as often as others, and so do commits. */
static bool is_drawn_twice(int kind)
{
    return (kind >= SIM_REDIS_AWAY && kind <= SIM_REDIS_SPLIT) ||
           (kind >= SIM_CLUSTER_SLOT && kind <= SIM_CLUSTER_ROLL) ||
           (kind >= SIM_MEMCACHED_AWAY && kind <= SIM_MEMCACHED_FLUSH) || kind == SIM_PG_CUT ||
           kind == SIM_ARCHIVED;
}

static void *hand(void *arg)
{
    enum sim_event kinds[2 * SIM_EVENTS];
    uint32_t n = 0;
    for (int i = 0; i < SIM_EVENTS; i++)
        if (sim_world.is.faults[i] && i != SIM_GAVE_UP) {
            kinds[n++] = (enum sim_event)i;
            if (is_drawn_twice(i))
                kinds[n++] = (enum sim_event)i;
        }
    for (uint32_t i = 0; n > 0 && i < sim_world.is.n_faults && sim_world.clients_left > 0; i++) {
        sim_sleep_us(INT64_C(1) << sim_below(18));
        do_one(kinds[sim_below(n)], arg);
    }
    return NULL;
}

void sim_nemesis(void)
{
    struct sim_fiber *hands[SIM_HANDS_MAX];
    sim_at_step = at_step;
    for (uint32_t i = 0; i < sim_world.is.hands; i++)
        hands[i] = sim_spawn(SIM_WORLD, "hand", hand, &sim_traps[i]);
    for (uint32_t i = 0; i < sim_world.is.hands; i++)
        while (!sim_ended(hands[i], NULL))
            sim_wait(hands[i], SIM_FOREVER);
    heal();
}
