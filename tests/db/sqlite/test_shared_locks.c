/* Who is taken for a writer on a shared file. A reader that finds a journal leaves it alone while
 * somebody writes, and rolls it back otherwise. Taken wrongly, it reads half of a commit. And what
 * it does when the journal of a killed process cannot be flushed. */
#include "child.h"
#include "sqlite.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

enum { CONNECTIONS = 3 };

static struct fixture fixture;
static sqlite3 *handles[CONNECTIONS];
static sqlite3_file *files[CONNECTIONS];

static int open_all(void **state)
{
    (void)state;
    fixture = fixture_folder();
    fixture_open(&fixture, &(db_options){.shared_file = true});
    fixture_close(&fixture);
    for (int i = 0; i < CONNECTIONS; i++) {
        assert_int_equal(SQLITE_OK, sqlite3_open_v2(fixture.file, &handles[i],
                                                    SQLITE_OPEN_READWRITE, commit_marking_vfs()));
        assert_int_equal(SQLITE_OK, sqlite3_file_control(handles[i], "main",
                                                         SQLITE_FCNTL_FILE_POINTER, &files[i]));
    }
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (int i = 0; i < CONNECTIONS; i++) {
        files[i]->pMethods->xUnlock(files[i], SQLITE_LOCK_NONE);
        sqlite3_close(handles[i]);
    }
    fixture_remove(&fixture);
    return 0;
}

static int take(int i, int level)
{
    return files[i]->pMethods->xLock(files[i], level);
}

static bool sees_a_writer(int i)
{
    int is = -1;
    assert_int_equal(SQLITE_OK, files[i]->pMethods->xCheckReservedLock(files[i], &is));
    return is == 1;
}

TEST_FIXTURE(open_all, close_all);

/* A connection that rolls back an unfinished commit asks for the exclusive lock, without the
 * reserved one. It does not get it while another connection reads. SQLite's own files take it for a
 * writer meanwhile, if both are in one process. */
TEST_THAT(a_connection_that_would_roll_back_is_no_writer)
{
    assert_int_equal(SQLITE_OK, take(0, SQLITE_LOCK_SHARED));
    assert_int_equal(SQLITE_OK, take(1, SQLITE_LOCK_SHARED));
    assert_int_equal(SQLITE_BUSY, take(0, SQLITE_LOCK_EXCLUSIVE));
    assert_false(sees_a_writer(1));
}

/* The other process has locks of its own, and says what it sees. */
static int other_process(void *arg, int report)
{
    sqlite3 *handle;
    sqlite3_file *file;
    int is = 0;
    (void)arg;
    if (sqlite3_open_v2(fixture.file, &handle, SQLITE_OPEN_READWRITE, commit_marking_vfs()) !=
            SQLITE_OK ||
        sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        file->pMethods->xLock(file, SQLITE_LOCK_SHARED) != SQLITE_OK ||
        file->pMethods->xCheckReservedLock(file, &is) != SQLITE_OK)
        return 1;
    child_say(report, is ? 'w' : 'n');
    return 0;
}

static void others_see(bool writer)
{
    struct child child = child_start(other_process, NULL);
    child_expect(&child, writer ? 'w' : 'n');
    child_expect_success(&child);
    assert_int_equal(sees_a_writer(1), writer);
    assert_int_equal(sees_a_writer(2), writer);
}

TEST_THAT(a_writer_is_seen_by_all_until_it_ends)
{
    for (int i = 0; i < CONNECTIONS; i++)
        assert_int_equal(SQLITE_OK, take(i, SQLITE_LOCK_SHARED));
    others_see(false);
    assert_int_equal(SQLITE_OK, take(0, SQLITE_LOCK_RESERVED));
    assert_true(sees_a_writer(0));
    others_see(true);
    assert_int_equal(SQLITE_BUSY, take(1, SQLITE_LOCK_RESERVED));
    assert_int_equal(SQLITE_BUSY,
                     take(0, SQLITE_LOCK_EXCLUSIVE)); /* its commit waits for readers */
    assert_true(sees_a_writer(1));
    assert_int_equal(SQLITE_OK, files[0]->pMethods->xUnlock(files[0], SQLITE_LOCK_SHARED));
    others_see(false);
    assert_int_equal(SQLITE_OK, take(1, SQLITE_LOCK_RESERVED));
    assert_true(sees_a_writer(0));
}

/* -- the journal of a process that was killed within a commit -----------------------------------
 */

/* Its first byte says that it is not to be rolled back. */
static void leave_journal_and_mark(void)
{
    char name[100];
    static const char journal[4096];
    const struct {
        const char *suffix, *content;
        size_t size;
    } files_left[] = {{"-journal", journal, sizeof journal}, {"-lock", "\1", 1}};
    for (size_t i = 0; i < sizeof files_left / sizeof files_left[0]; i++) {
        snprintf(name, sizeof name, "%s%s", fixture.file, files_left[i].suffix);
        const int fd = open(name, O_RDWR | O_CREAT, 0600);
        assert_int_equal(pwrite(fd, files_left[i].content, files_left[i].size, 0),
                         files_left[i].size);
        close(fd);
    }
}

static bool is_marked(void)
{
    char name[100], mark = 0;
    snprintf(name, sizeof name, "%s-lock", fixture.file);
    const int fd = open(name, O_RDONLY);
    assert_int_equal(pread(fd, &mark, 1, 0), 1);
    close(fd);
    return mark != 0;
}

static struct rlimit set_limit(__rlimit_resource_t resource, rlim_t most)
{
    struct rlimit before, limit;
    assert_int_equal(0, getrlimit(resource, &before));
    limit = (struct rlimit){.rlim_cur = most, .rlim_max = before.rlim_max};
    assert_int_equal(0, setrlimit(resource, &limit));
    return before;
}

static void expect_a_later_try_flushes(int code)
{
    assert_int_not_equal(SQLITE_OK, code);
    assert_int_not_equal(SQLITE_IOERR_FSYNC, code); /* it would end all writing */
    assert_true(is_marked());
    assert_int_equal(SQLITE_OK, take(0, SQLITE_LOCK_SHARED));
    assert_false(is_marked());
}

TEST_THAT(a_journal_that_has_no_room_is_flushed_later)
{
    signal(SIGXFSZ, SIG_IGN);
    leave_journal_and_mark();
    const struct rlimit before = set_limit(RLIMIT_FSIZE, 1024);
    const int code = take(0, SQLITE_LOCK_SHARED);
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &before));
    expect_a_later_try_flushes(code);
}

TEST_THAT(a_journal_that_finds_no_descriptor_is_flushed_later)
{
    leave_journal_and_mark();
    const struct rlimit before = set_limit(RLIMIT_NOFILE, 0);
    const int code = take(0, SQLITE_LOCK_SHARED);
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &before));
    expect_a_later_try_flushes(code);
}

static db_status work_mark_task(db_tx *tx, void *arg)
{
    (void)arg;
    return db_tx_put_task(tx, "x", "", 1, 1);
}

TEST_THAT(a_store_writes_again_once_there_is_room_for_the_journal)
{
    db *store;
    db_error error = {0};
    const db_options options = {.url = fixture.url, .shared_file = true};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(DB_OK, db_open(&options, &store, NULL));
    leave_journal_and_mark();
    const struct rlimit before = set_limit(RLIMIT_FSIZE, 1024);
    const db_status status = db_run(store, work_mark_task, NULL, &error);
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &before));
    assert_int_not_equal(DB_OK, status);
    if (db_run(store, work_mark_task, NULL, &error) != DB_OK)
        fail_msg("%s", error.message);
    db_close(store);
}
