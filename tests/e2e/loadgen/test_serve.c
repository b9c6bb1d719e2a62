/* `loadgen serve`: which guards can be used, what is missing, and that nothing is left at its end.
 */
#include "sandbox_process.h"
#include "server_log.h"
#include "shop.h"
#include "steady.h"
#include "tests.h"

#include <dirent.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAIT_MS = 60000, LOOK_MS = 20, PATH_LONGEST = 600 };

static struct sandbox *sandbox;
static char folder[PATH_LONGEST]; /* its TMPDIR */

static bool has_printed_addresses(struct sandbox_server *server)
{
    return strstr(server_log(server), "Ctrl-C stops everything") != NULL;
}

/* path: its PATH; NULL: ours. Returns once it has printed its addresses. */
static struct sandbox_server *start(const char *path)
{
    struct sandbox_server *serve = sandbox_add(sandbox, "serve", has_printed_addresses);
    assert_non_null(serve);
    serve->ready_ms = WAIT_MS;
    serve->port = sandbox_free_port();
    sandbox_arg(serve, "env");
    sandbox_arg(serve, "TMPDIR=%s", folder);
    if (path != NULL)
        sandbox_arg(serve, "PATH=%s", path);
    sandbox_arg(serve, "%s", shop_binary("loadgen"));
    sandbox_arg(serve, "serve");
    sandbox_arg(serve, "--listen=127.0.0.1:%d", serve->port);
    assert_int_equal(sandbox_start(serve), 0);
    return serve;
}

static int entries(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2; /* . and .. */
}

static void end_by_ctrl_c(struct sandbox_server *serve)
{
    const int64_t until_ms = steady_ms() + WAIT_MS;
    assert_int_equal(sandbox_signal(serve, SIGINT), 0);
    while (sandbox_alive(serve) && steady_ms() < until_ms)
        steady_sleep_ms(LOOK_MS);
    assert_false(sandbox_alive(serve));
    assert_non_null(strstr(server_log(serve), "stopping"));
    assert_int_equal(entries(folder), 0);
}

/* Does each guard answer but those with this prefix? A busy machine may lose a question. */
static bool all_answer_but(int port, const char *const *prefixes)
{
    size_t i;
    json_t *guard, *answer = client_get(port, "/v1/guards");
    bool result = true;
    json_array_foreach(json_object_get(answer, "guards"), i, guard)
    {
        const char *name = json_string_value(json_object_get(guard, "name"));
        bool wanted = true;
        for (size_t k = 0; prefixes[k] != NULL; k++)
            wanted = wanted && strncmp(name, prefixes[k], strlen(prefixes[k])) != 0;
        result = result && json_is_true(json_object_get(guard, "servers_answer")) == wanted;
    }
    json_decref(answer);
    return result && i == 23;
}

static void await_guards(int port, const char *const *prefixes)
{
    const int64_t until_ms = steady_ms() + WAIT_MS;
    while (!all_answer_but(port, prefixes) && steady_ms() < until_ms)
        steady_sleep_ms(LOOK_MS);
    assert_true(all_answer_but(port, prefixes));
}

TEST_THAT(every_kind_of_server_is_started_and_ends_at_ctrl_c)
{
    static const char *const without[] = {NULL};
    struct sandbox_server *serve = start(NULL);
    const char *text = server_log(serve);
    assert_non_null(strstr(text, "23 of 23 guards can be used"));
    assert_non_null(strstr(text, "\n  memcached "));
    assert_non_null(strstr(text, "\n  ZooKeeper "));
    assert_non_null(strstr(text, "\n  PostgreSQL "));
    assert_null(strstr(text, "not installed"));
    await_guards(serve->port, without);
    end_by_ctrl_c(serve);
}

/* A folder with the programs of ours, without these. */
static void make_path(const char *path, const char *const *without)
{
    char target[PATH_LONGEST], link[2 * PATH_LONGEST];
    DIR *programs = opendir("/usr/bin");
    assert_non_null(programs);
    assert_int_equal(mkdir(path, 0755), 0);
    for (struct dirent *entry; (entry = readdir(programs)) != NULL;) {
        bool wanted = entry->d_name[0] != '.';
        for (size_t i = 0; without[i] != NULL; i++)
            wanted = wanted && strcmp(entry->d_name, without[i]) != 0;
        snprintf(target, sizeof target, "/usr/bin/%s", entry->d_name);
        snprintf(link, sizeof link, "%s/%s", path, entry->d_name);
        if (wanted)
            assert_int_equal(symlink(target, link), 0);
    }
    closedir(programs);
}

TEST_THAT(a_server_that_is_not_installed_is_told_in_one_line)
{
    static const char *const without[] = {"memcached", "zk-", NULL};
    char path[PATH_LONGEST + 8];
    snprintf(path, sizeof path, "%s-path", folder);
    make_path(path, (const char *const[]){"memcached", "java", NULL});
    struct sandbox_server *serve = start(path);
    const char *text = server_log(serve);
    const char *line = strstr(text, "loadgen: memcached is not installed");
    assert_non_null(line);
    assert_non_null(strstr(line, "apt-get install memcached\n"));
    assert_non_null(strstr(text, "loadgen: ZooKeeper is not installed"));
    assert_null(strstr(text, "sandbox:"));
    assert_non_null(strstr(text, "19 of 23 guards can be used"));
    await_guards(serve->port, without);
    end_by_ctrl_c(serve);
}

static int open_sandbox(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    snprintf(folder, sizeof folder, "%s/tmp", sandbox_dir(sandbox));
    /* Where root runs it, PostgreSQL's user must find its own folder in there. */
    return chmod(sandbox_dir(sandbox), 0711) == 0 ? mkdir(folder, 0711) : -1;
}

static int close_sandbox(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

GROUP_FIXTURE(open_sandbox, close_sandbox);
