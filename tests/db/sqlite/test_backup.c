/* Backups of a SQLite store that is in use: each copy is the store of one moment, and no half copy
 * ever has the name. e2e/test_backup has the command, beside a service that sells. */
#include "fixture.h"
#include "upkeep.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { COPIES = 12, BALANCE = 1000000 };

static struct fixture copy_of(const struct fixture *fixture)
{
    struct fixture copy = *fixture;
    snprintf(copy.file, sizeof copy.file, "%s/copy.db", fixture->folder);
    snprintf(copy.url, sizeof copy.url, "sqlite:%s", copy.file);
    copy.store = NULL;
    copy.reader = NULL;
    return copy;
}

static void expect_backup(const char *url, const char *file, db_status expected, const char *says)
{
    db_error error = {0};
    assert_int_equal(expected, db_backup(url, file, &error));
    if (strstr(error.message, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, says);
}

static int files_in(const char *path)
{
    int n = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

static void change_once(struct fixture *fixture, const char *key)
{
    struct change change = {
        .delta = -1, .txn_id = key, .how = {.expected_version = -1}, .with_answer = true};
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &change.account));
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
}

TEST_FIXTURE(fixture_setup, fixture_teardown);

/* What is committed is still in the log only. */
TEST_THAT(a_copy_has_all_that_was_committed_and_is_private)
{
    struct fixture *fixture = *state, copy = copy_of(fixture);
    struct stat about;
    fixture_account(fixture, "a", BALANCE);
    change_once(fixture, "k1");
    expect_backup(fixture->url, copy.file, DB_OK, "");
    assert_int_equal(0, stat(copy.file, &about));
    assert_int_equal(0600, about.st_mode & 0777);
    change_once(fixture, "k2"); /* the copy must not have it */
    fixture_open(&copy, NULL);
    assert_true(fixture_audit(&copy, "account:a").ok);
    assert_int_equal(BALANCE - 1, fixture_audit(&copy, "account:a").current);
    change_once(&copy, "k3"); /* it is a store of its own */
    fixture_close(&copy);
    assert_int_equal(BALANCE - 2, fixture_audit(fixture, "account:a").current);
}

TEST_THAT(a_file_that_is_there_stays_as_it_is)
{
    struct fixture *fixture = *state, copy = copy_of(fixture);
    FILE *file = fopen(copy.file, "w");
    assert_non_null(file);
    fputs("mine", file);
    fclose(file);
    const int files = files_in(fixture->folder);
    expect_backup(fixture->url, copy.file, DB_INVALID, "exists already");
    expect_backup(fixture->url, fixture->file, DB_INVALID, "exists already");
    struct stat about;
    assert_int_equal(0, stat(copy.file, &about));
    assert_int_equal(4, about.st_size);
    assert_int_equal(files, files_in(fixture->folder));
}

TEST_THAT(what_cannot_be_copied_is_refused)
{
    struct fixture *fixture = *state, copy = copy_of(fixture);
    expect_backup("sqlite:/nowhere/store.db", copy.file, DB_UNAVAILABLE, "cannot be opened");
    expect_backup(fixture->url, "/nowhere/copy.db", DB_UNAVAILABLE, "cannot be made");
    expect_backup(fixture->url, "", DB_INVALID, "name");
    expect_backup("oracle:x", copy.file, DB_INVALID, "unknown kind");
    expect_backup("postgres://u@h/d", copy.file, DB_INVALID, "pg_dump");
    fixture_close(fixture);
    fixture_open(fixture, &(db_options){.shared_file = true});
    expect_backup(fixture->url, copy.file, DB_INVALID, "--db-shared");
    fixture_close(fixture);
    fixture_sql(fixture, "PRAGMA application_id = 7");
    expect_backup(fixture->url, copy.file, DB_INVALID, "not a database of this service");
    assert_int_equal(-1, access(copy.file, F_OK));
}

TEST_THAT(a_copy_without_room_leaves_nothing)
{
    struct fixture *fixture = *state, copy = copy_of(fixture);
    struct rlimit before, small = {.rlim_cur = 20000};
    fixture_account(fixture, "a", BALANCE);
    assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &before));
    small.rlim_max = before.rlim_max;
    const int files = files_in(fixture->folder);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &small));
    db_error error = {0};
    const db_status status = db_backup(fixture->url, copy.file, &error);
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &before));
    assert_true(status == DB_FULL || status == DB_FAILED);
    assert_true(error.message[0] != '\0');
    assert_int_equal(files, files_in(fixture->folder));
    expect_backup(fixture->url, copy.file, DB_OK, "");
}

/* -- beside a writer -------------------------------------------------------------------------- */

struct writer {
    struct fixture *fixture;
    atomic_bool stop;
    atomic_int changes; /* that are committed */
};

static void *write_on(void *arg)
{
    struct writer *writer = arg;
    char key[16];
    while (!writer->stop) {
        snprintf(key, sizeof key, "k%d", writer->changes);
        change_once(writer->fixture, key);
        writer->changes++;
    }
    return NULL;
}

TEST_THAT(each_copy_beside_a_writer_is_whole)
{
    struct fixture *fixture = *state, copy = copy_of(fixture);
    struct writer writer = {.fixture = fixture};
    pthread_t thread;
    fixture_account(fixture, "a", BALANCE);
    assert_int_equal(0, pthread_create(&thread, NULL, write_on, &writer));
    for (int i = 0; i < COPIES; i++) {
        const int before = writer.changes;
        while (writer.changes == before)
            sched_yield();
        const int told = writer.changes;
        expect_backup(fixture->url, copy.file, DB_OK, "");
        const int after = writer.changes + 1;
        fixture_open(&copy, NULL);
        db_audit_row row = fixture_audit(&copy, "account:a");
        assert_true(row.ok);
        assert_in_range(BALANCE - row.current, told, after);
        fixture_close(&copy);
        assert_int_equal(row.current, BALANCE - fixture_sql_int(&copy, "SELECT count(*) FROM "
                                                                       "idempotency"));
        assert_int_equal(0, unlink(copy.file));
    }
    writer.stop = true;
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_true(fixture_audit(fixture, "account:a").ok);
}
