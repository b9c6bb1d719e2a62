/* tests/run.sh: a program that hangs is named with its stacks, Ctrl-C ends everything, and what
 * goes wrong is counted. tests/suites names programs that are there. */
#include "tests.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };

static char folder[] = "/tmp/test-runner-XXXXXX", self[PATH_MAX];

/* -- a program of that suite: this one, started under another name ------------------------------
 */

static void *stand_still_here(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static int hang(void)
{
    pthread_t thread;
    printf("[ RUN      ] it_hangs\n");
    fflush(stdout);
    if (pthread_create(&thread, NULL, stand_still_here, NULL) != 0)
        return 1;
    FILE *file = fopen("pid", "w");
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    return pthread_join(thread, NULL);
}

static int act(const char *name)
{
    if (strcmp(name, "hangs") == 0)
        return hang();
    if (strcmp(name, "passes") == 0)
        printf("[ RUN      ] it_passes\n[       OK ] it_passes\n");
    if (strcmp(name, "skips") == 0)
        printf("[       OK ] a\n[  SKIPPED ] b\n[  SKIPPED ] [==] 1 test(s), listed below:\n");
    if (strcmp(name, "fails") == 0)
        printf("[  ERROR   ] --- 1 != 2\n[  FAILED  ] it_fails\n[  FAILED  ] it_fails\n");
    return strcmp(name, "fails") == 0 || strcmp(name, "dies") == 0;
}

/* -- running the runner -------------------------------------------------------------------------
 */

static int sh(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return system(line);
}

/* Prints to folder/out; programs are links to this one. */
static int run(const char *limit_s, const char *programs)
{
    char top[512];
    assert_non_null(getcwd(top, sizeof top));
    return sh("cd %s && for p in %s; do ln -sf %s $p; done &&"
              " BUILD=build TEST_TIMEOUT_S=%s TEST_JOBS=2 %s/tests/run.sh $(printf './%%s ' %s) "
              ">out 2>&1",
              folder, programs, self, limit_s, top, programs);
}

static bool says(const char *text)
{
    if (sh("grep -q -- '%s' %s/out", text, folder) == 0)
        return true;
    sh("cat %s/out", folder);
    return false;
}

TEST_THAT(a_program_that_hangs_is_named_with_the_stack_of_each_thread)
{
    assert_int_not_equal(run("2", "hangs passes"), 0);
    assert_true(says("timed out after 2 s in it_hangs"));
    if (sh("sleep 9 & eu-stack -p $! >/dev/null 2>&1; code=$?; kill $!; exit $code") == 0) {
        assert_true(says("stand_still_here"));
        assert_true(says("pthread_join\\|clockjoin"));
    } else {
        assert_true(says("no stacks: ")); /* where nobody may trace a process */
    }
    assert_true(says("^1 passed, 1 failed"));
}

TEST_THAT(what_fails_dies_skips_or_tests_nothing_is_a_failure)
{
    assert_int_equal(run("60", "passes"), 0);
    assert_true(says("^1 passed, 0 failed"));
    static const char *const bad[] = {"fails", "dies", "skips", "says_nothing"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_not_equal(run("60", bad[i]), 0);
        assert_true(says(" 1 failed$"));
    }
    assert_int_not_equal(run("60", "fails"), 0);
    assert_true(says("FAIL ./fails: it_fails"));
    assert_true(says("1 != 2"));
}

/* The pid that the hanging program has written; 0: not yet. */
static int hanging_pid(void)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof path, "%s/pid", folder);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%d", &pid) != 1)
            pid = 0;
        fclose(file);
    }
    return pid;
}

static bool runs(int pid)
{
    return pid == 0 || sh("grep -q '^State:\t[^ZX]' /proc/%d/status 2>/dev/null", pid) == 0;
}

static bool wait_for(bool (*holds)(int pid), bool wanted, int pid)
{
    for (int ms = 0; ms < PATIENCE_MS; ms += 20) {
        if (holds(pid) == wanted)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return false;
}

static bool says_interrupted(int pid)
{
    (void)pid;
    return sh("grep -q '^interrupted' %s/out", folder) == 0;
}

static bool is_there(int pid)
{
    (void)pid;
    return hanging_pid() != 0;
}

/* As a terminal does: SIGINT to the foreground group. */
TEST_THAT(ctrl_c_ends_all_programs)
{
    sh("rm -f %s/pid", folder);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        run("60", "hangs passes");
        _exit(0);
    }
    assert_true(wait_for(is_there, true, 0));
    int pid = hanging_pid(), status;
    assert_true(runs(pid));
    kill(-child, SIGINT);
    waitpid(child, &status, 0);
    assert_true(wait_for(runs, false, pid));
    assert_true(wait_for(says_interrupted, true, pid));
}

TEST_THAT(suites_name_programs_that_are_there_and_leave_none_out)
{
    assert_int_equal(
        sh("grep -v '^#' tests/suites | while read -r name suites why; do"
           " [ -n \"$why\" ] && ls tests/$name.c tests/*/$name.c tests/*/*/$name.c 2>/dev/null |"
           " grep -q . || { echo \"no program: $name\"; exit 1; }; done"),
        0);
    assert_int_equal(
        sh("all=$(git ls-files 'tests/*/test_*.c' | sort);"
           " some=$(for s in asan tsan plain; do tests/suite.sh $s $all; done | sort -u);"
           " [ \"$all\" = \"$some\" ]"),
        0);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return sh("rm -rf %s", folder);
}

GROUP_FIXTURE(make_folder, remove_folder);

int main(int argc, char **argv)
{
    (void)argc;
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    if (strcmp(name, "test_runner") != 0)
        return act(name);
    if (!realpath("/proc/self/exe", self))
        return 1;
    return tests_run();
}
