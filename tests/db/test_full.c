/* A full disk: db_ping() reports it as long as no commit fits, even if a small write fits. */
#include <stdint.h>

#include "power_world.h"
#include "tests.h"

enum { DISK = 24 << 20, ANSWERS = 64, POLLS = 40, COMMITS_MAX = 2000, PAGE = 4096, PAGES_MAX = 16 };

static int n_commits;

/* Random keys: each is on another page. */
static db_status work_answers(db_tx *tx, void *arg)
{
    uint64_t random = (uint64_t) * (int *)arg * 0x9e3779b97f4a7c15u;
    db_status status = DB_OK;
    for (int i = 0; i < ANSWERS && status == DB_OK; i++) {
        db_answer answer = {.http_status = 201, .request = "order"};
        random = random * 6364136223846793005u + 1442695040888963407u;
        snprintf(answer.key, sizeof answer.key, "%016llx", (unsigned long long)random);
        memset(answer.body, 'b', DB_BODY_MAX);
        status = db_tx_insert_answer(tx, &answer);
    }
    return status;
}

static db_status commit(void)
{
    n_commits++;
    return db_run(world.store, work_answers, &n_commits, NULL);
}

static db_status work_small(db_tx *tx, void *arg)
{
    (void)arg;
    return db_tx_put_task(tx, "small", "", 1, 1);
}

static void fill_disk(void)
{
    power.room = DISK;
    while (commit() == DB_OK)
        assert_true(n_commits < COMMITS_MAX);
    assert_int_equal(DB_FULL, commit());
}

/* What is left of the disk is chance: at least one small write is to fit. */
static void leave_room_for_a_small_write(void)
{
    for (int i = 0; db_run(world.store, work_small, NULL, NULL) != DB_OK; i++) {
        assert_true(i < PAGES_MAX);
        power.room += PAGE;
    }
}

TEST_THAT_WITH(a_ping_of_a_full_disk_fails_until_a_commit_fits, make_folder, remove_folder)
{
    int ready = 0, lies = 0, small = 0;
    start_world(false);
    assert_true(open_store());
    fill_disk();
    leave_room_for_a_small_write();
    for (int i = 0; i < POLLS; i++) {
        const bool ping = db_ping(world.store) == DB_OK;
        const bool fits = commit() == DB_OK;
        ready += ping;
        lies += ping && !fits;
        small += db_run(world.store, work_small, NULL, NULL) == DB_OK;
    }
    print_message("%d polls: %d ready, %d of them false; %d small writes fitted\n", POLLS, ready,
                  lies, small);
    assert_true(small > 0);
    assert_int_equal(0, lies);
    assert_int_equal(DB_FULL, db_ping(world.store));
    power.room = 0;
    assert_int_equal(DB_OK, db_ping(world.store));
    assert_int_equal(DB_OK, commit());
    close_store();
    power_forget(world.file);
}

int main(void)
{
    if (power_install() != SQLITE_OK)
        return 1;
    return tests_run();
}
