#include "tool.h"
#include "process.h"
#include "program.h"
#include "redis.h"
#include "shop.h"
#include "tests.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <string.h>
#include <unistd.h>

enum { ARGS_MAX = 24, SIGNALLED = 1000 };

extern char **environ;

struct sandbox *tool_sandbox;
struct sandbox_server *tool_redis;
static int n_started;

int tool_open(void **state)
{
    (void)state;
    if (sandbox_open(&tool_sandbox) != 0)
        return -1;
    tool_redis = sandbox_redis(tool_sandbox, NULL);
    return tool_redis != NULL && setenv("LOCKKIT_ENDPOINTS", tool_redis->url, 1) == 0 ? 0 : -1;
}

int tool_close(void **state)
{
    (void)state;
    sandbox_close(tool_sandbox);
    return 0;
}

int tool_empty(void **state)
{
    (void)state;
    redis_do(tool_redis, "FLUSHALL");
    return 0;
}

struct tool tool_start(const char *const *args)
{
    const char *argv[ARGS_MAX + 2] = {shop_binary("lockkit")};
    struct tool tool = {.in = -1};
    int in[2], flags = O_WRONLY | O_CREAT | O_TRUNC;
    for (size_t n = 1; *args != NULL; args++) {
        assert_true(n <= ARGS_MAX);
        argv[n++] = *args;
    }
    n_started++;
    snprintf(tool.output, sizeof tool.output, "%s/output-%d", sandbox_dir(tool_sandbox), n_started);
    snprintf(tool.messages, sizeof tool.messages, "%s/messages-%d", sandbox_dir(tool_sandbox),
             n_started);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, tool.output, flags, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, tool.messages, flags, 0600);
    int error = posix_spawn(&tool.pid, argv[0], &actions, NULL, (char **)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    tool.in = in[1];
    assert_int_equal(error, 0);
    return tool;
}

int tool_ends(struct tool *tool)
{
    int status;
    if (tool->in >= 0)
        close(tool->in);
    tool->in = -1;
    if (!program_ends(tool->pid, TOOL_ENDS_WITHIN_MS, &status))
        fail_msg("lockkit does not end; it said: %s", tool_complained(tool));
    return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
}

int tool_run(const char *const *args, struct tool *ret)
{
    *ret = tool_start(args);
    return tool_ends(ret);
}

static const char *content_of(const char *path)
{
    static char text[TOOL_OUTPUT_MAX];
    FILE *file = fopen(path, "re");
    size_t length = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    if (file != NULL)
        fclose(file);
    return text;
}

const char *tool_said(const struct tool *tool)
{
    return content_of(tool->output);
}

const char *tool_complained(const struct tool *tool)
{
    return content_of(tool->messages);
}

json_t *tool_said_json(const struct tool *tool)
{
    json_error_t error;
    json_t *json = json_loads(tool_said(tool), 0, &error);
    if (json == NULL)
        fail_msg("%s in %s", error.text, tool_said(tool));
    return json;
}

struct word {
    const struct tool *tool;
    const char *text;
};

static bool is_said(void *arg)
{
    struct word *word = arg;
    return strstr(tool_said(word->tool), word->text) != NULL;
}

bool tool_says(const struct tool *tool, const char *text)
{
    struct word word = {.tool = tool, .text = text};
    return wait_until(is_said, &word, TOOL_ENDS_WITHIN_MS);
}
