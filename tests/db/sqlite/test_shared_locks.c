/* Who is taken for a writer on a shared file. A reader that finds a journal leaves it alone while
 * somebody writes, and rolls it back otherwise. Taken wrongly, it reads half of a commit. */
#include "child.h"
#include "sqlite.h"

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
