#include "sim_fence.h"
#include "db.h"
#include "sim_world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A fenced write. */
struct landed {
    struct landed *next;
    char resource[DB_ID_MAX + 16], guard[DB_GUARD_MAX + 1];
    int64_t epoch, fence, read, written; /* versions */
};

/* A work that is handed to the store. One of a killed instance stays, and is not looked at. */
struct watched {
    struct watched *next;
    db_work *work;
    void *arg;
    db_tx *tx; /* while it runs */
    struct landed *writes;
};

static struct watched *works;  /* the newest first */
static struct landed *commits; /* the newest first */

void __real_db_run_many(db *store, db_job *jobs, size_t n);
void __wrap_db_run_many(db *store, db_job *jobs, size_t n);
db_status __real_db_tx_put_item(db_tx *tx, const db_item *row, const db_put *how);
db_status __wrap_db_tx_put_item(db_tx *tx, const db_item *row, const db_put *how);
db_status __real_db_tx_put_account(db_tx *tx, const db_account *row, const db_put *how);
db_status __wrap_db_tx_put_account(db_tx *tx, const db_account *row, const db_put *how);
db_status __real_db_tx_put_order(db_tx *tx, const db_order *row, const db_put *how);
db_status __wrap_db_tx_put_order(db_tx *tx, const db_order *row, const db_put *how);

static void forget(struct landed **list)
{
    while (*list != NULL) {
        struct landed *first = *list;
        *list = first->next;
        free(first);
    }
}

void sim_fence_begin(void)
{
    works = NULL;
    commits = NULL;
}

void sim_fence_power_cut(void)
{
    if (sim_world.is.sync_normal)
        forget(&commits);
}

/* -- judging ----------------------------------------------------------------------------------- */

static void compare(const struct landed *one, const struct landed *other)
{
    if (one->epoch != other->epoch || strcmp(one->resource, other->resource) != 0)
        return;
    const struct landed *first = one->read <= other->read ? one : other;
    const struct landed *last = first == one ? other : one;
    if (last->read < first->written)
        sim_broken("a fenced write landed on another state than its holder read: %s, versions "
                   "%" PRId64 " to %" PRId64 " by fence %" PRId64 ", %" PRId64 " to %" PRId64
                   " by fence %" PRId64,
                   one->resource, first->read, first->written, first->fence, last->read,
                   last->written, last->fence);
    else if (last->fence < first->fence && strcmp(first->guard, last->guard) == 0)
        sim_broken("a fenced write landed after a newer holder's: %s, version %" PRId64
                   " by fence %" PRId64 ", then %" PRId64 " by fence %" PRId64,
                   one->resource, first->written, first->fence, last->written, last->fence);
}

/* It lands with those that were committed before it, whatever order they are told in. */
static void land(struct watched *watched)
{
    while (watched->writes != NULL) {
        struct landed *one = watched->writes;
        watched->writes = one->next;
        for (const struct landed *other = commits; other != NULL; other = other->next)
            compare(one, other);
        one->next = commits;
        commits = one;
        sim_world.result->events[SIM_FENCED]++;
    }
}

/* -- seeing ------------------------------------------------------------------------------------ */

static db_status saw(db_tx *tx, const char *kind, const char *id, const char *guard, int64_t epoch,
                     int64_t written, const db_put *how, db_status status)
{
    struct watched *watched = works;
    while (watched != NULL && watched->tx != tx)
        watched = watched->next;
    struct landed *one =
        status == DB_OK && how->fence > 0 && watched != NULL ? calloc(1, sizeof *one) : NULL;
    if (one == NULL)
        return status;
    snprintf(one->resource, sizeof one->resource, "%s:%s", kind, id);
    snprintf(one->guard, sizeof one->guard, "%s", guard);
    one->epoch = epoch;
    one->fence = how->fence;
    one->read = how->expected_version;
    one->written = written;
    one->next = watched->writes;
    watched->writes = one;
    return status;
}

db_status __wrap_db_tx_put_item(db_tx *tx, const db_item *row, const db_put *how)
{
    const db_status status = __real_db_tx_put_item(tx, row, how);
    return saw(tx, "item", row->id, row->guard, row->epoch, row->version, how, status);
}

db_status __wrap_db_tx_put_account(db_tx *tx, const db_account *row, const db_put *how)
{
    const db_status status = __real_db_tx_put_account(tx, row, how);
    return saw(tx, "account", row->id, row->guard, row->epoch, row->version, how, status);
}

db_status __wrap_db_tx_put_order(db_tx *tx, const db_order *row, const db_put *how)
{
    const char *guard = how->item_guard != NULL ? how->item_guard : "";
    const db_status status = __real_db_tx_put_order(tx, row, how);
    return saw(tx, "order", row->id, guard, 0, row->version, how, status);
}

/* It may run again: what it did before was undone. */
static db_status run_watched(db_tx *tx, void *arg)
{
    struct watched *watched = arg;
    forget(&watched->writes);
    watched->tx = tx;
    const db_status status = watched->work(tx, watched->arg);
    watched->tx = NULL;
    return status;
}

static void drop(struct watched *watched)
{
    struct watched **at = &works;
    while (*at != watched)
        at = &(*at)->next;
    *at = watched->next;
    forget(&watched->writes);
    free(watched);
}

void __wrap_db_run_many(db *store, db_job *jobs, size_t n)
{
    struct watched *watched[DB_JOBS_MAX];
    for (size_t i = 0; i < n; i++) {
        if ((watched[i] = calloc(1, sizeof *watched[i])) == NULL)
            abort();
        *watched[i] = (struct watched){.next = works, .work = jobs[i].work, .arg = jobs[i].arg};
        works = watched[i];
        jobs[i].work = run_watched;
        jobs[i].arg = watched[i];
    }
    __real_db_run_many(store, jobs, n);
    for (size_t i = 0; i < n; i++) {
        jobs[i].work = watched[i]->work;
        jobs[i].arg = watched[i]->arg;
        if (jobs[i].status == DB_OK)
            land(watched[i]);
        drop(watched[i]);
    }
}
