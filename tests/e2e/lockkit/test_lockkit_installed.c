/* The program of lockkit/README.md compiles against an installed lockkit, as pkg-config says, and
 * holds a lock. */
#include "lockkit.h"
#include "redis.h"
#include "tests.h"
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_MAX = 4096, OUTPUT_MAX = 4096 };

static const char *dir(void)
{
    return sandbox_dir(tool_sandbox);
}

/* Runs a shell script with DIR set; its output goes to ret. */
static int sh(const char *script, char ret[OUTPUT_MAX])
{
    char command[COMMAND_MAX];
    snprintf(command, sizeof command, "exec 2>&1; set -eu; DIR=%s; export DIR; %s", dir(), script);
    FILE *output = popen(command, "re");
    assert_non_null(output);
    ret[fread(ret, 1, OUTPUT_MAX - 1, output)] = '\0';
    return pclose(output);
}

static void run(const char *script, char ret[OUTPUT_MAX])
{
    if (sh(script, ret) != 0)
        fail_msg("%s\nsaid: %s", script, ret);
}

/* The first C block of the page; the library as `make install` leaves it. With SAN and CC as the
 * tests were built with. */
static int install(void **state)
{
    char said[OUTPUT_MAX];
    if (tool_open(state) != 0)
        return -1;
    run("awk '/^```c$/ && !n { on = n = 1; next } /^```$/ { on = 0 } on' lockkit/README.md"
        "   >$DIR/program.c;"
        "unset MAKEFLAGS MFLAGS MAKELEVEL;"
        "make -s install PREFIX=$DIR/installed B=$BUILD",
        said);
    return 0;
}

GROUP_FIXTURE(install, tool_close);

TEST_THAT(program_of_the_page_holds_a_lock)
{
    char said[OUTPUT_MAX];
    run("export PKG_CONFIG_PATH=$DIR/installed/lib/pkgconfig;"
        "${CC:-gcc} ${SAN:+-fsanitize=$SAN} -Wall -Wextra -Werror $DIR/program.c -o $DIR/program"
        " $(pkg-config --cflags --libs lockkit);"
        "LD_LIBRARY_PATH=$DIR/installed/lib $DIR/program $LOCKKIT_ENDPOINTS",
        said);
    assert_non_null(strstr(said, "held lock:item:1 under fence "));
    assert_non_null(strstr(said, "still held\n"));
    assert_int_equal(redis_do(tool_redis, "EXISTS lock:item:1"), 0);
}

TEST_THAT(program_says_which_server_is_away)
{
    char said[OUTPUT_MAX];
    assert_int_not_equal(
        sh("LD_LIBRARY_PATH=$DIR/installed/lib $DIR/program unix://$DIR/no-such-socket", said), 0);
    assert_non_null(strstr(said, "lock:item:1: the lock server is away"));
}

/* The command, the library, pkg-config and the service's API have one version. */
TEST_THAT(there_is_one_version)
{
    char said[OUTPUT_MAX];
    run("$DIR/installed/bin/lockkit --version;"
        "PKG_CONFIG_PATH=$DIR/installed/lib/pkgconfig pkg-config --modversion lockkit;"
        "sed -n 's/^  \"version\": \"\\(.*\\)\",$/\\1/p' app/openapi.json",
        said);
    assert_string_equal(said, "lockkit " LK_VERSION "\n" LK_VERSION "\n" LK_VERSION "\n");
}
