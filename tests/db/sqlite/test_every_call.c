/* Every system call of a store fails, once or for ever, with each error: while it is made, read,
 * written and audited, and while it is recovered after an abnormal end. Nothing answered is lost,
 * nothing refused is there, what was interrupted or short is done nevertheless, and the store works
 * again when the disk does. */
#include "faulty_calls.h"
#include "fixture.h"

#include <stdio.h>

enum { CHANGES = 4, TRIES = 3, N_MAX = 4000 };

static const db_put any = {.expected_version = -1};

/* What a store has said of the change with that number. */
enum outcome { NEVER_TRIED, ANSWERED, UNDONE, UNDECIDED };

struct life {
    struct fixture *fixture;
    const db_options *options;
    bool must_succeed; /* whatever fails, SQLite tries again */
    enum outcome outcomes[CHANGES];
};

/* In memory: the calls count, not the disk. */
static int folder_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    strcpy(fixture->folder, "/dev/shm/test-db-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->file, sizeof fixture->file, "%s/store.db", fixture->folder);
    snprintf(fixture->url, sizeof fixture->url, "sqlite:%s", fixture->file);
    *state = fixture;
    return 0;
}

/* The call that was to fail has failed: the disk is well again. */
static void must_be_due(const struct life *life, const char *what, const db_error *error)
{
    if (atomic_load(&calls_failed) == 0 || life->must_succeed)
        fail_msg("%s: %s", what, error->message);
    assert_string_not_equal(error->message, "");
    calls_heal();
}

/* -- one life -----------------------------------------------------------------------------------
 */

static void open_store(struct life *life)
{
    struct fixture *fixture = life->fixture;
    db_options options = *life->options;
    db_error error = {0};
    options.url = fixture->url;
    if (db_open(&options, &fixture->store, &error) != DB_OK) {
        must_be_due(life, "db_open", &error);
        if (db_open(&options, &fixture->store, &error) != DB_OK)
            fail_msg("db_open, once the disk is well: %s", error.message);
    }
    if (db_reader_open(fixture->store, &fixture->reader, &error) != DB_OK) {
        must_be_due(life, "db_reader_open", &error);
        assert_int_equal(DB_OK, db_reader_open(fixture->store, &fixture->reader, &error));
    }
}

static void close_store(struct life *life)
{
    fixture_close(life->fixture);
}

/* A store that says so is opened again: a flush of a shared file failed. */
static void open_again_if_asked(struct life *life, const db_error *error)
{
    if (strstr(error->message, "a flush failed") == NULL)
        return;
    assert_true(life->options->shared_file);
    close_store(life);
    open_store(life);
}

static void read_account(struct life *life, db_account *ret)
{
    db_status status = db_read_account(life->fixture->reader, "a", ret);
    db_error error = {.status = status, .message = "db_read_account"};
    if (status == DB_OK)
        return;
    assert_int_not_equal(status, DB_NOT_FOUND);
    must_be_due(life, "db_read_account", &error);
    assert_int_equal(DB_OK, db_read_account(life->fixture->reader, "a", ret));
}

static void make_account(struct life *life)
{
    db_account account = {.id = "a", .initial_balance = 1000};
    db_error error = {0};
    for (int i = 0; db_run(life->fixture->store, work_reset_account, &account, &error) != DB_OK;
         i++) {
        if (i == TRIES)
            fail_msg("reset of an account: %s", error.message);
        must_be_due(life, "reset of an account", &error);
        open_again_if_asked(life, &error);
    }
}

static db_status change_once(struct life *life, int i, db_error *error)
{
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    struct change change = {.delta = -1, .txn_id = key, .how = any, .with_answer = true};
    read_account(life, &change.account);
    return db_run(life->fixture->store, work_change, &change, error);
}

static void change(struct life *life, int i)
{
    db_error error = {0};
    for (int tries = 0;; tries++) {
        db_status status = change_once(life, i, &error);
        if (status == DB_OK) {
            life->outcomes[i] = ANSWERED;
            return;
        }
        assert_int_equal(status, error.status);
        assert_true(tries < TRIES);
        must_be_due(life, "change", &error);
        open_again_if_asked(life, &error);
        if (status == DB_UNKNOWN) {
            life->outcomes[i] = UNDECIDED;
            return;
        }
        life->outcomes[i] = UNDONE;
        if (fixture_is_stored(life->fixture, i))
            fail_msg("%s, but there: %s", db_status_text(status), error.message);
    }
}

static void audit(struct life *life)
{
    db_audit_row row = {0};
    db_error error = {0};
    if (db_audit(life->fixture->reader, "account:a", keep_audit_row, &row, &error) != DB_OK) {
        must_be_due(life, "db_audit", &error);
        row = fixture_audit(life->fixture, "account:a");
    }
    assert_true(row.ok);
}

/* After the life, on a well disk. */
static void judge(struct life *life)
{
    struct fixture *fixture = life->fixture;
    int stored = 0;
    calls_heal();
    open_store(life);
    for (int i = 0; i < CHANGES; i++) {
        const bool there = fixture_is_stored(fixture, i);
        if (life->outcomes[i] == ANSWERED)
            assert_true(there);
        if (life->outcomes[i] == UNDONE || life->outcomes[i] == NEVER_TRIED)
            assert_false(there);
        stored += there;
    }
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_true(row.ok);
    assert_int_equal(1000 - stored, row.current);
    close_store(life);
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT integrity_check = 'ok'"
                                                 " FROM pragma_integrity_check"));
}

static void remove_files(const struct fixture *fixture)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", "-lock"};
    char name[sizeof fixture->file + 16];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(name, sizeof name, "%s%s", fixture->file, suffixes[i]);
        unlink(name);
    }
}

/* -- a new store, until its end -----------------------------------------------------------------
 */

/* False: there was no Nth call. */
static bool live_from_the_beginning(struct life *life, struct call_plan plan, int n)
{
    remove_files(life->fixture);
    memset(life->outcomes, 0, sizeof life->outcomes);
    calls_arm(plan, n);
    open_store(life);
    make_account(life);
    for (int i = 0; i < CHANGES; i++)
        change(life, i);
    audit(life);
    close_store(life); /* its checkpoint may fail: then the log stays */
    const bool fired = atomic_load(&calls_failed) > 0;
    judge(life);
    return fired;
}

/* -- a store that ended abnormally, and is recovered ---------------------------------------------
 */

static void copy_file(const char *from, const char *from_suffix, const char *to,
                      const char *to_suffix)
{
    char command[512];
    snprintf(command, sizeof command, "if [ -e '%s%s' ]; then cp '%s%s' '%s%s'; fi", from,
             from_suffix, from, from_suffix, to, to_suffix);
    assert_int_equal(system(command), 0);
}

/* Leaves beside the store what a killed process leaves: its file and its log as they were. */
static void keep_crashed(struct life *life)
{
    struct fixture *fixture = life->fixture;
    remove_files(fixture);
    memset(life->outcomes, 0, sizeof life->outcomes);
    open_store(life);
    make_account(life);
    for (int i = 0; i < CHANGES; i++)
        change(life, i);
    copy_file(fixture->file, "", fixture->file, ".kept");
    copy_file(fixture->file, "-wal", fixture->file, ".kept-wal");
    close_store(life);
}

static bool recover(struct life *life, struct call_plan plan, int n)
{
    remove_files(life->fixture);
    copy_file(life->fixture->file, ".kept", life->fixture->file, "");
    copy_file(life->fixture->file, ".kept-wal", life->fixture->file, "-wal");
    calls_arm(plan, n);
    open_store(life);
    audit(life);
    close_store(life);
    const bool fired = atomic_load(&calls_failed) > 0;
    judge(life);
    return fired;
}

/* -- all of them --------------------------------------------------------------------------------
 */

enum {
    ALL_CALLS = CALL_OPEN | CALL_READ | CALL_WRITE | CALL_STAT | CALL_SIZE | CALL_LOCK | CALL_MAP |
                CALL_REMOVE,
};

static const struct call_plan failures[] = {
    {.kinds = CALL_OPEN, .error = EMFILE},
    {.kinds = CALL_OPEN, .error = EMFILE, .lasts = true},
    {.kinds = ALL_CALLS, .error = EIO},
    {.kinds = ALL_CALLS, .error = EIO, .lasts = true},
    {.kinds = CALL_OPEN | CALL_WRITE | CALL_SIZE | CALL_MAP, .error = ENOSPC},
    {.kinds = CALL_OPEN | CALL_WRITE | CALL_SIZE | CALL_MAP, .error = ENOSPC, .lasts = true},
};

/* Signals interrupt a call; a signal or a remote file system makes it short. */
static const struct call_plan hitches[] = {
    {.kinds = CALL_OPEN | CALL_READ | CALL_WRITE | CALL_SIZE, .error = EINTR, .sqlite_only = true},
    {.kinds = CALL_READ | CALL_WRITE, .error = SHORT, .sqlite_only = true},
    {.kinds = CALL_READ | CALL_WRITE, .error = SHORT, .lasts = true, .sqlite_only = true},
};

/* Each of the calls that open a file, as there are few; of all calls usually one of several. */
static int try_each(struct life *life, const struct call_plan *plan,
                    bool (*live)(struct life *life, struct call_plan plan, int n))
{
    const int few = plan->kinds == CALL_OPEN ? 1 : life->options->shared_file ? 13 : 5;
    const int step = full_or(1, few);
    int n = 1, tried = 0;
    for (; live(life, *plan, n); n += step, tried++)
        assert_true(n < N_MAX);
    return tried;
}

static void try_all(struct life *life, const struct call_plan *plans, size_t n,
                    bool (*live)(struct life *life, struct call_plan plan, int n))
{
    for (size_t i = 0; i < n; i++) {
        const int calls = try_each(life, &plans[i], live);
        print_message("error %d, %s: %d calls\n", plans[i].error,
                      plans[i].lasts ? "for ever" : "once", calls);
        assert_true(calls > 0);
    }
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const db_options own = {.busy_ms = 50}, shared = {.shared_file = true, .busy_ms = 50};

TEST_FIXTURE(folder_setup, fixture_teardown);

TEST_THAT(a_store_of_its_own_survives_an_error_of_any_call)
{
    struct life life = {.fixture = *state, .options = &own};
    try_all(&life, failures, COUNT(failures), live_from_the_beginning);
}

TEST_THAT(a_shared_file_survives_an_error_of_any_call)
{
    struct life life = {.fixture = *state, .options = &shared};
    try_all(&life, failures, COUNT(failures), live_from_the_beginning);
}

TEST_THAT(a_recovery_survives_an_error_of_any_call)
{
    struct life life = {.fixture = *state, .options = &own};
    keep_crashed(&life);
    try_all(&life, failures, COUNT(failures), recover);
}

TEST_THAT(an_interrupted_or_short_call_is_not_even_noticed)
{
    struct life life = {.fixture = *state, .options = &own, .must_succeed = true};
    try_all(&life, hitches, COUNT(hitches), live_from_the_beginning);
    life.options = &shared;
    try_all(&life, hitches, COUNT(hitches), live_from_the_beginning);
    life.options = &own;
    keep_crashed(&life);
    try_all(&life, hitches, COUNT(hitches), recover);
}

int main(void)
{
    if (calls_install() != 0)
        return 1;
    return tests_run();
}
