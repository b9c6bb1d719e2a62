/* Many callers: group commit; one failure does not affect the others; a race stays visible. */
#include "gate.h"

enum { THREADS = 16 };

static const db_put any = {.expected_version = -1};

/* -- callers ---------------------------------------------------------------------------------- */

struct caller {
    pthread_t thread;
    db *store;
    int number;
    db_work *work;
    struct change change;
    char txn_id[32];
    int runs; /* of the work */
    db_status status;
    db_error error;
};

static void *caller_main(void *arg)
{
    struct caller *caller = arg;
    caller->status = db_run(caller->store, caller->work, caller, &caller->error);
    return NULL;
}

static db_status work_own_account(db_tx *tx, void *arg)
{
    struct caller *caller = arg;
    caller->runs++;
    return work_change(tx, &caller->change);
}

/* Writes, then gives up. */
static db_status work_and_refuse(db_tx *tx, void *arg)
{
    db_status status = work_own_account(tx, arg);
    return status == DB_OK ? DB_REFUSED : status;
}

static void prepare_callers(struct fixture *fixture, struct caller *callers)
{
    for (int i = 0; i < THREADS; i++) {
        struct caller *caller = &callers[i];
        *caller = (struct caller){.store = fixture->store, .number = i, .work = work_own_account};
        snprintf(caller->txn_id, sizeof caller->txn_id, "t%d", i);
        caller->change =
            (struct change){.delta = -1, .txn_id = caller->txn_id, .how = any, .with_answer = true};
        char id[16];
        snprintf(id, sizeof id, "a%02d", i);
        caller->change.account = fixture_account(fixture, id, 100);
    }
}

/* Puts all callers into one group, in the order of their numbers. */
static void run_as_one_group(struct fixture *fixture, struct caller *callers)
{
    struct gate gate;
    gate_close(&gate, fixture->store);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(0, pthread_create(&callers[i].thread, NULL, caller_main, &callers[i]));
        gate_wait_for(&gate, (uint64_t)i + 1);
    }
    gate_open(&gate);
    for (int i = 0; i < THREADS; i++)
        pthread_join(callers[i].thread, NULL);
}

static int64_t balance(struct fixture *fixture, const struct caller *caller)
{
    db_account account;
    assert_int_equal(DB_OK, db_read_account(fixture->reader, caller->change.account.id, &account));
    return account.balance;
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
TEST_GROUP("groups", NULL, NULL);

TEST_THAT(callers_that_wait_share_one_commit)
{
    struct fixture *fixture = *state;
    struct caller callers[THREADS];
    prepare_callers(fixture, callers);
    db_stats before, after;
    db_get_stats(fixture->store, &before);
    run_as_one_group(fixture, callers);
    db_get_stats(fixture->store, &after);
    assert_int_equal(2, after.commits - before.commits); /* the gate's and the group's */
    assert_int_equal(THREADS + 1, after.runs - before.runs);
    assert_int_equal(THREADS, after.group_largest);
    assert_int_equal(0, after.rollbacks);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(DB_OK, callers[i].status);
        assert_int_equal(99, balance(fixture, &callers[i]));
    }
    /* in order of arrival: ids rise with the callers' numbers */
    assert_int_equal(0, fixture_sql_int(fixture,
                                        "SELECT count(*) FROM ledger a JOIN ledger b ON b.id > a.id"
                                        " WHERE a.delta = -1 AND b.delta = -1"
                                        " AND b.resource < a.resource"));
}

TEST_THAT(a_group_is_no_larger_than_asked)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    fixture_open(fixture, &(db_options){.group_max = 5});
    struct caller callers[THREADS];
    prepare_callers(fixture, callers);
    db_stats before, after;
    db_get_stats(fixture->store, &before);
    run_as_one_group(fixture, callers);
    db_get_stats(fixture->store, &after);
    assert_int_equal(1 + 4, after.commits - before.commits); /* 5 + 5 + 5 + 1 */
    assert_int_equal(5, after.group_largest);
}

TEST_THAT(one_failure_undoes_one_run_only)
{
    struct fixture *fixture = *state;
    static const int failing[] = {0, 7, THREADS - 1}; /* the first has no savepoint, others have */
    struct caller callers[THREADS];
    prepare_callers(fixture, callers);
    for (int i = 0; i < 3; i++)
        callers[failing[i]].work = work_and_refuse;
    run_as_one_group(fixture, callers);
    for (int i = 0; i < THREADS; i++) {
        bool fails = i == 0 || i == 7 || i == THREADS - 1;
        assert_int_equal(fails ? DB_REFUSED : DB_OK, callers[i].status);
        assert_int_equal(fails ? 100 : 99, balance(fixture, &callers[i]));
        db_answer answer;
        assert_int_equal(fails ? DB_NOT_FOUND : DB_OK,
                         db_read_answer(fixture->reader, callers[i].txn_id, &answer));
        if (fails)
            assert_string_equal(db_status_text(DB_REFUSED), callers[i].error.message);
    }
    db_stats stats;
    db_get_stats(fixture->store, &stats);
    assert_int_equal(3, stats.rollbacks);
    assert_true(fixture_audit(fixture, "account:a07").ok);
}

static db_status work_taken_key(db_tx *tx, void *arg)
{
    db_status status = work_own_account(tx, arg);
    db_answer taken = {.key = "t0"}; /* the first caller of the group writes it */
    return status == DB_OK ? db_tx_insert_answer(tx, &taken) : status;
}

TEST_THAT(a_key_taken_earlier_in_the_group_is_a_duplicate)
{
    struct fixture *fixture = *state;
    struct caller callers[THREADS];
    prepare_callers(fixture, callers);
    callers[5].work = work_taken_key;
    run_as_one_group(fixture, callers);
    assert_int_equal(DB_DUPLICATE, callers[5].status);
    assert_int_equal(100, balance(fixture, &callers[5]));
    assert_int_equal(99, balance(fixture, &callers[6]));
}

/* On some errors SQLite ends the whole transaction; a planted trigger does the same. */
TEST_THAT(a_database_error_in_one_run_leaves_the_others_whole)
{
    struct fixture *fixture = *state;
    static const int failing[] = {0, 7, THREADS - 1};
    for (int f = 0; f < 3; f++) {
        struct caller callers[THREADS];
        char sql[200];
        snprintf(sql, sizeof sql,
                 "DROP TRIGGER IF EXISTS planted; DELETE FROM idempotency;"
                 "CREATE TRIGGER planted AFTER UPDATE ON accounts WHEN new.id = 'a%02d'"
                 " AND new.balance < 100 BEGIN SELECT RAISE(ROLLBACK, 'planted'); END",
                 failing[f]);
        fixture_sql(fixture, sql);
        prepare_callers(fixture, callers);
        run_as_one_group(fixture, callers);
        for (int i = 0; i < THREADS; i++) {
            bool fails = i == failing[f];
            assert_int_equal(fails ? DB_FAILED : DB_OK, callers[i].status);
            assert_int_equal(fails ? 100 : 99, balance(fixture, &callers[i]));
            assert_true(fixture_audit(fixture, i == 7 ? "account:a07" : "account:a08").ok);
            if (fails)
                assert_non_null(strstr(callers[i].error.message, "planted"));
        }
    }
}

static db_status work_note_thread(db_tx *tx, void *arg)
{
    (void)tx;
    *(pthread_t *)arg = pthread_self();
    return DB_OK;
}

TEST_THAT(a_lone_caller_waits_for_no_other_thread)
{
    struct fixture *fixture = *state;
    pthread_t writer = 0;
    assert_int_equal(DB_OK, db_run(fixture->store, work_note_thread, &writer, NULL));
    assert_true(pthread_equal(pthread_self(), writer));
}

/* Otherwise, with a steady stream of callers, the first would write for the others for ever. */
TEST_THAT(who_writes_for_others_is_answered_before_the_next_group_is)
{
    struct fixture *fixture = *state;
    struct gate first, second;
    gate_close(&first, fixture->store);
    gate_start(&second, fixture->store);
    gate_wait_for(&first, 1);
    gate_open(&first); /* waits for the end of its thread */
    sem_wait(&second.entered);
    gate_open(&second);
}

TEST_THAT(closing_waits_for_what_is_queued)
{
    struct fixture *fixture = *state;
    struct caller callers[THREADS];
    prepare_callers(fixture, callers);
    struct gate gate;
    gate_close(&gate, fixture->store);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&callers[i].thread, NULL, caller_main, &callers[i]));
    gate_wait_for(&gate, THREADS);
    sem_post(&gate.open);
    db_reader_close(fixture->reader);
    db_close(fixture->store);
    pthread_join(gate.thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_equal(DB_OK, callers[i].status);
    }
    fixture_open(fixture, NULL);
    assert_int_equal(99, balance(fixture, &callers[THREADS - 1]));
}

/* -- the race, and what prevents it --------------------------------------------------------------
 */

struct racer {
    pthread_t thread;
    db *store;
    int number, rounds;
    pthread_mutex_t *mutex;     /* a lock ... */
    pthread_barrier_t *barrier; /* ... or a barrier: all read before one writes */
    db_status status;
};

static void *racer_main(void *arg)
{
    struct racer *racer = arg;
    db_reader *reader;
    struct change change = {.delta = -1, .how = any};
    char txn_id[32];
    if (db_reader_open(racer->store, &reader, NULL) != DB_OK) {
        racer->status = DB_FAILED;
        return NULL;
    }
    for (int i = 0; i < racer->rounds; i++) {
        snprintf(txn_id, sizeof txn_id, "%d-%d", racer->number, i);
        change.txn_id = txn_id;
        if (racer->mutex)
            pthread_mutex_lock(racer->mutex);
        db_status status = db_read_account(reader, "a", &change.account);
        if (racer->barrier)
            pthread_barrier_wait(racer->barrier);
        if (status == DB_OK)
            status = db_run(racer->store, work_change, &change, NULL);
        if (racer->barrier)
            pthread_barrier_wait(racer->barrier);
        if (racer->mutex)
            pthread_mutex_unlock(racer->mutex);
        if (status != DB_OK)
            racer->status = status;
    }
    db_reader_close(reader);
    return NULL;
}

static void race(struct fixture *fixture, int rounds, pthread_mutex_t *mutex,
                 pthread_barrier_t *barrier)
{
    struct racer racers[THREADS];
    fixture_account(fixture, "a", 100000);
    for (int i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){.store = fixture->store,
                                   .number = i,
                                   .rounds = rounds,
                                   .mutex = mutex,
                                   .barrier = barrier};
        assert_int_equal(0, pthread_create(&racers[i].thread, NULL, racer_main, &racers[i]));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(racers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(DB_OK, racers[i].status);
}

ON_BOTH_ENGINES;

TEST_THAT(absolute_writes_under_a_lock_form_a_chain)
{
    struct fixture *fixture = *state;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int rounds = full_or(500, 20);
    race(fixture, rounds, &mutex, NULL);
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_true(row.ok);
    assert_int_equal(100000 - THREADS * rounds, row.current);
}

TEST_THAT(absolute_writes_without_a_lock_lose_updates)
{
    struct fixture *fixture = *state;
    pthread_barrier_t barrier;
    int rounds = full_or(500, 20);
    pthread_barrier_init(&barrier, NULL, THREADS);
    race(fixture, rounds, NULL, &barrier);
    pthread_barrier_destroy(&barrier);
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_int_equal(rounds * (THREADS - 1), row.lost_updates);
    assert_int_equal(rounds * (THREADS - 1), row.lost_amount);
    assert_int_equal(100000 - rounds, row.current);
    assert_int_equal(0, row.broken);
    assert_int_equal(0, row.duplicates);
}

/* -- snapshots -------------------------------------------------------------------------------- */

TEST_THAT(a_snapshot_does_not_move_and_single_reads_see_the_newest)
{
    struct fixture *fixture = *state;
    struct change change = {
        .account = fixture_account(fixture, "a", 100), .delta = -1, .txn_id = "t", .how = any};
    db_account seen;
    assert_int_equal(DB_OK, db_reader_begin(fixture->reader));
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &seen));
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &seen));
    assert_int_equal(100, seen.balance);
    assert_int_equal(0, fixture_audit(fixture, "account:a").ledger_sum);
    db_reader_end(fixture->reader);
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &seen));
    assert_int_equal(99, seen.balance);
}

static db_status work_read_own_write(db_tx *tx, void *arg)
{
    struct change *change = arg;
    db_status status = work_change(tx, change);
    return status == DB_OK ? db_tx_read_account(tx, "a", true, &change->account) : status;
}

TEST_THAT(a_transaction_sees_its_own_writes)
{
    struct fixture *fixture = *state;
    struct change change = {
        .account = fixture_account(fixture, "a", 100), .delta = -1, .txn_id = "t", .how = any};
    assert_int_equal(DB_OK, db_run(fixture->store, work_read_own_write, &change, NULL));
    assert_int_equal(99, change.account.balance);
}
