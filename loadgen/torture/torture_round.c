#include "torture_round.h"
#include "steady.h"
#include "torture_archive.h"
#include "torture_clients.h"
#include "torture_faults.h"
#include "torture_pace.h"
#include "torture_store.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TICK_MS = 5,
    HEAL_MS = 60000,     /* until all servers run again */
    PROGRESS_MS = 60000, /* then until all clients are served, on an idle machine */
    STUCK_MS = 3000,     /* the same where no progress is claimed */
    SET_UP_MS = 20000
};

struct run {
    struct torture_world *world;
    struct torture_round *round;
    struct torture_sums *sums;
    volatile sig_atomic_t *stop;
    struct torture_clients clients;
    char dir[TORTURE_PATH_MAX], books[TORTURE_PATH_MAX + 16];
    bool struck[TORTURE_STRIKES_MAX], healed[TORTURE_STRIKES_MAX];
    int64_t demanded_ms; /* so long all clients could have been served */
};

/* -- set-up ------------------------------------------------------------------------------------ */

/* The version stands in the store alone. */
static void take_number(void *ctx, const char *const *columns)
{
    *(int64_t *)ctx = columns[0] != NULL ? strtoll(columns[0], NULL, 10) : -1;
}

static int put(struct run *run, const char *kind, const char *id, const char *body, int64_t initial,
               int64_t limit)
{
    char path[64], resource[64], sql[128], *answer = NULL, message[400];
    int64_t version = -1;
    snprintf(path, sizeof path, "/v1/%ss/%s", kind, id);
    int status = load_put(NULL, &run->world->targets[0], path, "", body, SET_UP_MS, &answer);
    const bool done = status == 200 || status == 201;
    if (!done)
        fprintf(stderr, "torture: PUT %s: %d %s\n", path, status, answer != NULL ? answer : "");
    free(answer);
    struct torture_store *store = torture_store_open(run->world->store, message, sizeof message);
    snprintf(sql, sizeof sql, "SELECT version FROM %ss WHERE id = '%s'", kind, id);
    if (store != NULL)
        torture_store_ask(store, sql, take_number, &version, message, sizeof message);
    torture_store_close(store);
    snprintf(resource, sizeof resource, "%s:%s", kind, id);
    history_resource(run->clients.books, resource, initial, version, limit);
    return done && version >= 0 ? 0 : -1;
}

static int put_all(struct run *run)
{
    const struct torture_settings *is = &run->round->plan.is;
    char id[16], body[160];
    for (uint32_t i = 0; i < is->items; i++) {
        snprintf(id, sizeof id, "i%u", i);
        snprintf(body, sizeof body,
                 "{\"stock\":%u,\"price\":7,\"per_user_limit\":%u,\"reserve_s\":86400}", is->stock,
                 is->limit);
        if (put(run, "item", id, body, is->stock, is->limit) != 0)
            return -1;
    }
    for (uint32_t i = 0; i < is->accounts; i++) {
        snprintf(id, sizeof id, "u%u", i);
        snprintf(body, sizeof body, "{\"balance\":%u}", is->balance);
        if (put(run, "account", id, body, is->balance, 0) != 0)
            return -1;
    }
    return 0;
}

static int write_plan(const struct run *run)
{
    char path[TORTURE_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/plan.txt", run->dir);
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return -1;
    torture_plan_print(&run->round->plan, file);
    return fclose(file);
}

/* Only what rounds leave lies there: no folders. */
static void remove_dir(const struct run *run)
{
    char pattern[TORTURE_PATH_MAX + 4];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "%s/*", run->dir);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
    globfree(&found);
    rmdir(run->dir);
}

static int make_dir(struct run *run, const char *dir)
{
    snprintf(run->dir, sizeof run->dir, "%.400s/seed-%" PRIu64, dir, run->round->plan.seed);
    snprintf(run->books, sizeof run->books, "%s/books.jsonl", run->dir);
    remove_dir(run);
    if (mkdir(run->dir, 0755) == 0 && write_plan(run) == 0)
        return 0;
    fprintf(stderr, "torture: cannot make %s: %s\n", run->dir, strerror(errno));
    return -1;
}

/* -- faults and heal --------------------------------------------------------------------------- */

static void strike(struct run *run, int i)
{
    const struct torture_strike *one = &run->round->plan.strikes[i];
    run->struck[i] = true;
    run->sums->strikes++;
    if (!torture_strike(run->world, one)) {
        run->healed[i] = true;
        return;
    }
    run->round->bitten++;
    torture_sums_count(run->sums, &run->round->plan.is, one->fault);
    run->sums->paused_holders += one->fault == TORTURE_PAUSE && torture_lock_stands(run->world);
}

/* Heals what is due; with all, whatever is not healed. True: nothing is left. */
static bool heal(struct run *run, int64_t now_ms, bool all)
{
    bool done = true;
    for (int i = 0; i < run->round->plan.n_strikes; i++) {
        const struct torture_strike *one = &run->round->plan.strikes[i];
        if (!run->struck[i] || run->healed[i])
            continue;
        if (all || now_ms >= (int64_t)one->at_ms + one->for_ms)
            run->healed[i] = torture_unstrike(run->world, one);
        done = done && run->healed[i];
    }
    return done;
}

static void let_faults_strike(struct run *run)
{
    const struct torture_plan *plan = &run->round->plan;
    int64_t start_ms = steady_ms(), now_ms = 0;
    for (int next = 0; now_ms < plan->is.faults_ms && !*run->stop;
         now_ms = steady_ms() - start_ms) {
        while (next < plan->n_strikes && plan->strikes[next].at_ms <= now_ms)
            strike(run, next++);
        heal(run, now_ms, false);
        torture_world_tick(run->world, steady_us());
        steady_sleep_ms(TICK_MS);
    }
}

/* Returns 0, or -1 when a server does not come back. A minority is left broken once all run: with
 * it dead, and others down, a restarted server would wait for a majority that nobody completes. */
static int heal_all(struct run *run)
{
    int64_t until_ms = steady_ms() + HEAL_MS;
    while (steady_ms() < until_ms) {
        bool servers = torture_world_heal(run->world);
        if (!heal(run, 0, true) || !servers) {
            steady_sleep_ms(TICK_MS);
            continue;
        }
        if (run->round->plan.is.leave_broken)
            torture_leave_broken(run->world);
        return 0;
    }
    fprintf(stderr, "torture: not everything could be started again\n");
    return -1;
}

/* A machine that is busy with other work is given more time. */
static bool is_over(const struct run *run, const struct torture_pace *pace, int64_t took_ms)
{
    if (!run->round->plan.is.claims_progress)
        return took_ms >= STUCK_MS;
    return took_ms >= PROGRESS_MS && (double)took_ms >= PROGRESS_MS * torture_slowdown(pace);
}

/* All clients must be served, and nothing may end by itself. */
static void demand_progress(struct run *run)
{
    struct torture_pace pace;
    const int64_t start_ms = steady_ms();
    torture_pace_begin(&pace);
    atomic_store(&run->clients.phase, TORTURE_HEALED);
    while (atomic_load(&run->clients.busy) > 0 && !is_over(run, &pace, run->demanded_ms) &&
           !*run->stop) {
        torture_world_tick(run->world, steady_us());
        steady_sleep_ms(TICK_MS);
        run->demanded_ms = steady_ms() - start_ms;
    }
}

/* -- the judgement ----------------------------------------------------------------------------- */

static void write_row(void *ctx, const char *const *columns)
{
    fprintf(ctx, "%s %s %s %s %s %s %s %s %s\n", columns[0], columns[1], columns[2], columns[3],
            columns[4], columns[5], columns[6], columns[7], columns[8]);
}

/* What a failed round leaves: its finding, and the rows of the ledger. */
static void write_verdict(const struct run *run)
{
    char path[TORTURE_PATH_MAX + 16], message[400];
    snprintf(path, sizeof path, "%s/verdict.txt", run->dir);
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return;
    fprintf(file, "%s\n\nid resource version_before txn_id delta before after fence instance\n",
            run->round->verdict.first);
    struct torture_store *store = torture_store_open(run->world->store, message, sizeof message);
    if (store != NULL)
        torture_store_ask(
            store,
            "SELECT id, resource, version_before, txn_id, delta, before, after, fence,"
            " instance FROM ledger ORDER BY id",
            write_row, file, message, sizeof message);
    torture_store_close(store);
    fclose(file);
}

/* What was archived meanwhile comes to its end first. *ret: the file; "" if there is none. */
static void end_archive(struct run *run, char *ret, size_t size)
{
    struct torture_archive *archive = &run->world->archive;
    ret[0] = '\0';
    if (!archive->begun)
        return;
    const char *why = torture_archive_finish(run->world, run->round->plan.is.claims_safe);
    snprintf(ret, size, "%s/archive.db", run->dir);
    if (why != NULL && run->world->why[0] == '\0')
        snprintf(run->world->why, sizeof run->world->why, "%s", why);
    run->sums->archives += archive->ended;
    run->sums->archives_killed += archive->killed;
    run->sums->archives_failed += archive->failed;
    run->sums->archives_resumed += archive->resumed;
}

static void judge(struct run *run, int late)
{
    char archive[TORTURE_PATH_MAX + 16];
    const char *why = run->world->why;
    struct torture_verdict *verdict = &run->round->verdict;
    const struct torture_settings *is = &run->round->plan.is;
    end_archive(run, archive, sizeof archive);
    torture_judge(run->books, run->world->store, archive[0] != '\0' ? archive : NULL,
                  is->claims_safe, verdict);
    if (late > 0 && is->claims_progress)
        torture_verdict_violation(
            verdict,
            "%d clients were not served within %d s of the heal, which are %d s of an idle machine",
            late, (int)(run->demanded_ms / 1000), PROGRESS_MS / 1000);
    if (why[0] != '\0')
        torture_verdict_violation(verdict, "%s", why);
    if (verdict->violations > 0)
        write_verdict(run);
}

static int torture_and_judge(struct run *run)
{
    int failed = torture_clients_start(&run->clients, run->round->plan.seed);
    if (failed == 0)
        let_faults_strike(run);
    if (failed == 0 && !*run->stop && (failed = heal_all(run)) == 0)
        demand_progress(run);
    int late = atomic_load(&run->clients.busy);
    torture_clients_join(&run->clients);
    torture_world_end_round(run->world);
    if (history_close(run->clients.books) != 0) {
        fprintf(stderr, "torture: cannot write %s\n", run->books);
        failed = -1;
    }
    if (failed == 0 && !*run->stop)
        judge(run, late);
    return failed != 0 || *run->stop ? -1 : 0;
}

int torture_round_run(struct torture_world *world, struct torture_round *round, const char *dir,
                      bool keep, struct torture_sums *sums, volatile sig_atomic_t *stop)
{
    struct run *run = calloc(1, sizeof *run);
    int64_t start_ms = steady_ms();
    int result = -1;
    if (run == NULL)
        return -1;
    run->world = world;
    run->round = round;
    run->sums = sums;
    run->stop = stop;
    run->clients.is = &round->plan.is;
    run->clients.targets = world->targets;
    if (make_dir(run, dir) == 0 && torture_world_prepare(world, &round->plan, run->dir) == 0 &&
        history_create(run->books, &run->clients.books) == 0) {
        history_run(run->clients.books, "torture", round->plan.is.guard->name, "torture",
                    round->plan.seed);
        if (put_all(run) == 0)
            result = torture_and_judge(run);
        else
            history_close(run->clients.books);
    }
    torture_world_end_round(world);
    torture_world_drop(world);
    round->took_ms = steady_ms() - start_ms;
    torture_sums_failovers(sums, &round->plan.is, world->failovers);
    sums->seconds += round->took_ms / 1000;
    if (result == 0)
        torture_sums_verdict(sums, &round->plan.is, &round->verdict);
    if (result == 0 && round->verdict.violations == 0 && !keep)
        remove_dir(run);
    free(run);
    return result;
}

void torture_round_print(const struct torture_round *round, FILE *out)
{
    const struct torture_verdict *verdict = &round->verdict;
    const char *word = verdict->violations > 0      ? "BROKEN"
                       : verdict->losses > 0        ? "loses"
                       : round->plan.is.claims_safe ? "holds"
                                                    : "luck";
    fprintf(out, "%-6s %6" PRIu64 "  ", word, round->plan.seed);
    torture_settings_print(&round->plan.is, out);
    fprintf(out, "  %5" PRId64 " answers %3d faults %5.1f s\n", verdict->decided, round->bitten,
            (double)round->took_ms / 1000);
    if (verdict->violations > 0)
        fprintf(out, "       %s\n", verdict->first);
}
