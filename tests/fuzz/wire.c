#include "wire.h"
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

enum { FDS_MAX = 1024, CONNECTS_MAX = 8 };

static struct {
    bool on;
    const uint8_t *at, *end;
    const uint8_t *preamble, *preamble_end;
    int connects;
    int peer[FDS_MAX];              /* of a client's descriptor: our end + 1; 0: none */
    const uint8_t *greets[FDS_MAX]; /* what is left of its preamble */
} wire;

static int peer_of(int fd)
{
    return wire.on && fd >= 0 && fd < FDS_MAX ? wire.peer[fd] - 1 : -1;
}

static void hang_up(int fd)
{
    if (wire.peer[fd] != 0)
        close(wire.peer[fd] - 1);
    wire.peer[fd] = 0;
}

void wire_begin(const uint8_t *input, size_t size, const char *preamble, size_t preamble_size)
{
    static const uint8_t nothing[1];
    wire.at = size > 0 ? input : nothing;
    wire.end = wire.at + size;
    wire.preamble = preamble_size > 0 ? (const uint8_t *)preamble : nothing;
    wire.preamble_end = wire.preamble + preamble_size;
    wire.connects = 0;
    wire.on = true;
}

void wire_end(void)
{
    for (int fd = 0; fd < FDS_MAX; fd++)
        hang_up(fd);
    wire.on = false;
}

bool wire_is_over(void)
{
    return wire.at == wire.end;
}

static void send_all(int peer, const void *bytes, size_t size)
{
    ssize_t sent = send(peer, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent; /* a client that has hung up, or does not read, misses it */
}

/* What the client has written is not looked at. */
static void swallow(int peer)
{
    char bytes[4096];
    while (syscall(SYS_recvfrom, peer, bytes, sizeof bytes, MSG_DONTWAIT, NULL, NULL) > 0)
        continue;
}

static bool is_mark(const uint8_t *at, const uint8_t *end)
{
    return end - at >= 2 && at[0] == 0x1e && (at[1] == 0x1e || at[1] == 0x1f);
}

/* Sends the next piece if nothing waits to be read. */
static void feed(int fd)
{
    const int peer = peer_of(fd);
    int waiting = 0;
    if (peer < 0 || ioctl(fd, FIONREAD, &waiting) != 0 || waiting > 0)
        return;
    swallow(peer);
    const bool greets = wire.greets[fd] < wire.preamble_end;
    const uint8_t **from = greets ? &wire.greets[fd] : &wire.at;
    const uint8_t *const end = greets ? wire.preamble_end : wire.end, *const piece = *from;
    const uint8_t *cut = piece;
    while (cut < end && !is_mark(cut, end))
        cut++;
    *from = cut == end ? end : cut + 2;
    if (cut > piece)
        send_all(peer, piece, (size_t)(cut - piece));
    if (!greets && (cut == end || cut[1] == 0x1e))
        shutdown(peer, SHUT_WR);
    else if (cut == piece)
        feed(fd); /* an empty piece wakes nobody */
}

/* -- in the place of the C library's ------------------------------------------------------------
 */

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    int ends[2];
    if (!wire.on)
        return (int)syscall(SYS_connect, fd, address, size);
    if (++wire.connects > CONNECTS_MAX || wire.at == wire.end || fd >= FDS_MAX) {
        errno = ECONNREFUSED;
        return -1;
    }
    const int flags = fcntl(fd, F_GETFL), on_exec = fcntl(fd, F_GETFD);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    hang_up(fd);
    FUZZ_CHECK(dup2(ends[0], fd) == fd);
    close(ends[0]);
    fcntl(fd, F_SETFL, flags);
    fcntl(fd, F_SETFD, on_exec);
    wire.peer[fd] = ends[1] + 1;
    wire.greets[fd] = wire.preamble;
    return 0;
}

static void feed_all(const struct pollfd *fds, nfds_t n)
{
    for (nfds_t i = 0; i < n; i++)
        if (fds[i].events & POLLIN)
            feed(fds[i].fd);
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask)
{
    if (limit == NULL || limit->tv_sec > 0 || limit->tv_nsec > 0)
        feed_all(fds, n);
    struct timespec left = limit != NULL ? *limit : (struct timespec){0};
    return (int)syscall(SYS_ppoll, fds, n, limit != NULL ? &left : NULL, mask, sizeof(uint64_t));
}

int poll(struct pollfd *fds, nfds_t n, int limit_ms)
{
    const struct timespec limit = {.tv_sec = limit_ms / 1000,
                                   .tv_nsec = (long)(limit_ms % 1000) * 1000000};
    return ppoll(fds, n, limit_ms < 0 ? NULL : &limit, NULL);
}

ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    if (peer_of(fd) >= 0 && !(flags & (MSG_PEEK | MSG_DONTWAIT)) &&
        !(fcntl(fd, F_GETFL) & O_NONBLOCK))
        feed(fd);
    return syscall(SYS_recvfrom, fd, bytes, size, flags, NULL, NULL);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
    if (peer_of(fd) >= 0 && level == IPPROTO_TCP)
        return 0;
    return (int)syscall(SYS_setsockopt, fd, level, option, value, size);
}
