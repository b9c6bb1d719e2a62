/* Two processes on one file (rollback journal): both write, neither starves, no data is damaged. */
#include "child.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { PROCESSES = 2, THREADS_MAX = 4 };

static const db_options shared_options = {.shared_file = true};

/* In memory shared by both children. */
struct board {
    char url[96];
    int threads, runs; /* of each thread; 0: until stopped */
    bool absolute;     /* read, then write the absolute value, without a lock */
    atomic_bool go, stop;
    _Atomic int64_t done[PROCESSES];
    _Atomic int64_t failures;
};

struct worker {
    pthread_t thread;
    struct board *board;
    db *store;
    int process, number;
};

static db_status work_add(db_tx *tx, void *arg)
{
    const char *txn_id = arg;
    db_account account;
    db_ledger_row row = {.resource = "account:a", .delta = 1};
    db_status status = db_tx_read_account(tx, "a", true, &account);
    if (status != DB_OK || (status = db_tx_add_account(tx, &account, 1)) != DB_OK)
        return status;
    row.after = account.balance;
    row.before = row.after - 1;
    row.version_before = account.version - 1;
    row.epoch = account.epoch;
    snprintf(row.txn_id, sizeof row.txn_id, "%s", txn_id);
    db_ledger_seal(&row, account.chain);
    status = db_tx_chain_account(tx, &account);
    return status == DB_OK ? db_tx_append_ledger(tx, &row) : status;
}

static db_status one_run(struct worker *worker, db_reader *reader, const char *txn_id)
{
    struct change change = {.delta = 1, .txn_id = txn_id, .how = {.expected_version = -1}};
    db_status status = db_read_account(reader, "a", &change.account);
    if (status != DB_OK)
        return status;
    if (worker->board->absolute)
        return db_run(worker->store, work_change, &change, NULL);
    char copy[32];
    snprintf(copy, sizeof copy, "%s", txn_id);
    return db_run(worker->store, work_add, copy, NULL);
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    struct board *board = worker->board;
    db_reader *reader;
    if (db_reader_open(worker->store, &reader, NULL) != DB_OK) {
        atomic_fetch_add(&board->failures, 1);
        return NULL;
    }
    while (!atomic_load(&board->go))
        sched_yield();
    for (int i = 0; (board->runs == 0 || i < board->runs) && !atomic_load(&board->stop); i++) {
        char txn_id[32];
        snprintf(txn_id, sizeof txn_id, "%d-%d-%d", worker->process, worker->number, i);
        if (one_run(worker, reader, txn_id) == DB_OK)
            atomic_fetch_add(&board->done[worker->process], 1);
        else
            atomic_fetch_add(&board->failures, 1);
    }
    db_reader_close(reader);
    return NULL;
}

struct seat {
    struct board *board;
    int process;
};

static int process_main(void *arg, int report)
{
    const struct seat *seat = arg;
    struct worker workers[THREADS_MAX];
    db_options options = shared_options;
    options.url = seat->board->url;
    options.busy_ms = 60000;
    db *store;
    if (db_open(&options, &store, NULL) != DB_OK)
        return 1;
    child_say(report, 'o');
    for (int i = 0; i < seat->board->threads; i++) {
        workers[i] = (struct worker){
            .board = seat->board, .store = store, .process = seat->process, .number = i};
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0)
            return 2;
    }
    for (int i = 0; i < seat->board->threads; i++)
        pthread_join(workers[i].thread, NULL);
    db_close(store);
    return 0;
}

static struct board *board_make(const struct fixture *fixture)
{
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    memset(board, 0, sizeof *board);
    memcpy(board->url, fixture->url, sizeof board->url);
    return board;
}

static int shared_setup(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    assert_non_null(fixture);
    *fixture = fixture_folder();
    fixture_open(fixture, &shared_options);
    fixture_account(fixture, "a", 1000);
    fixture_close(fixture);
    *state = fixture;
    return 0;
}

static void start_both(struct board *board, struct child *children)
{
    for (int i = 0; i < PROCESSES; i++) {
        struct seat seat = {board, i};
        children[i] = child_start(process_main, &seat);
    }
    for (int i = 0; i < PROCESSES; i++)
        child_expect(&children[i], 'o');
    atomic_store(&board->go, true);
}

static void expect_undamaged(struct fixture *fixture)
{
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT integrity_check = 'ok'"
                                                 " FROM pragma_integrity_check"));
    fixture_open(fixture, &shared_options);
}

TEST_FIXTURE(shared_setup, fixture_teardown);

TEST_THAT(two_processes_lose_nothing_with_atomic_changes)
{
    struct fixture *fixture = *state;
    struct board *board = board_make(fixture);
    struct child children[PROCESSES];
    board->threads = THREADS_MAX;
    board->runs = full_or(5000, 50);
    start_both(board, children);
    for (int i = 0; i < PROCESSES; i++)
        child_expect_success(&children[i]);
    assert_int_equal(0, board->failures);
    expect_undamaged(fixture);
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_true(row.ok);
    assert_int_equal(1000 + PROCESSES * THREADS_MAX * board->runs, row.current);
    munmap(board, sizeof *board);
}

TEST_THAT(absolute_values_of_two_processes_are_all_in_the_ledger)
{
    struct fixture *fixture = *state;
    struct board *board = board_make(fixture);
    struct child children[PROCESSES];
    board->threads = THREADS_MAX;
    board->runs = full_or(2000, 50);
    board->absolute = true;
    start_both(board, children);
    for (int i = 0; i < PROCESSES; i++)
        child_expect_success(&children[i]);
    assert_int_equal(0, board->failures);
    expect_undamaged(fixture);
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_int_equal(PROCESSES * THREADS_MAX * board->runs, row.ledger_sum);
    assert_int_equal(row.initial + row.ledger_sum - row.current, row.lost_amount);
    assert_int_equal(0, row.broken);
    munmap(board, sizeof *board);
}

/* Two processes with one thread each write as fast as they can. The ledger shows the order of their
 * commits. A process that has just committed queues behind the other, so they mostly alternate. On
 * a busy machine a quarter of the commits did; without the queue less than a tenth. */
TEST_THAT(neither_of_two_busy_processes_starves)
{
    struct fixture *fixture = *state;
    struct board *board = board_make(fixture);
    struct child children[PROCESSES];
    board->threads = 1;
    start_both(board, children);
    while (board->done[0] + board->done[1] < full_or(10000, 600) && board->failures == 0)
        usleep(1000);
    atomic_store(&board->stop, true);
    for (int i = 0; i < PROCESSES; i++)
        child_expect_success(&children[i]);
    int64_t changes = board->done[0] + board->done[1];
    int64_t turns =
        fixture_sql_int(fixture, "SELECT count(*) FROM ledger a JOIN ledger b"
                                 " ON b.id = a.id + 1 WHERE a.delta = 1"
                                 " AND substr(a.txn_id, 1, 1) <> substr(b.txn_id, 1, 1)");
    print_message("%ld and %ld commits, %ld turns\n", (long)board->done[0], (long)board->done[1],
                  (long)turns);
    assert_int_equal(0, board->failures);
    assert_true(turns >= changes / 6);
    munmap(board, sizeof *board);
}

TEST_THAT(a_killed_process_leaves_the_other_working)
{
    struct fixture *fixture = *state;
    for (int round = 0; round < full_or(50, 5); round++) {
        struct board *board = board_make(fixture);
        struct child children[PROCESSES];
        board->threads = 2;
        start_both(board, children);
        while (board->done[0] < 5 + round)
            sched_yield();
        child_kill(&children[0]);
        int64_t before = board->done[1];
        while (board->done[1] < before + 20 && board->failures == 0)
            usleep(1000);
        atomic_store(&board->stop, true);
        child_expect_success(&children[1]);
        assert_int_equal(0, board->failures);
        expect_undamaged(fixture);
        assert_int_equal(0, fixture_audit(fixture, "account:a").lost_amount);
        assert_true(fixture_audit(fixture, "account:a").current >=
                    1000 + board->done[0] + board->done[1]);
        fixture_account(fixture, "a", 1000);
        fixture_close(fixture);
        munmap(board, sizeof *board);
    }
}

/* A process that is stopped while it holds the turn must not stop the others. */
TEST_THAT(a_turn_that_is_never_given_back_is_done_without)
{
    struct fixture *fixture = *state;
    char name[100];
    snprintf(name, sizeof name, "%s-lock", fixture->file);
    fixture_open(fixture, &shared_options);
    int fd = open(name, O_RDWR);
    struct flock turn = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
    assert_int_equal(0, fcntl(fd, F_OFD_SETLK, &turn));
    fixture_account(fixture, "b", 1);
    close(fd);
}

/* -- a refused work beside one that only reads and inserts ---------------------------------------
 */

struct buyer {
    pthread_barrier_t *start;
    db *store;
    int number, rounds;
    bool with_refused;
    int told_ok;
};

struct first_order {
    db_order order;
    db_item item;
};

static db_status work_first_order(db_tx *tx, void *arg)
{
    const struct first_order *first = arg;
    int64_t bought;
    db_status status = db_tx_read_bought(tx, &first->item, first->order.user_id, &bought);
    if (status == DB_OK && bought > 0)
        return DB_REFUSED;
    return status == DB_OK ? db_tx_insert_order(tx, &first->order) : status;
}

static db_status work_refused(db_tx *tx, void *arg)
{
    (void)arg;
    db_status status = db_tx_put_task(tx, "x", "", 1, 1);
    return status == DB_OK ? DB_REFUSED : status;
}

static void *buy_first(void *arg)
{
    struct buyer *buyer = arg;
    for (int i = 0; i < buyer->rounds; i++) {
        struct first_order first = {.order = {.item_id = "1",
                                              .quantity = 1,
                                              .version = 1,
                                              .item_epoch = 1,
                                              .limited = true},
                                    .item = {.id = "1", .epoch = 1}};
        snprintf(first.order.id, sizeof first.order.id, "o%d-%d", buyer->number, i);
        snprintf(first.order.user_id, sizeof first.order.user_id, "u%d", i);
        db_job jobs[] = {{.work = work_first_order, .arg = &first}, {.work = work_refused}};
        pthread_barrier_wait(buyer->start);
        db_run_many(buyer->store, jobs, buyer->with_refused ? 2 : 1);
        buyer->told_ok += jobs[0].status == DB_OK;
    }
    return NULL;
}

/* A refused work is undone within the transaction. So no other writer comes between the reads and
 * the inserts of the works before it. */
TEST_THAT(a_refused_work_lets_nobody_in_between)
{
    struct fixture *fixture = *state;
    pthread_barrier_t start;
    db *other;
    db_options options = shared_options;
    options.url = fixture->url;
    fixture_open(fixture, &shared_options);
    assert_int_equal(DB_OK, db_open(&options, &other, NULL));
    fixture_item(fixture, "1", 1000);
    pthread_barrier_init(&start, NULL, 2);
    struct buyer buyers[] = {
        {.start = &start, .store = fixture->store, .number = 0, .with_refused = true},
        {.start = &start, .store = other, .number = 1}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        buyers[i].rounds = full_or(4000, 300);
        assert_int_equal(0, pthread_create(&threads[i], NULL, buy_first, &buyers[i]));
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    db_close(other);
    assert_int_equal(buyers[0].told_ok + buyers[1].told_ok, buyers[0].rounds);
    assert_int_equal(buyers[0].rounds, fixture_sql_int(fixture, "SELECT count(*) FROM orders"));
}
