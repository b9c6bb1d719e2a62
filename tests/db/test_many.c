/* Several jobs of one caller: in one commit if the store has groups, each with its own outcome. */
#include "gate.h"

enum { CALLERS = 8 };

struct jobs {
    pthread_t thread;
    db *store;
    int n, rounds;
    struct change changes[DB_JOBS_MAX];
    char txn_ids[DB_JOBS_MAX][32];
    db_error errors[DB_JOBS_MAX];
    db_job jobs[DB_JOBS_MAX];
    db_status worst;                /* of all rounds */
    char chain[DB_HASH_LENGTH + 1]; /* after the last change */
};

/* The change follows the one before it in the chain of the account. */
static void follow(struct jobs *jobs, struct change *change)
{
    memcpy(change->account.chain, jobs->chain, sizeof jobs->chain);
    change_row(change, jobs->chain);
}

/* A chain of changes of one account; each is computed from the result of the one before it. */
static void prepare(struct jobs *jobs, db *store, const db_account *account, int n)
{
    *jobs = (struct jobs){.store = store, .n = n, .rounds = 1};
    memcpy(jobs->chain, account->chain, sizeof jobs->chain);
    for (int i = 0; i < n; i++) {
        struct change *change = &jobs->changes[i];
        *change = (struct change){
            .account = *account, .delta = -1, .txn_id = jobs->txn_ids[i], .with_answer = true};
        change->account.balance -= i;
        change->account.version += i;
        change->how.expected_version = change->account.version;
        snprintf(jobs->txn_ids[i], sizeof jobs->txn_ids[i], "%.16s-%d", account->id, i);
        follow(jobs, change);
        jobs->jobs[i] =
            (db_job){.work = work_change, .arg = change, .error = &jobs->errors[i], .status = -1};
    }
}

static void *run_rounds(void *arg)
{
    struct jobs *jobs = arg;
    for (int round = 0; round < jobs->rounds; round++) {
        db_run_many(jobs->store, jobs->jobs, (size_t)jobs->n);
        for (int i = 0; i < jobs->n; i++) {
            struct change *change = &jobs->changes[i];
            if (jobs->jobs[i].status != DB_OK)
                jobs->worst = jobs->jobs[i].status;
            change->account.balance -= jobs->n;
            change->account.version += jobs->n;
            change->how.expected_version = change->account.version;
            snprintf(jobs->txn_ids[i], sizeof jobs->txn_ids[i], "%.16s-%d",
                     jobs->changes[0].account.id, (round + 1) * jobs->n + i);
            follow(jobs, change);
        }
    }
    return NULL;
}

static void reopen(struct fixture *fixture, db_options options)
{
    fixture_close(fixture);
    fixture_open(fixture, &options);
}

static void expect_chain(struct fixture *fixture, const char *resource, int64_t balance)
{
    db_audit_row row = fixture_audit(fixture, resource);
    assert_true(row.ok);
    assert_int_equal(balance, row.current);
}

/* -- both engines ----------------------------------------------------------------------------- */

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(jobs_run_in_their_order)
{
    struct fixture *fixture = *state;
    struct jobs jobs;
    db_account account = fixture_account(fixture, "a", 100);
    prepare(&jobs, fixture->store, &account, DB_JOBS_MAX);
    run_rounds(&jobs);
    assert_int_equal(DB_OK, jobs.worst);
    expect_chain(fixture, "account:a", 100 - DB_JOBS_MAX);
}

static db_status change_and_refuse(db_tx *tx, void *arg)
{
    db_status status = work_change(tx, arg);
    return status == DB_OK ? DB_REFUSED : status;
}

/* Each job changes its own account, so no refusal can cause another. */
static void prepare_accounts(struct fixture *fixture, struct jobs *jobs, int n)
{
    db_account account = {0};
    prepare(jobs, fixture->store, &account, n);
    for (int i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "a%02d", i);
        jobs->changes[i].account = fixture_account(fixture, id, 100);
        jobs->changes[i].how.expected_version = -1;
    }
}

static void expect_balance(struct fixture *fixture, const struct jobs *jobs, int i, int64_t balance)
{
    db_account account;
    db_answer answer;
    assert_int_equal(DB_OK,
                     db_read_account(fixture->reader, jobs->changes[i].account.id, &account));
    assert_int_equal(balance, account.balance);
    assert_int_equal(balance == 100 ? DB_NOT_FOUND : DB_OK,
                     db_read_answer(fixture->reader, jobs->txn_ids[i], &answer));
}

TEST_THAT(a_refused_job_undoes_itself_only)
{
    enum { N = 9 };
    struct fixture *fixture = *state;
    struct jobs jobs;
    prepare_accounts(fixture, &jobs, N);
    for (int i = 0; i < N; i += 4)
        jobs.jobs[i].work = change_and_refuse;
    db_stats before, after;
    db_get_stats(fixture->store, &before);
    db_run_many(fixture->store, jobs.jobs, N);
    db_get_stats(fixture->store, &after);
    for (int i = 0; i < N; i++) {
        bool refused = i % 4 == 0;
        assert_int_equal(refused ? DB_REFUSED : DB_OK, jobs.jobs[i].status);
        assert_string_equal(refused ? db_status_text(DB_REFUSED) : "", jobs.errors[i].message);
        expect_balance(fixture, &jobs, i, refused ? 100 : 99);
    }
    assert_int_equal(N, after.runs - before.runs);
    assert_int_equal(3, after.rollbacks - before.rollbacks);
    assert_int_equal(db_commits_in_groups(fixture->store) ? 1 : N - 3,
                     after.commits - before.commits);
}

/* How a job accesses the order that it has just created. */
enum meeting { NEVER, BY_BOUGHT, BY_READING, BY_MOVING, BY_PUTTING, MEETINGS };
enum { ORDERS = 3 * MEETINGS };

struct order_job {
    char id[16];
    enum meeting meeting;
    db_status end;
};

static db_status meet(db_tx *tx, db_order *order, enum meeting meeting)
{
    const db_item item = {.id = "1", .epoch = 1};
    const db_put any = {.expected_version = -1, .item_guard = ""};
    db_status status = DB_OK;
    int64_t bought = 1;
    if (meeting == BY_BOUGHT)
        status = db_tx_read_bought(tx, &item, order->user_id, &bought);
    if (meeting == BY_READING)
        status = db_tx_read_order(tx, order->id, false, order);
    if (meeting == BY_MOVING)
        status = db_tx_move_order(tx, order, "", DB_RESERVED, DB_PAID);
    order->state = DB_PAID;
    if (meeting == BY_PUTTING)
        status = db_tx_put_order(tx, order, &any);
    return status == DB_OK && bought != 1 ? DB_NOT_FOUND : status;
}

static db_status work_order(db_tx *tx, void *arg)
{
    const struct order_job *job = arg;
    db_answer answer = {.http_status = 201, .request = "order", .body = "{}"};
    db_order order = {
        .item_id = "1", .quantity = 1, .item_epoch = 1, .limited = true, .version = 1};
    snprintf(answer.key, sizeof answer.key, "%s", job->id);
    snprintf(order.id, sizeof order.id, "%s", job->id);
    snprintf(order.user_id, sizeof order.user_id, "of-%s", job->id);
    db_status status = db_tx_insert_order(tx, &order);
    if (status == DB_OK)
        status = meet(tx, &order, job->meeting);
    if (status == DB_OK)
        status = db_tx_insert_answer(tx, &answer);
    return status == DB_OK ? job->end : status;
}

/* Three orders for each meeting. */
static void prepare_orders(db_job *jobs, struct order_job *orders, enum meeting most)
{
    for (int i = 0; i < ORDERS; i++) {
        orders[i] = (struct order_job){.meeting = (enum meeting)(i % (most + 1)), .end = DB_OK};
        snprintf(orders[i].id, sizeof orders[i].id, "o%d", i);
        jobs[i] = (db_job){.work = work_order, .arg = &orders[i]};
    }
}

static void expect_order(struct fixture *fixture, const struct order_job *job, db_status status)
{
    db_order order;
    db_answer answer;
    db_status stored = status == DB_OK ? DB_OK : DB_NOT_FOUND;
    assert_int_equal(stored, db_read_order(fixture->reader, job->id, &order));
    assert_int_equal(stored, db_read_answer(fixture->reader, job->id, &answer));
    if (status == DB_OK)
        assert_int_equal(job->meeting >= BY_MOVING ? DB_PAID : DB_RESERVED, order.state);
}

/* Refused jobs of each meeting, also NEVER. */
TEST_THAT(a_job_that_meets_its_new_rows_and_is_refused_takes_no_others_along)
{
    struct fixture *fixture = *state;
    struct order_job orders[ORDERS];
    db_job jobs[ORDERS];
    fixture_item(fixture, "1", 100);
    for (int refused = NEVER; refused < MEETINGS; refused++) {
        fixture_sql(fixture, "DELETE FROM orders; DELETE FROM idempotency");
        prepare_orders(jobs, orders, BY_PUTTING);
        orders[MEETINGS + refused].end = DB_REFUSED;
        db_run_many(fixture->store, jobs, ORDERS);
        for (int i = 0; i < ORDERS; i++) {
            assert_int_equal(orders[i].end, jobs[i].status);
            expect_order(fixture, &orders[i], orders[i].end);
        }
    }
}

/* -- SQLite: groups --------------------------------------------------------------------------- */

static void run_in_one_commit(struct fixture *fixture, const char *id)
{
    struct jobs jobs;
    db_stats before, after;
    db_account account = fixture_account(fixture, id, 100);
    assert_true(db_commits_in_groups(fixture->store));
    prepare(&jobs, fixture->store, &account, DB_JOBS_MAX);
    db_get_stats(fixture->store, &before);
    run_rounds(&jobs);
    db_get_stats(fixture->store, &after);
    assert_int_equal(DB_OK, jobs.worst);
    assert_int_equal(1, after.commits - before.commits);
    assert_int_equal(DB_JOBS_MAX, after.group_largest);
}

TEST_GROUP("groups", NULL, NULL);

TEST_THAT(all_jobs_share_one_commit)
{
    run_in_one_commit(*state, "a");
    reopen(*state, (db_options){.shared_file = true});
    run_in_one_commit(*state, "b");
    expect_chain(*state, "account:a", 100 - DB_JOBS_MAX);
    expect_chain(*state, "account:b", 100 - DB_JOBS_MAX);
}

/* planted: what is met by the job of one account, whose number it names. */
static void fail_one_job_of(struct fixture *fixture, int n, const char *planted)
{
    for (int failing = 0; failing < n; failing += 2) {
        struct jobs jobs;
        char trigger[160], sql[320];
        snprintf(trigger, sizeof trigger, planted, failing);
        snprintf(sql, sizeof sql,
                 "DROP TRIGGER IF EXISTS planted; DELETE FROM idempotency;"
                 "CREATE TRIGGER planted AFTER %s BEGIN SELECT RAISE(ROLLBACK, 'planted'); END",
                 trigger);
        fixture_sql(fixture, sql);
        prepare_accounts(fixture, &jobs, n);
        db_run_many(fixture->store, jobs.jobs, (size_t)n);
        for (int i = 0; i < n; i++) {
            assert_int_equal(i == failing ? DB_FAILED : DB_OK, jobs.jobs[i].status);
            expect_balance(fixture, &jobs, i, i == failing ? 100 : 99);
        }
        assert_non_null(strstr(jobs.errors[failing].message, "planted"));
    }
}

TEST_THAT(a_database_error_in_one_job_leaves_the_others_whole)
{
    fail_one_job_of(*state, 5, "UPDATE ON accounts WHEN new.id = 'a%02d' AND new.balance < 100");
}

TEST_THAT(a_ledger_row_that_fails_is_told_of_its_job)
{
    fail_one_job_of(*state, 5,
                    "INSERT ON ledger WHEN new.resource = 'account:a%02d' AND new.after < 100");
}

TEST_THAT(a_new_row_that_fails_is_told_of_its_job)
{
    struct fixture *fixture = *state;
    fixture_item(fixture, "1", 100);
    fixture_sql(fixture, "CREATE TRIGGER planted AFTER INSERT ON orders WHEN new.id = 'o3'"
                         " BEGIN SELECT RAISE(ROLLBACK, 'planted'); END");
    struct order_job orders[ORDERS];
    db_job jobs[ORDERS];
    db_error error = {.message = ""};
    prepare_orders(jobs, orders, NEVER);
    jobs[3].error = &error;
    db_run_many(fixture->store, jobs, ORDERS);
    for (int i = 0; i < ORDERS; i++) {
        assert_int_equal(i == 3 ? DB_FAILED : DB_OK, jobs[i].status);
        expect_order(fixture, &orders[i], jobs[i].status);
    }
    assert_non_null(strstr(error.message, "planted"));
}

/* Behind the gate: eight jobs of the first caller, three of the second. Groups: 5 | 3 + 2 | 1. */
TEST_THAT(jobs_beyond_a_group_go_on_with_the_next)
{
    enum { FIRST = 8, SECOND = 3 };
    struct fixture *fixture = *state;
    reopen(fixture, (db_options){.group_max = 5});
    struct jobs first, second;
    db_account a = fixture_account(fixture, "a", 100), b = fixture_account(fixture, "b", 100);
    prepare(&first, fixture->store, &a, FIRST);
    prepare(&second, fixture->store, &b, SECOND);
    struct gate gate;
    db_stats before, after;
    db_get_stats(fixture->store, &before);
    gate_close(&gate, fixture->store);
    assert_int_equal(0, pthread_create(&first.thread, NULL, run_rounds, &first));
    gate_wait_for(&gate, FIRST);
    assert_int_equal(0, pthread_create(&second.thread, NULL, run_rounds, &second));
    gate_wait_for(&gate, FIRST + SECOND);
    gate_open(&gate);
    pthread_join(first.thread, NULL);
    pthread_join(second.thread, NULL);
    db_get_stats(fixture->store, &after);
    assert_int_equal(DB_OK, first.worst);
    assert_int_equal(DB_OK, second.worst);
    assert_int_equal(1 + 3, after.commits - before.commits);
    assert_int_equal(1 + FIRST + SECOND, after.runs - before.runs);
    assert_int_equal(5, after.group_largest);
    assert_int_equal(0, after.waiting);
    expect_chain(fixture, "account:a", 100 - FIRST);
    expect_chain(fixture, "account:b", 100 - SECOND);
}

/* Groups often end in the middle of a caller's jobs, and checkpoints run between them. */
TEST_THAT(many_callers_with_many_jobs_are_all_answered)
{
    struct fixture *fixture = *state;
    const int rounds = full_or(500, 40);
    reopen(fixture, (db_options){.group_max = 7, .sync = DB_SYNC_NORMAL});
    struct jobs *callers = calloc(CALLERS, sizeof *callers);
    assert_non_null(callers);
    for (int c = 0; c < CALLERS; c++) {
        char id[16];
        snprintf(id, sizeof id, "a%d", c);
        db_account account = fixture_account(fixture, id, 1000000);
        prepare(&callers[c], fixture->store, &account, 1 + c * 9); /* 1 to 64 */
        callers[c].rounds = rounds;
    }
    for (int c = 0; c < CALLERS; c++)
        assert_int_equal(0, pthread_create(&callers[c].thread, NULL, run_rounds, &callers[c]));
    for (int c = 0; c < CALLERS; c++)
        pthread_join(callers[c].thread, NULL);
    db_stats stats;
    db_get_stats(fixture->store, &stats);
    assert_true(stats.checkpoints > 0);
    assert_int_equal(7, stats.group_largest);
    for (int c = 0; c < CALLERS; c++) {
        char resource[24];
        snprintf(resource, sizeof resource, "account:a%d", c);
        assert_int_equal(DB_OK, callers[c].worst);
        expect_chain(fixture, resource, 1000000 - rounds * callers[c].n);
    }
    free(callers);
}
