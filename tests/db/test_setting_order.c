/*
 * Enumerates the invariant of a change of guard without a reset (db.h). Two holders read and write
 * once each; up to two changes of the guard come at any moment, A to B and back to A, without any
 * lock. Every order of these steps is tried with every pair of ways to write. A model of three
 * numbers gives the expected status of each write.
 */
#include "fixture.h"

enum {
    HOLDERS = 2,
    PATCHES_MAX = 2,
    STEPS_MAX = 2 * HOLDERS + PATCHES_MAX,
    TRIALS_MAX = 8192,
    STOCK = 1000,
    PATCH = HOLDERS /* who takes the step */
};

/* How a holder writes: a lock without a fence, one with, sql-version, sql-atomic; its order, over
 * the version that it read, by its state (sql-atomic), or under a fence. The last one also refunds
 * what it has read as paid. */
enum way { PLAIN, FENCED, OVER_READ, ADD, PUT_ORDER, MOVE_ORDER, FENCED_ORDER, WAYS };
static const char *const way_names[] = {"plain",     "fenced", "over read",   "add",
                                        "put order", "move",   "fenced order"};

static bool of_accounts; /* the trials are about accounts; they have no orders */

struct holder {
    enum way way;
    int64_t fence;
    db_item item; /* or an account: guard, version and stock, which is its balance */
    db_account account;
    db_order order;
    int steps; /* that it has taken */
};

struct trial {
    char id[DB_ID_MAX + 1];
    uint8_t steps[STEPS_MAX];
    int n;
    struct holder holders[HOLDERS];
    bool writes; /* in this step: a holder writes, or the guard changes */
    db_status told;
    /* the model of the rows */
    char guard;
    int64_t version, last_fence, order_version, order_fence;
    db_order_state order_state;
    int64_t sold; /* by writes that were accepted */
    bool lost;    /* a plain write has come over another one */
};

static struct trial trials[TRIALS_MAX];
static size_t n_trials;

/* -- orders of steps -------------------------------------------------------------------------- */

static void add_trials(int patches, int *left, uint8_t *steps, int n)
{
    if (n == 2 * HOLDERS + patches) {
        const int ways = of_accounts ? PUT_ORDER : WAYS;
        for (int pair = 0; pair < ways * ways; pair++) {
            assert_true(n_trials < TRIALS_MAX);
            struct trial *trial = &trials[n_trials];
            *trial = (struct trial){.n = n,
                                    .holders = {{.way = (enum way)(pair / ways), .fence = 1},
                                                {.way = (enum way)(pair % ways), .fence = 2}},
                                    .guard = 'A',
                                    .version = 1,
                                    .order_version = 1};
            snprintf(trial->id, sizeof trial->id, "t%d-%zu", patches, n_trials++);
            memcpy(trial->steps, steps, (size_t)n);
        }
        return;
    }
    for (int who = 0; who <= PATCH; who++) {
        if (left[who] == 0)
            continue;
        left[who]--;
        steps[n] = (uint8_t)who;
        add_trials(patches, left, steps, n + 1);
        left[who]++;
    }
}

/* -- steps ------------------------------------------------------------------------------------ */

static db_status work_rows(db_tx *tx, void *arg)
{
    db_status status = DB_OK;
    (void)arg;
    for (size_t i = 0; i < n_trials && status == DB_OK; i++) {
        db_item item = {.guard = "A", .initial_stock = STOCK, .fence = true};
        db_account account = {.guard = "A", .initial_balance = STOCK, .fence = true};
        db_order order = {.user_id = "u", .quantity = 1, .item_epoch = 1, .version = 1};
        memcpy(item.id, trials[i].id, sizeof item.id);
        memcpy(order.id, trials[i].id, sizeof order.id);
        memcpy(order.item_id, trials[i].id, sizeof order.item_id);
        memcpy(account.id, trials[i].id, sizeof account.id);
        status = of_accounts ? db_tx_reset_account(tx, &account, "A", "test")
                             : db_tx_reset_item(tx, &item, "A", "test");
        if (status == DB_OK && !of_accounts)
            status = db_tx_insert_order(tx, &order);
    }
    return status;
}

static db_status set_guard(db_tx *tx, const struct trial *trial)
{
    db_item item;
    db_account account;
    db_status status = of_accounts ? db_tx_read_account(tx, trial->id, true, &account)
                                   : db_tx_hold_item(tx, trial->id, &item);
    if (status != DB_OK)
        return status;
    if (of_accounts) {
        snprintf(item.guard, sizeof item.guard, "%s", account.guard);
        item.version = account.version;
    }
    char former[DB_GUARD_MAX + 1], txn_id[DB_ID_MAX + 32];
    snprintf(former, sizeof former, "%s", item.guard);
    snprintf(item.guard, sizeof item.guard, "%s", trial->guard == 'A' ? "B" : "A");
    snprintf(txn_id, sizeof txn_id, "setting\t%s:%d", trial->id, (int)item.version);
    db_setting setting = {
        .former_guard = former, .guard_name = item.guard, .instance = "test", .txn_id = txn_id};
    if (!of_accounts)
        return db_tx_set_item(tx, &item, &setting);
    snprintf(account.guard, sizeof account.guard, "%s", item.guard);
    return db_tx_set_account(tx, &account, &setting);
}

static db_status write_account(db_tx *tx, const struct holder *holder, const db_put *how)
{
    db_account account = holder->account;
    if (holder->way == ADD)
        return db_tx_add_account(tx, &account, -1);
    account.version++;
    account.balance--;
    return db_tx_put_account(tx, &account, how);
}

static db_status write_row(db_tx *tx, const struct holder *holder)
{
    db_item item = holder->item;
    db_order order = holder->order;
    const db_put how = {
        .fence = holder->way == FENCED || holder->way == FENCED_ORDER ? holder->fence : 0,
        .expected_version = holder->way == PLAIN      ? -1
                            : holder->way < PUT_ORDER ? item.version
                                                      : order.version,
        .item_guard = item.guard,
    };
    if (of_accounts)
        return write_account(tx, holder, &how);
    switch (holder->way) {
    case ADD:
        return db_tx_add_item(tx, &item, -1);
    case MOVE_ORDER:
        return db_tx_move_order(tx, &order, item.guard, DB_RESERVED, DB_PAID);
    case PUT_ORDER:
    case FENCED_ORDER:
        order.version++;
        order.state = order.state == DB_PAID ? DB_REFUNDED : DB_PAID;
        return db_tx_put_order(tx, &order, &how);
    default:
        item.version++;
        item.stock--;
        return db_tx_put_item(tx, &item, &how);
    }
}

/* All trials' steps in one transaction; their rows are independent. */
static db_status work_step(db_tx *tx, void *arg)
{
    const int at = *(const int *)arg;
    for (size_t i = 0; i < n_trials; i++) {
        struct trial *trial = &trials[i];
        if (!trial->writes)
            continue;
        const int who = trial->steps[at];
        trial->told = who == PATCH ? set_guard(tx, trial) : write_row(tx, &trial->holders[who]);
    }
    return DB_OK;
}

/* -- the model -------------------------------------------------------------------------------- */

static db_status expected(const struct trial *trial, const struct holder *holder)
{
    const bool same_guard = holder->item.guard[0] == trial->guard;
    switch (holder->way) {
    case PLAIN:
    case ADD:
        return same_guard ? DB_OK : DB_CONFLICT;
    case FENCED:
        if (same_guard && trial->last_fence > holder->fence)
            return DB_STALE_FENCE;
        return same_guard && holder->item.version == trial->version ? DB_OK : DB_CONFLICT;
    case OVER_READ:
        return same_guard && holder->item.version == trial->version ? DB_OK : DB_CONFLICT;
    case PUT_ORDER:
        return same_guard && holder->order.version == trial->order_version ? DB_OK : DB_CONFLICT;
    case FENCED_ORDER:
        if (same_guard && trial->order_fence > holder->fence)
            return DB_STALE_FENCE;
        return same_guard && holder->order.version == trial->order_version ? DB_OK : DB_CONFLICT;
    default:
        return !same_guard ? DB_CONFLICT : trial->order_state == DB_RESERVED ? DB_OK : DB_REFUSED;
    }
}

static void accept(struct trial *trial, const struct holder *holder)
{
    switch (holder->way) {
    case PLAIN:
        trial->lost |= holder->item.version != trial->version;
        trial->version = holder->item.version + 1;
        trial->sold = STOCK - holder->item.stock + 1;
        return;
    case FENCED_ORDER:
        trial->order_fence = holder->fence;
        /* fall through */
    case PUT_ORDER:
    case MOVE_ORDER: /* it is paid once, and refunded once */
        assert_int_equal(holder->order.state, trial->order_state);
        trial->order_state = trial->order_state == DB_RESERVED ? DB_PAID : DB_REFUNDED;
        trial->order_version++;
        return;
    case FENCED:
        trial->last_fence = holder->fence;
        break;
    default:
        break;
    }
    trial->version++;
    trial->sold++;
}

static void judge(struct trial *trial, int at)
{
    const int who = trial->steps[at];
    if (who == PATCH) {
        assert_int_equal(DB_OK, trial->told);
        trial->guard = trial->guard == 'A' ? 'B' : 'A';
        trial->version++;
        trial->last_fence = 0;
        if (trial->order_fence > 0 && trial->order_state <= DB_PAID) {
            trial->order_version++;
            trial->order_fence = 0;
        }
        return;
    }
    const struct holder *holder = &trial->holders[who];
    if (trial->told != expected(trial, holder))
        fail_msg("%s beside %s, trial %s, step %d: told \"%s\", not \"%s\"", way_names[holder->way],
                 way_names[trial->holders[1 - who].way], trial->id, at, db_status_text(trial->told),
                 db_status_text(expected(trial, holder)));
    if (trial->told == DB_OK)
        accept(trial, holder);
}

/* An account as an item, for the model. */
static void read_row(struct fixture *fixture, const char *id, db_item *ret, db_account *ret_account)
{
    if (!of_accounts) {
        assert_int_equal(DB_OK, db_read_item(fixture->reader, id, ret));
        return;
    }
    assert_int_equal(DB_OK, db_read_account(fixture->reader, id, ret_account));
    *ret = (db_item){.stock = ret_account->balance,
                     .version = ret_account->version,
                     .last_fence = ret_account->last_fence,
                     .epoch = ret_account->epoch};
    memcpy(ret->guard, ret_account->guard, sizeof ret->guard);
}

/* -- all of it -------------------------------------------------------------------------------- */

static void take_step(struct fixture *fixture, int at)
{
    for (size_t i = 0; i < n_trials; i++) {
        struct trial *trial = &trials[i];
        trial->writes = at < trial->n && trial->steps[at] == PATCH;
        if (at >= trial->n || trial->steps[at] == PATCH)
            continue;
        struct holder *holder = &trial->holders[trial->steps[at]];
        if (holder->steps++ > 0) { /* who has read that it was done decides not to write */
            trial->writes = holder->way == PUT_ORDER      ? holder->order.state == DB_RESERVED
                            : holder->way == FENCED_ORDER ? holder->order.state <= DB_PAID
                                                          : true;
            continue;
        }
        read_row(fixture, trial->id, &holder->item, &holder->account);
        if (!of_accounts)
            assert_int_equal(DB_OK, db_read_order(fixture->reader, trial->id, &holder->order));
    }
    assert_int_equal(DB_OK, db_run(fixture->store, work_step, &at, NULL));
    for (size_t i = 0; i < n_trials; i++)
        if (trials[i].writes)
            judge(&trials[i], at);
}

/* The rows are as the model says: so no accepted write is lost, but where a plain one came over
 * another, which no change of guard can bring about. */
static void look_at_the_rows(struct fixture *fixture, int *ret_lost)
{
    for (size_t i = 0; i < n_trials; i++) {
        const struct trial *trial = &trials[i];
        db_item item;
        db_account account;
        db_order order = {.version = 1};
        read_row(fixture, trial->id, &item, &account);
        if (!of_accounts)
            assert_int_equal(DB_OK, db_read_order(fixture->reader, trial->id, &order));
        assert_int_equal(STOCK - trial->sold, item.stock);
        assert_int_equal(trial->version, item.version);
        assert_int_equal(trial->last_fence, item.last_fence);
        assert_int_equal(trial->guard, item.guard[0]);
        assert_int_equal(1, item.epoch);
        assert_int_equal(trial->order_state, order.state);
        assert_int_equal(trial->order_version, order.version);
        assert_int_equal(trial->order_fence, order.last_fence);
        if (!trial->lost)
            continue;
        ++*ret_lost;
        assert_true(trial->holders[0].way == PLAIN || trial->holders[1].way == PLAIN);
    }
}

static void try_all(struct fixture *fixture, int patches, int *ret_lost)
{
    int left[HOLDERS + 1] = {2, 2, patches};
    uint8_t steps[STEPS_MAX];
    n_trials = 0;
    *ret_lost = 0;
    add_trials(patches, left, steps, 0);
    const size_t ways = of_accounts ? PUT_ORDER : WAYS;
    assert_int_equal(n_trials, ways * ways * (patches == 0 ? 6 : patches == 1 ? 30 : 90));
    assert_int_equal(DB_OK, db_run(fixture->store, work_rows, NULL, NULL));
    for (int at = 0; at < 2 * HOLDERS + patches; at++)
        take_step(fixture, at);
    look_at_the_rows(fixture, ret_lost);
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

/* What a guard without a fence loses, it loses without a change of guard as well. */
TEST_THAT(holders_of_one_guard_are_as_before)
{
    int lost;
    try_all(*state, 0, &lost);
    assert_true(lost > 0);
}

TEST_THAT(no_write_crosses_a_change_of_guard)
{
    int lost;
    try_all(*state, 1, &lost);
    for (size_t i = 0; i < n_trials; i++)
        for (int h = 0; h < HOLDERS; h++)
            assert_true(trials[i].holders[h].steps == 2);
}

/* A guard that changes and changes back: a fence and a version still keep every old write out. */
TEST_THAT(a_guard_may_change_back)
{
    int lost;
    try_all(*state, 2, &lost);
}

/* The same of accounts. */
TEST_THAT(no_write_of_an_account_crosses_a_change_of_guard)
{
    struct fixture *fixture = *state;
    db_books books;
    int lost;
    of_accounts = true;
    for (int patches = 0; patches <= PATCHES_MAX; patches++)
        try_all(fixture, patches, &lost);
    of_accounts = false;
    assert_int_equal(DB_OK, db_audit_books(fixture->reader, &books, NULL));
    assert_true(books.ok);
}
