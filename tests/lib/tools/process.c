#include "process.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOK_AGAIN_MS = 2, FIELDS_TO_START = 19 /* after the state, see proc(5) */ };

/* Start time and state from /proc/PID/stat; the name in it may hold spaces and brackets. */
static long long read_stat(pid_t pid, char *ret_state)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    char *at = strrchr(text, ')');
    if (at == NULL || at[1] == '\0')
        return -1;
    at += 2;
    *ret_state = *at;
    for (int field = 0; field < FIELDS_TO_START && at != NULL; field++) {
        at = strchr(at, ' ');
        at += at != NULL;
    }
    return at == NULL ? -1 : strtoll(at, NULL, 10);
}

struct process process_of(pid_t pid)
{
    char state;
    return (struct process){.pid = pid, .started = read_stat(pid, &state)};
}

static bool has_state(struct process process, const char *states)
{
    char state = '\0';
    return process.started >= 0 && read_stat(process.pid, &state) == process.started &&
           strchr(states, state) != NULL;
}

bool process_runs(struct process process)
{
    return has_state(process, "RSDTtI");
}

bool process_stopped(struct process process)
{
    return has_state(process, "T");
}

bool process_sleeps(struct process process)
{
    return has_state(process, "S");
}

bool process_gone(struct process process)
{
    char state;
    return read_stat(process.pid, &state) != process.started;
}

void process_signal_children(pid_t pid, int signal)
{
    char path[64];
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(path, "r");
    while (file != NULL && fscanf(file, "%d", &child) == 1)
        kill(child, signal);
    if (file != NULL)
        fclose(file);
}

int process_count_fds(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        return -1;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 3; /* ".", ".." and the directory itself */
}

int64_t test_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool wait_until(bool (*is_so)(void *arg), void *arg, int64_t wait_ms)
{
    int64_t deadline_ms = test_now_ms() + wait_ms;
    while (!is_so(arg)) {
        if (test_now_ms() > deadline_ms)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN_MS * 1000000L}, NULL);
    }
    return true;
}

int64_t test_size(int64_t usual, int64_t full)
{
    const char *set = getenv("TEST_FULL");
    return set != NULL && strcmp(set, "1") == 0 ? full : usual;
}
