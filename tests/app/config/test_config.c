/* The sources of settings, and which settings are refused. */
#include "draft.h"

#include <sys/wait.h>

static void write_file(const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

GROUP_FIXTURE(make_file, remove_file);

TEST_THAT(defaults_are_complete)
{
    config_draft_defaults(&draft);
    assert_int_equal(config_draft_finish(&draft, &config), 0);
    assert_string_equal(config.listen, "127.0.0.1:8080");
    assert_string_equal(config.guard, "redis-token");
    assert_int_equal(config.lease_ms, 30000);
    assert_int_equal(config.wait_ms, 10000);
    assert_true(config.watchdog && config.fence && config.lanes && config.lock_queue);
    assert_false(config.lab || config.demo || config.sync_normal || config.db_shared);
    assert_true(config.instance[0] != '\0');
    assert_true(config.workers > 0 && config.queue_max > 0 && config.batch > 0);
}

TEST_THAT(flag_beats_environment_beats_file_beats_default)
{
    char *environment[] = {"PATH=/bin", "SECKILL_WAIT_MS=2000", "SECKILL_LEASE_MS=2000",
                           "SECKILL_DB_SHARED=on", NULL};
    write_file("# comment\n\n  wait-ms=1000 \nlease-ms = 1000\n\tbatch = 7\r\n");
    config_draft_defaults(&draft);
    assert_int_equal(set("lease-ms", "3000"), 0);
    assert_int_equal(config_draft_file(&draft, path), 0);
    assert_int_equal(config_draft_environment(&draft, environment), 0);
    assert_int_equal(config_draft_finish(&draft, &config), 0);
    assert_int_equal(config.lease_ms, 3000);
    assert_int_equal(config.wait_ms, 2000);
    assert_int_equal(config.batch, 7);
    assert_int_equal(config.queue_max, 20000);
    assert_true(config.db_shared);
}

TEST_THAT(bad_files_are_refused_by_name_and_line)
{
    static const struct {
        const char *text, *line, *why;
    } bad[] = {{"batch = 1\nbacth = 2\n", ":2:", "unknown key \"bacth\""},
               {"batch\n", ":1:", "key = value"},
               {"batch = 1\n#\nbatch = 2\n", ":3:", "twice"},
               {"= 1\n", ":1:", "unknown key"},
               {"instance = 012345678901234567890123456789012\n", ":1:", "longer than 32"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(bad[i].text);
        config_draft_defaults(&draft);
        assert_int_equal(config_draft_file(&draft, path), -1);
        assert_non_null(strstr(draft.message, path));
        assert_non_null(strstr(draft.message, bad[i].line));
        assert_non_null(strstr(draft.message, bad[i].why));
    }
    config_draft_defaults(&draft);
    assert_int_equal(config_draft_file(&draft, "/nonexistent/x"), -1);
    assert_non_null(strstr(draft.message, "/nonexistent/x"));
}

TEST_THAT(unknown_environment_is_refused)
{
    char *environment[] = {"SECKILL_WAITMS=1", NULL};
    config_draft_defaults(&draft);
    assert_int_equal(config_draft_environment(&draft, environment), -1);
    assert_non_null(strstr(draft.message, "SECKILL_WAITMS"));
}

/* The entry ends at its NUL; the memory behind it belongs to another entry. */
TEST_THAT(environment_without_a_value_is_refused)
{
    char *entry = strdup("SECKILL_LISTEN"), *environment[] = {entry, NULL};
    config_draft_defaults(&draft);
    assert_int_equal(config_draft_environment(&draft, environment), -1);
    assert_non_null(strstr(draft.message, "SECKILL_LISTEN has no value"));
    free(entry);
}

TEST_THAT(values_out_of_range_are_refused)
{
    static const struct {
        const char *name, *value;
    } bad[] = {{"wait-ms", "-1"},
               {"wait-ms", "1s"},
               {"wait-ms", ""},
               {"wait-ms", "600001"},
               {"lease-ms", "9"},
               {"workers", "0"},
               {"batch", "1.5"},
               {"queue-max", "99999999999999999999"},
               {"lanes", "yes"},
               {"watchdog", ""},
               {"sync", "off"},
               {"lab", "true"},
               {"instance", "a b"},
               {"instance", ""},
               {"guard", ""},
               {"db", ""},
               {"listen", "8080"},
               {"listen", ":8080"},
               {"listen", "127.0.0.1:"},
               {"listen", "127.0.0.1:65536"},
               {"listen", "127.0.0.1:x"},
               {"listen", "::1:8080"},
               {"listen", "127.0.0.1:-1"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        config_draft_defaults(&draft);
        assert_int_equal(set(bad[i].name, bad[i].value), 0);
        if (config_draft_finish(&draft, &config) == 0)
            fail_msg("taken: %s = %s", bad[i].name, bad[i].value);
        assert_non_null(strstr(draft.message, bad[i].name));
    }
}

TEST_THAT(lessons_see_each_lock_unless_they_ask_for_turns)
{
    config_draft_defaults(&draft);
    assert_int_equal(config_draft_finish(&draft, &config), 0);
    assert_int_equal(config.lane_turns, 8);
    set("lab", "on");
    assert_int_equal(config_draft_finish(&draft, &config), 0);
    assert_int_equal(config.lane_turns, 1);
    set("lane-turns", "8");
    assert_int_equal(config_draft_finish(&draft, &config), 0);
    assert_int_equal(config.lane_turns, 8);
}

TEST_THAT(what_is_printed_can_be_read_again)
{
    config_draft_defaults(&draft);
    set("wait-ms", "1234");
    set("lanes", "off");
    FILE *file = fopen(path, "we");
    config_draft_print(&draft, file);
    fclose(file);
    static struct config_draft again;
    config_draft_defaults(&again);
    assert_int_equal(config_draft_file(&again, path), 0);
    assert_memory_equal(again.value, draft.value, sizeof(draft.value));
}

static bool checks(const char *db, const char *guard)
{
    config_draft_defaults(&draft);
    set("db", db);
    set("guard", guard);
    assert_int_equal(config_draft_finish(&draft, &config), 0);
    FILE *shown = stderr;
    stderr = fopen("/dev/null", "we");
    bool good = config_check_names(&config) == 0 && config_check(&config) == 0;
    fclose(stderr);
    stderr = shown;
    return good;
}

TEST_THAT(check_looks_at_the_stores_folder_and_the_guard)
{
    char db[128];
    assert_true(checks("sqlite:new-file.db", "redis-token"));
    assert_true(checks("sqlite:/tmp/new-file.db", "none"));
    assert_true(checks("postgres://postgres@127.0.0.1:1/db", "mutex")); /* no connection is made */
    assert_false(checks("sqlite:/nonexistent/folder/a.db", "redis-token"));
    assert_false(checks("sqlite:/proc/self/a.db", "redis-token"));
    assert_false(checks("sqlite:/tmp", "redis-token"));
    assert_false(checks("sqlite:", "redis-token"));
    snprintf(db, sizeof(db), "sqlite:%s/a.db", path); /* its folder is a file */
    write_file("x");
    assert_false(checks(db, "redis-token"));
    assert_false(checks("mysql://h/db", "redis-token"));
    assert_false(checks("sqlite:/tmp/new-file.db", "redis-tokken"));
    assert_int_equal(access("/tmp/new-file.db", F_OK), -1); /* no file was created */
}

/* argp ends the process, so each command line is tried in a child. */
static int status_of(char *const *argv)
{
    pid_t pid = fork();
    if (pid == 0) {
        int argc = 0;
        while (argv[argc] != NULL)
            argc++;
        FILE *quiet = freopen("/dev/null", "we", stderr);
        FILE *silent = freopen("/dev/null", "we", stdout);
        struct config child;
        int code = config_load(argc, (char **)argv, true, &child);
        _exit(quiet == NULL || silent == NULL                    ? 99
              : code >= 0                                        ? code
              : child.wait_ms == 77 && child.lab && !child.lanes ? 42
                                                                 : 43);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

TEST_THAT(command_lines_end_as_promised)
{
    char *good[] = {"seckilld", "--wait-ms", "77", "--lanes=off", "--lab", NULL};
    char *check[] = {"seckilld", "--check", NULL};
    char *print[] = {"seckilld", "--print-config", NULL};
    char *help[] = {"seckilld", "--help", NULL};
    char *unknown[] = {"seckilld", "--wiat-ms", "77", NULL};
    char *argument[] = {"seckilld", "extra", NULL};
    char *range[] = {"seckilld", "--check", "--workers", "0", NULL};
    char *folder[] = {"seckilld", "--check", "--db", "sqlite:/nonexistent/a.db", NULL};
    char *file[] = {"seckilld", "--check", "--config", "/nonexistent/x", NULL};
    static const char *const names[][3] = {{"--guard", "redis-tokken", ""},
                                           {"--db", "mysql://h/db", ""},
                                           {"--db", "seckill.db", ""},
                                           {"--demo-peers", "http://127.0.0.1:8081", ""},
                                           {"--lab", "--lab-slip", "no-such-slip"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *at_start[] = {"seckilld", (char *)names[i][0], (char *)names[i][1],
                            names[i][2][0] ? (char *)names[i][2] : "--watchdog=on", NULL};
        char *at_check[] = {"seckilld", "--check", at_start[1], at_start[2], at_start[3], NULL};
        assert_int_equal(status_of(at_start), 2);
        assert_int_equal(status_of(at_check), 2);
    }
    assert_int_equal(status_of(good), 42);
    assert_int_equal(status_of(check), 0);
    assert_int_equal(status_of(print), 0);
    assert_int_equal(status_of(help), 0);
    assert_int_equal(status_of(unknown), 2);
    assert_int_equal(status_of(argument), 2);
    assert_int_equal(status_of(range), 2);
    assert_int_equal(status_of(file), 2);
    assert_int_equal(status_of(folder), 2);
}
