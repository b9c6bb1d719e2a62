#include "demo_child.h"
#include "demo_sale.h"

#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BROKEN_CLAIM = 99, PATH_LONGEST = 4096 };

static bool loadgen_path(char ret[PATH_LONGEST])
{
    char self[PATH_LONGEST - 16];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return false;
    self[n] = '\0';
    snprintf(ret, PATH_LONGEST, "%s/loadgen", dirname(self));
    return access(ret, X_OK) == 0;
}

/* Runs in the child. Calls only what is allowed between fork() and exec(). Resets the signals that
 * the service blocks or ignores, and closes the service's sockets. */
static void exec_loadgen(const struct demo_child *child, const char *path, char *const *argv,
                         pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    dup2(child->out, STDOUT_FILENO);
    dup2(child->err, STDERR_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    alarm(DEMO_SECONDS_MAX);
    execv(path, argv);
    _exit(EXIT_FAILURE);
}

static bool fail(char ret_message[DEMO_MESSAGE_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(char ret_message[DEMO_MESSAGE_MAX], const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(ret_message, DEMO_MESSAGE_MAX, format, values);
    va_end(values);
    return false;
}

static void close_files(const struct demo_child *child)
{
    if (child->out >= 0)
        close(child->out);
    if (child->err >= 0)
        close(child->err);
}

bool demo_child_start(struct demo_child *child, char *const *argv,
                      char ret_message[DEMO_MESSAGE_MAX])
{
    char path[PATH_LONGEST];
    if (!loadgen_path(path))
        return fail(ret_message, "there is no loadgen beside seckilld");
    child->out = memfd_create("demo-sale", MFD_CLOEXEC);
    child->err = memfd_create("demo-sale-errors", MFD_CLOEXEC);
    const pid_t parent = getpid(), pid = child->out < 0 || child->err < 0 ? -1 : fork();
    if (pid == 0)
        exec_loadgen(child, path, argv, parent);
    if (pid < 0) {
        fail(ret_message, "cannot start it: %s", strerror(errno));
        close_files(child);
        return false;
    }
    child->pid = pid;
    return true;
}

/* Returns the whole of a memory file, NUL-terminated. NULL: too long, or no memory. */
static char *content(int fd)
{
    const off_t length = lseek(fd, 0, SEEK_END);
    char *text = length >= 0 && length <= DEMO_REPORT_MAX ? malloc((size_t)length + 1) : NULL;
    ssize_t n = text != NULL ? pread(fd, text, (size_t)length, 0) : -1;
    if (n < 0) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

/* NULL: ret_message says why. */
static json_t *report_of(const struct demo_child *child, int status,
                         char ret_message[DEMO_MESSAGE_MAX])
{
    const bool judged =
        WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == BROKEN_CLAIM);
    char *text = content(judged ? child->out : child->err);
    json_t *report = judged && text != NULL ? json_loads(text, 0, NULL) : NULL;
    const size_t length = text != NULL ? strlen(text) : 0;
    if (judged && report == NULL)
        fail(ret_message, "its report cannot be read");
    else if (!judged && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        fail(ret_message, "it took longer than %d s", DEMO_SECONDS_MAX);
    else if (!judged)
        fail(ret_message, "%s",
             length >= DEMO_MESSAGE_MAX ? text + length - (DEMO_MESSAGE_MAX - 1)
             : length > 0               ? text
                                        : "it ended early");
    free(text);
    return report;
}

bool demo_child_ended(struct demo_child *child, bool end, json_t **ret_report,
                      char ret_message[DEMO_MESSAGE_MAX])
{
    int status;
    if (child->pid <= 0 || (end && kill(child->pid, SIGKILL) != 0) ||
        waitpid(child->pid, &status, end ? 0 : WNOHANG) != child->pid)
        return false;
    child->pid = 0;
    *ret_report = report_of(child, status, ret_message);
    close_files(child);
    return true;
}
