#include "sim_poll.h"
#include "sim_threads.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

enum { KINDS_MAX = 8 };

static struct {
    int first, n;
    short (*ready)(int fd, short events);
} kinds[KINDS_MAX];
static const char many; /* who polls more than one waits here */

void sim_poll_add(int first, int n, short (*ready)(int fd, short events))
{
    size_t i = 0;
    while (kinds[i].ready && kinds[i].first != first)
        assert(++i < KINDS_MAX);
    kinds[i].first = first;
    kinds[i].n = n;
    kinds[i].ready = ready;
}

static const void *address_of(int fd)
{
    return (const void *)(intptr_t)fd;
}

void sim_poll_wake(int fd)
{
    sim_wake(address_of(fd), INT32_MAX);
    sim_wake(&many, INT32_MAX);
}

short sim_poll_ready(int fd, short events)
{
    for (size_t i = 0; i < KINDS_MAX && kinds[i].ready; i++)
        if (fd >= kinds[i].first && fd < kinds[i].first + kinds[i].n)
            return kinds[i].ready(fd, events);
    abort(); /* a real descriptor would wait in real time */
}

void sim_poll_wait(int64_t until_us)
{
    sim_wait(&many, until_us);
}

static int poll_until(struct pollfd *fds, nfds_t n, int64_t until_us)
{
    sim_step();
    for (;;) {
        int found = 0;
        for (nfds_t i = 0; i < n; i++) {
            fds[i].revents = fds[i].fd < 0 ? 0 : sim_poll_ready(fds[i].fd, fds[i].events);
            found += fds[i].revents != 0;
        }
        if (found > 0 || sim_now_us() >= until_us)
            return found;
        sim_wait(n == 1 ? address_of(fds[0].fd) : &many, until_us);
    }
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                 const sigset_t *signals);
/* _FORTIFY_SOURCE makes it of ppoll(). */
int __wrap___ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                       const sigset_t *mask, size_t room);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    return poll_until(fds, n,
                      timeout_ms < 0 ? SIM_FOREVER : sim_now_us() + (int64_t)timeout_ms * 1000);
}

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                 const sigset_t *signals)
{
    (void)signals;
    return poll_until(fds, n,
                      timeout ? sim_now_us() + (int64_t)timeout->tv_sec * 1000000 +
                                    (timeout->tv_nsec + 999) / 1000
                              : SIM_FOREVER);
}

int __wrap___ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                       const sigset_t *mask, size_t room)
{
    (void)room;
    return __wrap_ppoll(fds, n, timeout, mask);
}
