/* .ci/check-headers finds a header that does not compile alone, in any folder. */
#include "program.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_LENGTH_MAX = 256, MESSAGES_MAX = 4096, WAIT_MS = 60000 };

/* A tree of two folders: lockkit/core may include from lockkit/base, but not the reverse. */
static char root[] = "/tmp/test_headers.XXXXXX";
static char messages[MESSAGES_MAX];

static void put(const char *name, const char *text)
{
    char path[PATH_LENGTH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void remove_file(const char *name)
{
    char path[PATH_LENGTH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(unlink(path), 0);
}

static int open_tree(void **state)
{
    (void)state;
    static const char *const folders[] = {"", "/lockkit", "/lockkit/base", "/lockkit/core"};
    assert_int_equal(setenv("CCS", "gcc", 1), 0);
    assert_non_null(mkdtemp(root));
    for (size_t i = 1; i < sizeof folders / sizeof *folders; i++) {
        char path[PATH_LENGTH_MAX];
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    put(".layers", "sees/lockkit/base :=\nsees/lockkit/core := lockkit/base\n");
    put("lockkit/base/low.h", "#ifndef LOW_H\n#define LOW_H\ntypedef int low;\n#endif\n");
    put("lockkit/core/high.h", "#ifndef HIGH_H\n#define HIGH_H\n#include \"low.h\"\n"
                               "typedef struct high {\n    low inner;\n} high;\n#endif\n");
    return 0;
}

static int close_tree(void **state)
{
    (void)state;
    pid_t pid = program_start((const char *const[]){"/bin/rm", "-rf", root, NULL}, NULL, NULL);
    int status;
    return program_ends(pid, WAIT_MS, &status) && status == 0 ? 0 : -1;
}

/* Runs the check; its output goes to messages. Tests run at the top of the checkout. */
static int check(void)
{
    char path[PATH_LENGTH_MAX];
    snprintf(path, sizeof path, "%s/messages", root);
    pid_t pid =
        program_start((const char *const[]){".ci/check-headers", root, NULL}, "/dev/null", path);
    int status;
    assert_true(program_ends(pid, WAIT_MS, &status));
    assert_true(WIFEXITED(status));
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    messages[fread(messages, 1, sizeof messages - 1, file)] = '\0';
    fclose(file);
    return WEXITSTATUS(status);
}

GROUP_FIXTURE(open_tree, close_tree);

TEST_THAT(headers_that_compile_alone_pass)
{
    assert_int_equal(check(), 0);
    assert_string_equal(messages, "");
}

static void planted_header_fails(const char *name, const char *text)
{
    char told[PATH_LENGTH_MAX];
    put(name, text);
    int status = check();
    remove_file(name);
    assert_int_not_equal(status, 0);
    snprintf(told, sizeof told, "headers: %s does not compile alone with gcc", name);
    assert_non_null(strstr(messages, told));
}

TEST_THAT(header_without_what_it_uses_fails)
{
    planted_header_fails("lockkit/core/bare.h",
                         "#ifndef BARE_H\n#define BARE_H\nint bare(uint32_t n);\n#endif\n");
}

TEST_THAT(header_that_includes_from_above_fails)
{
    planted_header_fails("lockkit/base/upward.h",
                         "#ifndef UPWARD_H\n#define UPWARD_H\n#include \"high.h\"\n#endif\n");
}

TEST_THAT(header_without_a_guard_fails)
{
    planted_header_fails("lockkit/core/twice.h", "struct twice {\n    int n;\n};\n");
}
