/*
 * liballocs.so: counts the allocations of one process by who asks. To be preloaded; ALLOCS_FILE
 * names a file of ALLOCS_OWNERS counters (8 bytes each, see allocs.h), which is mapped, so that the
 * counts can be read while the process runs. malloc, calloc and realloc go on to glibc's own;
 * strdup counts for its caller, not for libc.
 */
#include "allocs.h"

#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEGMENTS_MAX = 128 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *at, size_t size);

static _Atomic uint64_t *counters; /* NULL: not mapped */
static struct segment {
    uintptr_t start, end;
    int owner;
} segments[SEGMENTS_MAX];
static int n_segments;

/* The code of one loaded object. The program itself has no name. */
static int note_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size, (void)arg;
    int owner = info->dlpi_name[0] == '\0' ? 0 : ALLOCS_OWNERS - 1;
    for (int i = 1; i < ALLOCS_OWNERS - 1 && info->dlpi_name[0] != '\0'; i++)
        if (strstr(info->dlpi_name, allocs_owners[i]) != NULL)
            owner = i;
    for (int i = 0; i < info->dlpi_phnum && n_segments < SEGMENTS_MAX; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && (header->p_flags & PF_X) != 0)
            segments[n_segments++] = (struct segment){start, start + header->p_memsz, owner};
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("ALLOCS_FILE");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, ALLOCS_OWNERS * sizeof *counters, PROT_READ | PROT_WRITE,
                              MAP_SHARED, fd, 0)
                       : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    dl_iterate_phdr(note_object, NULL);
    if (at != MAP_FAILED)
        counters = at;
}

static void count(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    int owner = ALLOCS_OWNERS - 1;
    if (counters == NULL)
        return;
    for (int i = 0; i < n_segments; i++)
        if (at >= segments[i].start && at < segments[i].end)
            owner = segments[i].owner;
    atomic_fetch_add_explicit(&counters[owner], 1, memory_order_relaxed);
}

void *malloc(size_t size)
{
    count(__builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_calloc(n, size);
}

void *realloc(void *at, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_realloc(at, size);
}

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    count(__builtin_return_address(0));
    char *copy = __libc_malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}
