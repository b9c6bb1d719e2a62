/* epoll(7) and eventfd_write(3) on the descriptors of the simulated kernel. */
#include "sim_epoll.h"
#include "sim_poll.h"
#include "sim_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EPOLL_FIRST = 5000000, EPOLLS_MAX = 1024, WATCHED_MAX = 128 };

static struct set {
    struct watched {
        int fd;
        struct epoll_event event; /* of no events: told once, and no more */
    } all[WATCHED_MAX];
    size_t n;
} * sets[EPOLLS_MAX];

int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event);
int __real_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int epoll, struct epoll_event *ret, int n, int timeout_ms);
int __real_epoll_wait(int epoll, struct epoll_event *ret, int n, int timeout_ms);
int __wrap_eventfd_write(int fd, eventfd_t value);

/* NULL: not ours. */
static struct set *set_of(int epoll)
{
    return epoll >= EPOLL_FIRST && epoll < EPOLL_FIRST + EPOLLS_MAX ? sets[epoll - EPOLL_FIRST]
                                                                    : NULL;
}

int __wrap_epoll_create1(int flags)
{
    (void)flags;
    int i = 0;
    while (sets[i])
        if (++i == EPOLLS_MAX)
            abort();
    if (!(sets[i] = calloc(1, sizeof *sets[i])))
        abort();
    return EPOLL_FIRST + i;
}

int __wrap_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
    struct set *set = set_of(epoll);
    size_t i = 0;
    if (!set)
        return __real_epoll_ctl(epoll, what, fd, event);
    sim_step();
    if (what == EPOLL_CTL_ADD) {
        if (set->n == WATCHED_MAX)
            abort();
        set->all[set->n++] = (struct watched){fd, *event};
        sim_poll_wake(fd);
        return 0;
    }
    while (i < set->n && set->all[i].fd != fd)
        i++;
    if (i == set->n) {
        errno = ENOENT;
        return -1;
    }
    set->all[i] = set->all[--set->n];
    return 0;
}

int __wrap_epoll_wait(int epoll, struct epoll_event *ret, int n, int timeout_ms)
{
    struct set *set = set_of(epoll);
    if (!set)
        return __real_epoll_wait(epoll, ret, n, timeout_ms);
    const int64_t until_us =
        timeout_ms < 0 ? SIM_FOREVER : sim_now_us() + (int64_t)timeout_ms * 1000;
    sim_step();
    for (;;) {
        int found = 0;
        for (size_t i = 0; i < set->n && found < n; i++) {
            struct epoll_event *event = &set->all[i].event;
            const uint32_t wanted = event->events & ~(uint32_t)EPOLLONESHOT;
            const short is = wanted ? sim_poll_ready(set->all[i].fd, (short)wanted) : 0;
            if (is == 0)
                continue;
            ret[found] = *event;
            ret[found++].events = (uint32_t)is;
            if (event->events & EPOLLONESHOT)
                event->events = 0;
        }
        if (found > 0 || sim_now_us() >= until_us)
            return found;
        sim_poll_wait(until_us);
    }
}

int __wrap_eventfd_write(int fd, eventfd_t value)
{
    return write(fd, &value, sizeof value) == (ssize_t)sizeof value ? 0 : -1;
}

bool sim_epoll_close(int fd)
{
    struct set *set = set_of(fd);
    if (!set)
        return false;
    free(set);
    sets[fd - EPOLL_FIRST] = NULL;
    return true;
}
