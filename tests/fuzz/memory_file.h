/* A file in memory, for code that reads a file by its name. */
#ifndef MEMORY_FILE_H
#define MEMORY_FILE_H

#include "fuzz.h"

#include <sys/mman.h>

struct memory_file {
    int fd; /* 0: not made yet */
    char path[64];
};

static inline const char *memory_file(struct memory_file *file, const void *bytes, size_t size)
{
    if (file->fd == 0)
        file->fd = memfd_create("fuzz", MFD_CLOEXEC);
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
    FUZZ_CHECK(ftruncate(file->fd, 0) == 0);
    FUZZ_CHECK(size == 0 || pwrite(file->fd, bytes, size, 0) == (ssize_t)size);
    return file->path;
}

#endif
