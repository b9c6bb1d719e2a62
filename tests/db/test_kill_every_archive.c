/* kill -9 of an archive at its system calls: the store is sound whenever it is killed, and the next
 * try ends with each row once, in the store or in the archive. On both engines.
 * lib/shop/kill_rig.h says which share of the calls is tried. The process that is killed is this
 * program itself: "archive URL FILE BEFORE_US". */
#include "archive_rig.h"
#include "kill_rig.h"
#include "process.h"
#include "program.h"

enum { STEP_SQLITE = 11, STEP_POSTGRES = 23 /* usually */ };

static char template[128]; /* SQLite: a copy of the store */
static int64_t end_us, all_rows, old_rows;

static int move_here(char **argv)
{
    const db_options options = {.url = argv[2]};
    archive_moved moved;
    db_error error = {.message = ""};
    const db_status status =
        archive_move(&options, strtoll(argv[4], NULL, 10), argv[3], &moved, &error);
    if (status != DB_OK)
        fprintf(stderr, "%s\n", error.message);
    return status == DB_OK ? 0 : 1;
}

static void copy(const char *from, const char *to)
{
    char command[400];
    snprintf(command, sizeof command, "cp %s %s", from, to);
    assert_int_equal(0, system(command));
}

static void remove_file(const char *path, const char *end)
{
    char name[192];
    snprintf(name, sizeof name, "%s%s", path, end);
    unlink(name);
}

/* The store as it is before the archive. */
static void make_store(struct fixture *fixture)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal", "-lock"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        remove_file(archive, ends[i]);
        if (!pg_server)
            remove_file(fixture->file, ends[i]);
    }
    if (!pg_server && template[0] != '\0') {
        copy(template, fixture->file);
        return;
    }
    if (pg_server)
        pg_empty_database(fixture->url, sizeof fixture->url);
    fixture_open(fixture, NULL);
    end_us = old_month(fixture);
    old_rows = rows_in(fixture);
    new_month(fixture);
    all_rows = rows_in(fixture);
    fixture_close(fixture);
    if (pg_server)
        return;
    snprintf(template, sizeof template, "%s/template.db", fixture->folder);
    copy(fixture->file, template);
}

static bool has_ended(void *killer)
{
    return kill_call_ended(killer);
}

/* Rows that the store has, or says that it has moved. */
static void expect_all_rows(struct fixture *fixture)
{
    assert_int_equal(all_rows,
                     rows_in(fixture) +
                         fixture_sql_int(fixture, "SELECT coalesce(sum(n), 0) FROM archives"));
    assert_string_equal("", bad_resource(fixture));
    assert_true(books_of(fixture).ok);
    if (fixture_sql_int(fixture, "SELECT count(*) FROM archives") > 0)
        assert_int_equal(0, prove(fixture).faults);
}

static bool kill_archive(const void *arg, int n)
{
    struct fixture *fixture = *(struct fixture *const *)arg;
    char log[192], before[32];
    make_store(fixture);
    snprintf(log, sizeof log, "%s/archive.log", fixture->folder);
    snprintf(before, sizeof before, "%lld", (long long)end_us);
    char *argv[] = {"/proc/self/exe", "archive", fixture->url, archive, before, NULL};
    char self[192];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    argv[0] = self;
    struct kill_call *killer = kill_call_start(argv, log, n);
    assert_non_null(killer);
    assert_true(wait_until(has_ended, killer, SHOP_WAIT_MS));
    const bool hit = kill_call_end(killer).at_call;
    fixture_open(fixture, NULL);
    expect_all_rows(fixture);
    fixture_close(fixture);
    int status = -1;
    assert_true(
        program_ends(program_start((const char *const *)argv, log, NULL), SHOP_WAIT_MS, &status));
    assert_int_equal(status, 0);
    fixture_open(fixture, NULL);
    expect_all_rows(fixture);
    assert_int_equal(all_rows - old_rows, rows_in(fixture));
    assert_int_equal(old_rows, prove(fixture).rows);
    fixture_close(fixture);
    return hit;
}

ON_BOTH_ENGINES;

TEST_THAT(an_archive_killed_at_any_call_loses_no_row)
{
    struct fixture *fixture = *state;
    snprintf(archive, sizeof archive, "%s/archive.db", fixture->folder);
    template[0] = '\0';
    const int kills =
        kill_at_each("archive", pg_server ? STEP_POSTGRES : STEP_SQLITE, kill_archive, &fixture);
    assert_true(kills * kill_rig.step > 100);
}

static int open_folder(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    assert_non_null(fixture);
    *fixture = fixture_folder();
    *state = fixture;
    return 0;
}

TEST_FIXTURE(open_folder, fixture_teardown);

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "archive") == 0)
        return move_here(argv);
    return tests_run();
}
