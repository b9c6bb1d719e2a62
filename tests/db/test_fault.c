/* The Nth write fails or kills the process, for every N. The store stays consistent, reports the
 * truth, and works again when the disk does. */
#include "child.h"
#include "fault_vfs.h"
#include "gate.h"

#include <sys/mman.h>

enum { CHANGES = 6, N_MAX = 2000 };

static const db_put any = {.expected_version = -1};

static int folder_setup(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    assert_non_null(fixture);
    *fixture = fixture_folder();
    *state = fixture;
    return 0;
}

static db_status change(struct fixture *fixture, int i, db_error *error)
{
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    struct change change = {.delta = -1, .txn_id = key, .how = any, .with_answer = true};
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &change.account));
    return db_run(fixture->store, work_change, &change, error);
}

static void expect_whole(struct fixture *fixture, int changes)
{
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_true(row.ok);
    assert_int_equal(1000 - changes, row.current);
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT integrity_check = 'ok'"
                                                 " FROM pragma_integrity_check"));
}

/* After a failed flush, a shared file must be opened again. */
static void change_again(struct fixture *fixture, const db_options *options, int i)
{
    db_error error = {0};
    if (change(fixture, i, &error) == DB_OK)
        return;
    assert_true(options->shared_file);
    assert_non_null(strstr(error.message, "a flush failed"));
    assert_int_equal(DB_FAILED, db_ping(fixture->store));
    fixture_close(fixture);
    fixture_open(fixture, options);
    assert_int_equal(DB_OK, change(fixture, i, NULL));
}

/* Runs a store whose Nth call fails. False: there was no Nth call. */
static bool live_with_fault(struct fixture *fixture, const db_options *options,
                            struct fault_plan plan, int n, int *ret_unknown)
{
    fixture_open(fixture, options);
    fixture_account(fixture, "a", 1000);
    fault_arm(plan, n);
    for (int i = 0; i < CHANGES; i++) {
        db_error error = {0};
        db_status status = change(fixture, i, &error);
        if (status == DB_OK) {
            assert_true(fixture_is_stored(fixture, i));
            continue;
        }
        const db_status undone = plan.kind == FAULT_FULL ? DB_FULL : DB_FAILED;
        assert_true(status == undone || status == DB_UNKNOWN);
        assert_int_equal(status, error.status);
        assert_non_null(strstr(error.message, fixture->file));
        *ret_unknown += status == DB_UNKNOWN;
        fault_heal();
        if (status == undone)
            assert_false(fixture_is_stored(fixture, i));
        if (!fixture_is_stored(fixture, i)) /* works again if there is space */
            change_again(fixture, options, i);
    }
    fixture_close(fixture); /* its checkpoint may fail: then the log stays */
    fault_heal();
    bool fired = fault_fired > 0;
    fixture_open(fixture, options);
    for (int i = 0; i < CHANGES; i++)
        assert_true(fixture_is_stored(fixture, i));
    expect_whole(fixture, CHANGES);
    fixture_close(fixture);
    fixture_sql(fixture, "DELETE FROM idempotency");
    return fired;
}

static int live_with_every_fault(struct fixture *fixture, const db_options *options,
                                 struct fault_plan plan)
{
    int unknown = 0, n = 1;
    int step = options->shared_file ? full_or(1, 4) : 1; /* many slow flushes */
    bool gathered = !options->shared_file;               /* one write for a commit's frames */
    while (live_with_fault(fixture, options, plan, n, &unknown))
        assert_true((n += step) < N_MAX);
    assert_true(n > (gathered ? 1 : 3) * CHANGES); /* real writes have failed */
    if (gathered && plan.kind == FAULT_FULL)       /* only writes are counted then */
        assert_true(n < 3 * CHANGES);
    return unknown;
}

static const db_options syncs[] = {{.sync = DB_SYNC_FULL}, {.sync = DB_SYNC_NORMAL}};

TEST_FIXTURE(folder_setup, fixture_teardown);

TEST_THAT(an_error_at_any_write_undoes_that_run_only)
{
    for (int i = 0; i < 4; i++) {
        struct fault_plan plan = {.kind = FAULT_IO, .after = i % 2};
        assert_int_equal(0, live_with_every_fault(*state, &syncs[i / 2], plan));
    }
}

TEST_THAT(a_full_disk_at_any_write_is_survived)
{
    struct fault_plan plan = {.kind = FAULT_FULL, .sticky = true};
    for (int i = 0; i < 2; i++)
        assert_int_equal(0, live_with_every_fault(*state, &syncs[i], plan));
}

TEST_THAT(a_store_that_cannot_be_written_does_not_answer_a_ping)
{
    struct fixture *fixture = *state;
    fixture_open(fixture, &syncs[0]);
    fixture_account(fixture, "a", 1000);
    fault_arm((struct fault_plan){.kind = FAULT_FULL, .sticky = true}, 1);
    assert_int_equal(DB_OK, db_ping(fixture->store)); /* no write has failed yet */
    assert_int_equal(DB_FULL, change(fixture, 0, NULL));
    assert_int_equal(DB_FULL, db_ping(fixture->store));
    assert_int_equal(DB_FULL, db_ping(fixture->store));
    fault_heal();
    assert_int_equal(DB_OK, db_ping(fixture->store));
    assert_int_equal(DB_OK, change(fixture, 0, NULL));
    assert_int_equal(DB_OK, db_ping(fixture->store));
    fixture_close(fixture);
}

TEST_THAT(a_dead_disk_may_leave_the_outcome_unknown_but_never_wrong)
{
    struct fault_plan plan = {.kind = FAULT_IO, .after = true, .sticky = true};
    for (int i = 0; i < 2; i++)
        assert_true(live_with_every_fault(*state, &syncs[i], plan) > 0);
}

TEST_THAT(a_shared_file_survives_errors_at_any_write)
{
    struct fault_plan plan = {.kind = FAULT_IO};
    live_with_every_fault(*state, &(db_options){.shared_file = true}, plan);
    plan = (struct fault_plan){.kind = FAULT_FULL, .sticky = true};
    assert_int_equal(0, live_with_every_fault(*state, &(db_options){.shared_file = true}, plan));
}

/* -- a whole group ------------------------------------------------------------------------------
 */

enum { CALLERS = 8 };

struct caller {
    pthread_t thread;
    struct fixture *fixture;
    struct change change;
    char id[16];
    db_status status;
    db_error error;
};

static void *caller_main(void *arg)
{
    struct caller *caller = arg;
    caller->status = db_run(caller->fixture->store, work_change, &caller->change, &caller->error);
    return NULL;
}

TEST_THAT(a_commit_that_fails_fails_the_whole_group)
{
    struct fixture *fixture = *state;
    struct caller callers[CALLERS];
    struct gate gate;
    fixture_open(fixture, NULL);
    for (int i = 0; i < CALLERS; i++) {
        snprintf(callers[i].id, sizeof callers[i].id, "a%d", i);
        callers[i].fixture = fixture;
        callers[i].change = (struct change){.account = fixture_account(fixture, callers[i].id, 10),
                                            .delta = -1,
                                            .txn_id = callers[i].id,
                                            .how = any,
                                            .with_answer = true};
    }
    gate_close(&gate, fixture->store);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(0, pthread_create(&callers[i].thread, NULL, caller_main, &callers[i]));
    gate_wait_for(&gate, CALLERS);
    fault_arm((struct fault_plan){.kind = FAULT_FULL}, 1);
    gate_open(&gate);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i].thread, NULL);
    assert_int_equal(1, fault_fired);
    for (int i = 0; i < CALLERS; i++) {
        db_answer answer;
        assert_int_equal(DB_FULL, callers[i].status);
        assert_non_null(strstr(callers[i].error.message, "full"));
        assert_int_equal(DB_NOT_FOUND, db_read_answer(fixture->reader, callers[i].id, &answer));
        assert_int_equal(DB_OK, db_run(fixture->store, work_change, &callers[i].change, NULL));
    }
}

static db_status change_and_refuse(db_tx *tx, void *arg)
{
    db_status status = work_change(tx, arg);
    return status == DB_OK ? DB_REFUSED : status;
}

TEST_THAT(of_a_commit_of_unknown_outcome_what_was_undone_before_is_known)
{
    struct fixture *fixture = *state;
    struct change changes[2] = {{.txn_id = "kept"}, {.txn_id = "undone"}};
    db_job jobs[2];
    db_answer answer;
    fixture_open(fixture, NULL);
    for (int i = 0; i < 2; i++) {
        changes[i].account = fixture_account(fixture, changes[i].txn_id, 10);
        changes[i].delta = -1;
        changes[i].how = any;
        changes[i].with_answer = true;
        jobs[i] = (db_job){.work = i == 0 ? work_change : change_and_refuse, .arg = &changes[i]};
    }
    fault_arm((struct fault_plan){.kind = FAULT_IO, .after = true, .sticky = true}, 1);
    db_run_many(fixture->store, jobs, 2);
    assert_int_equal(DB_UNKNOWN, jobs[0].status);
    assert_int_equal(DB_FAILED, jobs[1].status);
    assert_int_equal(DB_NOT_FOUND, db_read_answer(fixture->reader, "undone", &answer));
    /* The outcome cannot be decided while the disk fails. Once decided, the undone change does not
     * return after a crash. */
    assert_true(db_settle(fixture->store, &jobs[0].commit_id, 0, NULL) != DB_OK);
    fault_heal();
    assert_int_equal(DB_OK, db_settle(fixture->store, &jobs[0].commit_id, 0, NULL));
    assert_int_equal(DB_NOT_FOUND, db_read_answer(fixture->reader, "kept", &answer));
    char crashed[sizeof fixture->file + 16], command[5 * sizeof crashed];
    snprintf(crashed, sizeof crashed, "%s/crash.db", fixture->folder);
    snprintf(command, sizeof command, "cp '%s' '%s' && cp '%s-wal' '%s-wal'", fixture->file,
             crashed, fixture->file, crashed);
    assert_int_equal(system(command), 0);
    struct fixture again = *fixture;
    snprintf(again.url, sizeof again.url, "sqlite:%.80s", crashed);
    fixture_open(&again, NULL);
    assert_int_equal(DB_NOT_FOUND, db_read_answer(again.reader, "kept", &answer));
    fixture_close(&again);
}

/* -- killed at every write ------------------------------------------------------------------------
 */

struct doomed {
    struct fixture *fixture;
    db_options options;
    struct fault_plan plan;
    int n;
    atomic_bool *go;
};

static int change_until_killed(void *arg, int report)
{
    struct doomed *doomed = arg;
    struct fixture *fixture = doomed->fixture;
    while (!atomic_load(doomed->go))
        sched_yield();
    fault_arm(doomed->plan, doomed->n);
    fixture_open(fixture, &doomed->options);
    for (int i = 0; i < CHANGES; i++) {
        if (change(fixture, i, NULL) != DB_OK)
            return 1;
        child_say(report, (char)i);
    }
    fixture_close(fixture);
    return 0;
}

/* Returns whether the child was killed. Another sharer has the file open meanwhile and reads first.
 */
static bool die_at(struct fixture *fixture, struct doomed *doomed)
{
    fixture_open(fixture, &doomed->options);
    fixture_account(fixture, "a", 1000);
    fixture_close(fixture);
    atomic_store(doomed->go, false);
    struct child child = child_start(change_until_killed, doomed);
    bool shared = doomed->options.shared_file;
    if (shared)
        fixture_open(fixture, &doomed->options);
    atomic_store(doomed->go, true);
    int acknowledged = 0;
    for (char heard; child_hear(&child, &heard);)
        acknowledged = heard + 1;
    int status = child_reap(&child);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    if (!shared)
        fixture_open(fixture, &doomed->options);
    int stored = 0;
    while (stored < CHANGES && fixture_is_stored(fixture, stored))
        stored++;
    assert_in_range(stored, acknowledged, acknowledged + 1);
    expect_whole(fixture, stored);
    fixture_close(fixture);
    fixture_sql(fixture, "DELETE FROM idempotency");
    return WIFSIGNALED(status);
}

static void die_at_every_write(struct fixture *fixture, bool shared, bool after, int step)
{
    struct doomed doomed = {.fixture = fixture,
                            .options = {.shared_file = shared},
                            .plan = {.kind = FAULT_KILL, .after = after},
                            .n = 1};
    doomed.go =
        mmap(NULL, sizeof *doomed.go, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(doomed.go != MAP_FAILED);
    while (die_at(fixture, &doomed))
        assert_true((doomed.n += step) < N_MAX);
    assert_true(doomed.n > 3 * CHANGES);
    munmap(doomed.go, sizeof *doomed.go);
}

TEST_THAT(kill_9_at_any_write_loses_no_answered_change)
{
    die_at_every_write(*state, false, false, full_or(1, 3));
    die_at_every_write(*state, false, true, full_or(1, 3));
}

TEST_THAT(kill_9_of_a_sharer_at_any_write_is_repaired_by_the_other)
{
    die_at_every_write(*state, true, false, full_or(1, 7));
    die_at_every_write(*state, true, true, full_or(1, 7));
}

int main(void)
{
    if (fault_install() != SQLITE_OK)
        return 1;
    return tests_run();
}
