/* The library's threads block all signals of the program. */
#include "lock_world.h"
#include "tests.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KEY "lock:item:1"

static unsigned long blocked_in(const char *thread)
{
    char path[300], line[256];
    unsigned long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "SigBlk: %lx", &blocked);
    fclose(file);
    return blocked;
}

/* Checks the signal masks of all other threads. Returns the number of these threads. */
static int expect_blocked_in_all_others(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD, SIGUSR1, SIGALRM};
    int n = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
            continue;
        n++;
        for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
            assert_true(blocked_in(entry->d_name) >> (signals[i] - 1) & 1);
    }
    closedir(folder);
    return n;
}

GROUP_FIXTURE(world_open, world_close);

TEST_THAT_WITH(signals_are_left_to_the_programs_threads, world_empty, NULL)
{
    lk_hold hold, refused;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    lk_client *client = world_client("redis-token", NULL);
    lk_client *waiter = world_client("redis-reentrant", NULL);
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
    assert_int_equal(world_acquire(waiter, KEY, 0, 1, &refused), LK_TIMEOUT);
    assert_true(expect_blocked_in_all_others() >= 2); /* watchdog, subscriber */
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int i = 1; i < NSIG; i++)
        assert_int_equal(sigismember(&before, i), sigismember(&after, i));
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(waiter);
    lk_close(client);
}
