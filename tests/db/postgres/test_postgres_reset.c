/*
 * PostgreSQL: an order is paid while its item is reset, or gets another guard. The payment commits
 * before that, or it is refused. Tested at every isolation level and for every way to write an
 * order.
 */
#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

static const char *const levels[] = {"read-committed", "repeatable-read", "serializable"};
enum { LEVELS = sizeof levels / sizeof *levels };

enum way { PUT_ANY, PUT_OVER_READ, PUT_FENCED, MOVE, WAYS };
static const db_put ways[] = {
    [PUT_ANY] = {.expected_version = -1, .item_guard = ""},
    [PUT_OVER_READ] = {.expected_version = 0, .item_guard = ""},
    [PUT_FENCED] = {.fence = 1, .expected_version = 0, .item_guard = ""},
};

/* A transaction on its own thread. It can be stopped after its write. */
struct actor {
    pthread_t thread;
    db *store;
    db_work *work;
    enum way way;
    db_order order;
    db_item item;
    sem_t *written, *go_on; /* NULL: does not stop */
    db_status status;
    atomic_bool done;
};

static db_status stop(struct actor *actor)
{
    if (actor->written) {
        sem_post(actor->written);
        sem_wait(actor->go_on);
        actor->written = NULL; /* a repeated run does not stop */
    }
    return DB_OK;
}

static db_status work_pay(db_tx *tx, void *arg)
{
    struct actor *actor = arg;
    db_order order = actor->order;
    order.state = DB_PAID;
    order.version++;
    db_status status = actor->way == MOVE ? db_tx_move_order(tx, &order, "", DB_RESERVED, DB_PAID)
                                          : db_tx_put_order(tx, &order, &ways[actor->way]);
    if (status == DB_OK)
        status = db_tx_read_order(tx, order.id, false, &order); /* the server executes the write */
    return status == DB_OK ? stop(actor) : status;
}

static db_status work_retire(db_tx *tx, void *arg)
{
    struct actor *actor = arg;
    db_order order = actor->order;
    order.state = DB_CLOSED;
    order.version++;
    return db_tx_put_order(tx, &order, &(db_put){.former_sale = true});
}

static db_status work_reset(db_tx *tx, void *arg)
{
    struct actor *actor = arg;
    db_status status = db_tx_reset_item(tx, &actor->item, "test", "test");
    return status == DB_OK ? stop(actor) : status;
}

static db_status work_reset_under_b(db_tx *tx, void *arg)
{
    struct actor *actor = arg;
    strcpy(actor->item.guard, "B");
    return work_reset(tx, actor);
}

static db_status work_set_guard_b(db_tx *tx, void *arg)
{
    struct actor *actor = arg;
    db_setting setting = {
        .former_guard = "", .guard_name = "B", .instance = "test", .txn_id = "setting\tx"};
    db_status status = db_tx_hold_item(tx, actor->item.id, &actor->item);
    strcpy(actor->item.guard, "B");
    return status == DB_OK ? db_tx_set_item(tx, &actor->item, &setting) : status;
}

static db_status work_sell(db_tx *tx, void *arg)
{
    struct actor *actor = arg;
    db_item item;
    db_status status = db_tx_read_item(tx, actor->item.id, true, &item);
    item.stock--;
    item.version++;
    if (status == DB_OK)
        status = db_tx_put_item(tx, &item, &ways[PUT_ANY]);
    return status == DB_OK ? stop(actor) : status;
}

static void *actor_main(void *arg)
{
    struct actor *actor = arg;
    actor->status = db_run(actor->store, actor->work, actor, NULL);
    atomic_store(&actor->done, true);
    return NULL;
}

static void start(struct actor *actor)
{
    assert_int_equal(0, pthread_create(&actor->thread, NULL, actor_main, actor));
}

/* -- one race ---------------------------------------------------------------------------------- */

struct race {
    struct fixture *fixture;
    char url[160];
    sem_t written, go_on;
    struct actor first, second;
};

static db_status work_insert_order(db_tx *tx, void *arg)
{
    return db_tx_insert_order(tx, arg);
}

static struct actor make_actor(struct race *race, db_work *work, enum way way)
{
    struct actor actor = {.store = race->fixture->store, .work = work, .way = way};
    assert_int_equal(DB_OK, db_read_item(race->fixture->reader, "1", &actor.item));
    assert_int_equal(DB_OK, db_read_order(race->fixture->reader, "o", &actor.order));
    actor.item.stock = 0;
    return actor;
}

/* Creates an item and an order at this isolation level. `first` stops after its write. */
static void race_begin(struct race *race, struct fixture *fixture, const char *level,
                       db_work *first, db_work *second, enum way way)
{
    race->fixture = fixture;
    fixture_close(fixture);
    pg_empty_database(fixture->url, sizeof fixture->url);
    snprintf(race->url, sizeof race->url, "%s%sisolation=%s", fixture->url,
             strchr(fixture->url, '?') ? "&" : "?", level);
    assert_int_equal(DB_OK, db_open(&(db_options){.url = race->url}, &fixture->store, NULL));
    assert_int_equal(DB_OK, db_reader_open(fixture->store, &fixture->reader, NULL));
    db_item item = fixture_item(fixture, "1", 10);
    db_order order = {
        .id = "o", .item_id = "1", .user_id = "u", .quantity = 1, .item_epoch = item.epoch};
    assert_int_equal(DB_OK, db_run(fixture->store, work_insert_order, &order, NULL));
    sem_init(&race->written, 0, 0);
    sem_init(&race->go_on, 0, 0);
    race->first = make_actor(race, first, way);
    race->second = make_actor(race, second, way);
    race->first.written = &race->written;
    race->first.go_on = &race->go_on;
    start(&race->first);
    sem_wait(&race->written);
    start(&race->second);
}

/* Waits until the second actor waits for a lock (true) or has ended (false). */
static bool second_waits(struct race *race)
{
    while (!atomic_load(&race->second.done))
        if (fixture_sql_int(race->fixture, "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0)
            return true;
    return false;
}

static void race_end(struct race *race)
{
    sem_post(&race->go_on);
    pthread_join(race->first.thread, NULL);
    pthread_join(race->second.thread, NULL);
    sem_destroy(&race->written);
    sem_destroy(&race->go_on);
}

static db_order_state state_of(struct race *race)
{
    db_order order;
    assert_int_equal(DB_OK, db_read_order(race->fixture->reader, "o", &order));
    return order.state;
}

/* -- claims ------------------------------------------------------------------------------------ */

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_POSTGRES;

TEST_THAT(a_reset_waits_for_a_payment_that_has_been_written)
{
    for (int level = 0; level < LEVELS; level++) {
        for (enum way way = PUT_ANY; way < WAYS; way++) {
            struct race race = {.fixture = NULL};
            race_begin(&race, *state, levels[level], work_pay, work_reset, way);
            bool waited = second_waits(&race);
            race_end(&race);
            if (!waited)
                fail_msg("%s, way %d: the reset did not wait", levels[level], (int)way);
            assert_int_equal(DB_OK, race.first.status);
            assert_int_equal(DB_OK, race.second.status);
            assert_int_equal(2, race.second.item.epoch);
            assert_int_equal(DB_PAID, state_of(&race));
        }
    }
}

TEST_THAT(a_payment_behind_a_reset_is_refused)
{
    for (int level = 0; level < LEVELS; level++) {
        for (enum way way = PUT_ANY; way < WAYS; way++) {
            struct race race = {.fixture = NULL};
            race_begin(&race, *state, levels[level], work_reset, work_pay, way);
            bool waited = second_waits(&race);
            race_end(&race);
            if (!waited)
                fail_msg("%s, way %d: the payment did not wait", levels[level], (int)way);
            assert_int_equal(DB_OK, race.first.status);
            assert_int_equal(DB_CONFLICT, race.second.status);
            assert_int_equal(DB_RESERVED, state_of(&race));
        }
    }
}

/* The lock server of the new guard counts its fences anew. */
TEST_THAT(a_new_guard_clears_the_fence_of_a_payment_that_it_waited_for)
{
    static db_work *const changes[] = {work_set_guard_b, work_reset_under_b};
    for (int level = 0; level < LEVELS; level++) {
        for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
            struct race race = {.fixture = NULL};
            db_order order;
            race_begin(&race, *state, levels[level], work_pay, changes[i], PUT_FENCED);
            bool waited = second_waits(&race);
            race_end(&race);
            assert_true(waited);
            assert_int_equal(DB_OK, race.first.status);
            assert_int_equal(DB_OK, race.second.status);
            assert_int_equal(DB_OK, db_read_order(race.fixture->reader, "o", &order));
            if (order.last_fence != 0 || order.version != 2 || order.state != DB_PAID)
                fail_msg("%s, change %d: fence %d, version %d", levels[level], (int)i,
                         (int)order.last_fence, (int)order.version);
        }
    }
}

/* A hot item's sale goes on while its orders are paid; under sql-row, too. */
TEST_THAT(a_sale_and_a_payment_of_one_item_do_not_wait_for_each_other)
{
    for (int level = 0; level < LEVELS; level++) {
        for (enum way way = PUT_ANY; way < WAYS; way++) {
            for (int sale_first = 0; sale_first < 2; sale_first++) {
                struct race race = {.fixture = NULL};
                race_begin(&race, *state, levels[level], sale_first ? work_sell : work_pay,
                           sale_first ? work_pay : work_sell, way);
                bool waited = second_waits(&race);
                race_end(&race);
                assert_false(waited);
                assert_int_equal(DB_OK, race.first.status);
                assert_int_equal(DB_OK, race.second.status);
                assert_int_equal(DB_PAID, state_of(&race));
            }
        }
    }
}

/* The new guard's task closes an order that it read before the payment committed. */
TEST_THAT(an_order_that_was_paid_before_a_reset_is_not_closed_over)
{
    for (int level = 0; level < LEVELS; level++) {
        struct race race = {.fixture = NULL};
        race_begin(&race, *state, levels[level], work_pay, work_retire, PUT_ANY);
        bool waited = second_waits(&race);
        race_end(&race);
        assert_true(waited);
        assert_int_equal(DB_OK, race.first.status);
        assert_int_equal(DB_CONFLICT, race.second.status);
        assert_int_equal(DB_PAID, state_of(&race));
    }
}
