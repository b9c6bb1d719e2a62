/*
 * libclockshim.so: sets the wall clock of one process ahead. To be preloaded. CLOCKSHIM_FILE names
 * a file of 8 bytes: the microseconds to add. The file is mapped, so a change of it moves the
 * clock at once. The monotonic clock stays real. (libfaketime aborts with Debian's Redis.)
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { US_PER_S = 1000000, NS_PER_US = 1000 };

static const volatile int64_t *offset_us; /* NULL: not mapped */

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("CLOCKSHIM_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, sizeof *offset_us, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (at != MAP_FAILED)
        offset_us = at;
    if (fd >= 0)
        close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int result = (int)syscall(SYS_clock_gettime, clock, ret);
    if (result != 0 || offset_us == NULL ||
        (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return result;
    int64_t us = *offset_us + ret->tv_nsec / NS_PER_US;
    ret->tv_sec += us / US_PER_S;
    ret->tv_nsec = us % US_PER_S * NS_PER_US + ret->tv_nsec % NS_PER_US;
    return 0;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    *ret = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / NS_PER_US};
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    if (ret != NULL)
        *ret = now.tv_sec;
    return now.tv_sec;
}
