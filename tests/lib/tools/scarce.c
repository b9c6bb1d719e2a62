#include "scarce.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int countdown; /* 0: no failure planned; 1: the next allocation fails */
static bool sticky;
static int refused;

void scarce_from(int nth, bool goes_on)
{
    pthread_mutex_lock(&mutex);
    countdown = nth;
    sticky = goes_on;
    refused = 0;
    pthread_mutex_unlock(&mutex);
}

int scarce_end(void)
{
    pthread_mutex_lock(&mutex);
    countdown = 0;
    int n = refused;
    pthread_mutex_unlock(&mutex);
    return n;
}

static bool is_refused(void)
{
    pthread_mutex_lock(&mutex);
    bool due = countdown == 1;
    if (countdown > 1 || (due && !sticky))
        countdown--;
    refused += due;
    pthread_mutex_unlock(&mutex);
    return due;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *piece, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *piece, size_t size);
char *__wrap_strdup(const char *text);

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __real_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                 const sigset_t *mask);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                 const sigset_t *mask);
/* _FORTIFY_SOURCE makes it of ppoll(). */
int __wrap___ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                       const sigset_t *mask, size_t room);

static bool refuses_with_errno(void)
{
    bool refuses = is_refused();
    if (refuses)
        errno = ENOMEM;
    return refuses;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    return refuses_with_errno() ? -1 : __real_poll(fds, n, timeout_ms);
}

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    return refuses_with_errno() ? -1 : __real_ppoll(fds, n, timeout, mask);
}

int __wrap___ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                       const sigset_t *mask, size_t room)
{
    (void)room;
    return __wrap_ppoll(fds, n, timeout, mask);
}

void *__wrap_malloc(size_t size)
{
    return refuses_with_errno() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refuses_with_errno() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *piece, size_t size)
{
    return refuses_with_errno() ? NULL : __real_realloc(piece, size);
}

char *__wrap_strdup(const char *text)
{
    return refuses_with_errno() ? NULL : __real_strdup(text);
}

int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
FILE *__real_open_memstream(char **text, size_t *size);
FILE *__wrap_open_memstream(char **text, size_t *size);
ssize_t __real_getline(char **line, size_t *size, FILE *file);
ssize_t __wrap_getline(char **line, size_t *size, FILE *file);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg);

int __wrap_asprintf(char **ret, const char *format, ...)
{
    va_list args;
    if (refuses_with_errno())
        return -1;
    va_start(args, format);
    int length = vasprintf(ret, format, args);
    va_end(args);
    return length;
}

FILE *__wrap_open_memstream(char **text, size_t *size)
{
    return refuses_with_errno() ? NULL : __real_open_memstream(text, size);
}

ssize_t __wrap_getline(char **line, size_t *size, FILE *file)
{
    return refuses_with_errno() ? -1 : __real_getline(line, size, file);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    return refuses_with_errno() ? NULL : __real_fopen(path, mode);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg)
{
    return is_refused() ? EAGAIN : __real_pthread_create(thread, attributes, start, arg);
}
