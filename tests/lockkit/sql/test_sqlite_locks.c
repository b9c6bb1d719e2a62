/* Locks in a SQLite file: several processes, and defects of the file. */
#include "lock_world.h"
#include "process.h"
#include "tests.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "lock:item:1"

enum {
    PROCESSES = 4,
    THREADS = 8,
    LONG_MS = 20000,
    SHORT_MS = 200,
    COMMAND_MS = 300,
    GRACE_MS = 3000,
    KILLS = 12,
    GRANTS_BEFORE_KILL = 5
};

/* Shared by the children and the test. */
struct shared {
    volatile int64_t value; /* only the holder accesses it */
    _Atomic int64_t sum, failed;
    _Atomic uint64_t fence; /* last one granted */
    _Atomic int64_t grants;
};

static struct shared *shared;
static char endpoints[WORLD_ENDPOINTS_MAX];

static const char *file(void)
{
    return endpoints + strlen("sqlite:");
}

static void in_new_file(const char *name)
{
    snprintf(endpoints, sizeof endpoints, "sqlite:%s/%s", sandbox_dir(world_sandbox), name);
}

static lk_status open_it(lk_client **ret, lk_error *error)
{
    lk_options options = {.command_timeout_ms = COMMAND_MS};
    return lk_open("sql-unique", endpoints, &options, ret, error);
}

static sqlite3 *open_raw(const char *sql)
{
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(file(), &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    return handle;
}

/* -- several processes ---------------------------------------------------------------------------
 */

struct contender {
    pthread_t thread;
    lk_client *client;
    int64_t until_ms;
};

/* The value is plain memory on purpose: only the lock orders the accesses. */
__attribute__((no_sanitize("thread"))) static void *contend(void *arg)
{
    struct contender *contender = arg;
    int64_t grants = 0;
    do {
        lk_hold hold;
        if (world_acquire(contender->client, KEY, LONG_MS, LONG_MS, &hold) != LK_OK) {
            atomic_fetch_add(&shared->failed, 1);
            break;
        }
        int64_t read = shared->value;
        lk_env_system()->sleep_us(NULL, 1);
        shared->value = read + 1;
        grants++;
        if (lk_release(&hold) != LK_OK)
            atomic_fetch_add(&shared->failed, 1);
    } while (test_now_ms() < contender->until_ms);
    atomic_fetch_add(&shared->sum, grants);
    return NULL;
}

static void run_child(int64_t for_ms)
{
    struct contender contenders[THREADS];
    lk_client *client;
    if (lk_open("sql-unique", endpoints, NULL, &client, NULL) != LK_OK)
        _exit(1);
    for (int i = 0; i < THREADS; i++) {
        contenders[i] = (struct contender){.client = client, .until_ms = test_now_ms() + for_ms};
        if (pthread_create(&contenders[i].thread, NULL, contend, &contenders[i]) != 0)
            _exit(1);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(contenders[i].thread, NULL);
    lk_close(client);
    _exit(0);
}

GROUP_FIXTURE(world_open, world_close);

TEST_THAT(contenders_of_several_processes_exclude_each_other)
{
    pid_t children[PROCESSES];
    in_new_file("contest.db");
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            run_child(test_size(1500, 30000));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(atomic_load(&shared->failed), 0);
    assert_true(atomic_load(&shared->sum) >= PROCESSES * THREADS);
    assert_int_equal(shared->value, atomic_load(&shared->sum));
}

static void grant_for_ever(void)
{
    lk_client *client;
    if (lk_open("sql-unique", endpoints, NULL, &client, NULL) != LK_OK)
        _exit(1);
    for (;;) {
        lk_hold hold;
        if (world_acquire(client, KEY, SHORT_MS, LONG_MS, &hold) != LK_OK)
            _exit(1);
        atomic_store(&shared->fence, hold.fence);
        atomic_fetch_add(&shared->grants, 1);
        lk_release(&hold);
    }
}

static bool granted_enough(void *arg)
{
    (void)arg;
    return atomic_load(&shared->grants) >= GRANTS_BEFORE_KILL;
}

static int is_ok(void *arg, int n, char **values, char **names)
{
    (void)names;
    *(bool *)arg = n == 1 && strcmp(values[0], "ok") == 0;
    return 0;
}

static void expect_sound(void)
{
    bool sound = false;
    sqlite3 *handle = open_raw("SELECT 1");
    assert_int_equal(sqlite3_exec(handle, "PRAGMA integrity_check", is_ok, &sound, NULL),
                     SQLITE_OK);
    sqlite3_close(handle);
    assert_true(sound);
}

/* The writers are killed at random points, often in a commit. */
TEST_THAT(killed_writers_leave_a_sound_file_and_no_fence_twice)
{
    lk_client *client;
    in_new_file("killed.db");
    for (int i = 0; i < KILLS; i++) {
        atomic_store(&shared->grants, 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            grant_for_ever();
        assert_true(wait_until(granted_enough, NULL, LONG_MS));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);

        lk_hold hold;
        assert_int_equal(open_it(&client, NULL), LK_OK);
        assert_int_equal(world_acquire(client, KEY, 0, SHORT_MS + GRACE_MS, &hold), LK_OK);
        assert_true(hold.fence > atomic_load(&shared->fence));
        assert_int_equal(lk_release(&hold), LK_OK);
        lk_close(client);
        expect_sound();
    }
}

/* -- the file -----------------------------------------------------------------------------------
 */

TEST_THAT(file_that_is_no_lock_file_is_refused)
{
    lk_client *client;
    lk_error error;
    in_new_file("shop.db");
    sqlite3 *shop = open_raw("PRAGMA journal_mode = WAL; CREATE TABLE items (id)");
    assert_int_equal(open_it(&client, &error), LK_INVALID);
    assert_non_null(strstr(error.message, "WAL"));
    sqlite3_close(shop);
    assert_int_equal(open_it(&client, NULL), LK_INVALID); /* also if no process has it open */

    in_new_file("text.db");
    FILE *text = fopen(file(), "we");
    assert_non_null(text);
    for (int i = 0; i < 200; i++)
        fputs("this is no database\n", text);
    fclose(text);
    assert_int_equal(open_it(&client, &error), LK_INVALID);
    assert_int_equal(error.status, LK_INVALID);

    in_new_file("no-such-folder/locks.db");
    assert_int_equal(open_it(&client, &error), LK_INVALID);
    assert_non_null(strstr(error.message, "no-such-folder"));
    static const char *const nameless[] = {"sqlite:", "sqlite::memory:", "mysql://x", NULL};
    for (size_t i = 0; nameless[i] != NULL; i++)
        assert_int_equal(lk_open("sql-unique", nameless[i], NULL, &client, NULL), LK_INVALID);
    assert_int_equal(lk_open("sql-unique", NULL, NULL, &client, NULL), LK_INVALID);
}

TEST_THAT(file_that_another_writes_to_costs_bounded_time)
{
    lk_client *client, *late;
    lk_hold hold;
    in_new_file("busy.db");
    assert_int_equal(open_it(&client, NULL), LK_OK);
    sqlite3 *writer = open_raw("BEGIN EXCLUSIVE");
    int64_t start_ms = test_now_ms();
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_UNAVAILABLE);
    assert_int_equal(lk_ping(client), LK_UNAVAILABLE);
    assert_in_range(test_now_ms() - start_ms, 2 * COMMAND_MS, 2 * COMMAND_MS + GRACE_MS);
    assert_int_equal(open_it(&late, NULL), LK_OK); /* the error shows at the first try */
    assert_int_equal(lk_try_acquire(late, KEY, &hold), LK_UNAVAILABLE);
    sqlite3_close(writer);
    assert_int_equal(lk_try_acquire(late, KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(late);
    lk_close(client);
}

/* The tokens of the locks are in it. */
TEST_THAT(nobody_else_may_read_a_lock_file)
{
    lk_client *client;
    lk_hold hold;
    struct stat about;
    mode_t umask_before = umask(022);
    in_new_file("private.db");
    assert_int_equal(open_it(&client, NULL), LK_OK);
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
    umask(umask_before);
    assert_int_equal(stat(file(), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

/* Two files of one name would be two locks. */
TEST_THAT(file_that_was_taken_away_is_not_written_to)
{
    lk_client *old, *new;
    lk_hold hold, second;
    in_new_file("moved.db");
    assert_int_equal(open_it(&old, NULL), LK_OK);
    assert_int_equal(lk_try_acquire(old, KEY, &hold), LK_OK);
    assert_int_equal(unlink(file()), 0);
    assert_int_equal(open_it(&new, NULL), LK_OK);
    assert_int_equal(lk_try_acquire(new, KEY, &second), LK_OK); /* the new file has no locks */
    assert_int_not_equal(lk_release(&hold), LK_OK);
    assert_int_equal(lk_try_acquire(old, KEY, &hold), LK_TIMEOUT);
    assert_int_equal(lk_release(&second), LK_OK);
    assert_int_equal(lk_try_acquire(old, KEY, &hold), LK_OK);
    assert_int_equal(lk_try_acquire(new, KEY, &second), LK_TIMEOUT);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(old);
    lk_close(new);
}

int main(void)
{
    world = &family_sqlite;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    return tests_run();
}
