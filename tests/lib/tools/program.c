#include "program.h"
#include "process.h"
#include "tests.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

pid_t program_start(const char *const *argv, const char *output, const char *messages)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_TRUNC };
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    posix_spawn_file_actions_init(&actions);
    if (output != NULL) {
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, FLAGS, 0600);
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    }
    if (messages != NULL)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages, FLAGS, 0600);
    int error = posix_spawn(&pid, argv[0], &actions, NULL, (char **)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        fail_msg("%s: %s", argv[0], strerror(error));
    return pid;
}

struct ending {
    pid_t pid;
    int status;
};

static bool has_ended(void *arg)
{
    struct ending *ending = arg;
    return waitpid(ending->pid, &ending->status, WNOHANG) == ending->pid;
}

bool program_ends(pid_t pid, int64_t wait_ms, int *ret_status)
{
    struct ending ending = {.pid = pid};
    bool ended = wait_until(has_ended, &ending, wait_ms);
    if (!ended) {
        kill(pid, SIGKILL);
        waitpid(pid, &ending.status, 0);
    }
    *ret_status = ending.status;
    return ended;
}
