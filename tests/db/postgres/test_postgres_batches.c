/* The rows of a batch go to PostgreSQL as one statement of each kind. The server refuses some of
 * them. */
#include "batch.h"

#include <pthread.h>

TEST_FIXTURE(batch_setup, fixture_teardown);
ON_POSTGRES;

TEST_THAT(text_that_is_not_utf8_undoes_the_batch)
{
    struct fixture *fixture = *state;
    struct batch batch = make_batch(fixture, "b", 64);
    batch.unreadable = 31;
    assert_int_equal(DB_INVALID, batch_run(&batch));
    expect_sold(fixture, 0);
    batch.unreadable = NOBODY;
    assert_int_equal(DB_OK, batch_run(&batch));
    expect_sold(fixture, 64);
}

TEST_THAT(a_connection_lost_amid_a_batch_leaves_nothing_of_it)
{
    struct fixture *fixture = *state;
    struct batch batch = make_batch(fixture, "b", 64);
    fixture_sql(fixture, "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                         " IF NEW.id = 'b-31' THEN"
                         " PERFORM pg_terminate_backend(pg_backend_pid()); END IF;"
                         " RETURN NEW; END $$;"
                         "CREATE TRIGGER planted AFTER INSERT ON orders"
                         " FOR EACH ROW EXECUTE FUNCTION planted()");
    assert_int_equal(DB_UNAVAILABLE, batch_run(&batch));
    fixture_sql(fixture, "DROP TRIGGER planted ON orders;"
                         "CREATE CONSTRAINT TRIGGER planted AFTER INSERT ON orders"
                         " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION planted()");
    assert_int_equal(DB_UNKNOWN, batch_run(&batch));
    fixture_sql(fixture, "DROP TRIGGER planted ON orders");
    expect_sold(fixture, 0);
    assert_int_equal(DB_OK, batch_run(&batch));
    expect_sold(fixture, 64);
}

TEST_THAT(a_row_that_the_server_leaves_out_undoes_the_batch)
{
    struct fixture *fixture = *state;
    struct batch batch = make_batch(fixture, "b", 64);
    fixture_sql(fixture, "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                         " IF NEW.txn_id = 'b-31' THEN RETURN NULL; END IF; RETURN NEW; END $$;"
                         "CREATE TRIGGER planted BEFORE INSERT ON ledger"
                         " FOR EACH ROW EXECUTE FUNCTION planted()");
    assert_int_equal(DB_REFUSED, batch_run(&batch));
    expect_sold(fixture, 0);
}

static void take_a_key_meanwhile(struct batch *batch)
{
    fixture_sql(batch->fixture,
                "INSERT INTO idempotency VALUES ('b-31', 'order', 201, 'the first one''s', 0)");
}

TEST_THAT(a_key_taken_since_the_snapshot_is_told_at_every_isolation)
{
    static const char *const levels[] = {"read-committed", "repeatable-read", "serializable"};
    struct fixture *fixture = *state;
    const size_t length = strlen(fixture->url);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        snprintf(fixture->url + length, sizeof fixture->url - length, "?isolation=%s", levels[i]);
        fixture_close(fixture);
        fixture_open(fixture, NULL);
        fixture->url[length] = '\0';
        struct batch batch = make_batch(fixture, "b", 64);
        batch.meanwhile = take_a_key_meanwhile;
        assert_int_equal(DB_DUPLICATE, batch_run(&batch));
        assert_int_equal(31, batch.told);
        assert_int_equal(2, batch.runs);
        expect_sold(fixture, 0);
        fixture_sql(fixture, "DELETE FROM idempotency WHERE key = 'b-31'");
    }
}

/* Two instances write the halves of the same keys in opposite order. Each has written one half when
 * it starts the other. */
struct instance {
    pthread_t thread;
    db *store;
    int first;
    pthread_barrier_t *both_have_half; /* at the first run only */
    int runs;
    db_status status;
};

static db_status write_half(db_tx *tx, int from)
{
    db_status status = DB_OK;
    for (int i = from; i < from + 50 && status == DB_OK; i++) {
        db_answer answer = {.http_status = 201};
        snprintf(answer.key, sizeof answer.key, "both-%d", i);
        status = db_tx_insert_answer(tx, &answer);
    }
    return status;
}

static db_status work_halves(db_tx *tx, void *arg)
{
    struct instance *instance = arg;
    db_item item;
    db_status status = write_half(tx, instance->first);
    if (status == DB_OK)
        status = db_tx_read_item(tx, "1", false, &item); /* the server has executed the writes */
    if (instance->runs++ == 0)
        pthread_barrier_wait(instance->both_have_half);
    return status == DB_OK ? write_half(tx, 50 - instance->first) : status;
}

static void *instance_main(void *arg)
{
    struct instance *instance = arg;
    instance->status = db_run(instance->store, work_halves, instance, NULL);
    return NULL;
}

TEST_THAT(of_two_instances_with_the_same_keys_one_writes_them)
{
    struct fixture *fixture = *state;
    struct instance instances[] = {{.first = 0}, {.first = 50}};
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(DB_OK,
                         db_open(&(db_options){.url = fixture->url}, &instances[i].store, NULL));
        instances[i].both_have_half = &barrier;
        assert_int_equal(0,
                         pthread_create(&instances[i].thread, NULL, instance_main, &instances[i]));
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(instances[i].thread, NULL);
        db_close(instances[i].store);
    }
    pthread_barrier_destroy(&barrier);
    int winner = instances[0].status == DB_OK ? 0 : 1;
    assert_int_equal(DB_OK, instances[winner].status);
    assert_int_equal(DB_DUPLICATE, instances[1 - winner].status);
    assert_int_equal(100 + 1, count_rows(fixture, "idempotency"));
}
