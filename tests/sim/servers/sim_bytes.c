#include "sim_bytes.h"

#include <stdlib.h>
#include <string.h>

void sim_bytes_add(struct sim_bytes *bytes, const char *from, size_t n)
{
    if (bytes->n + n > bytes->size) {
        bytes->size = 2 * (bytes->n + n) + 64;
        bytes->at = realloc(bytes->at, bytes->size);
        if (!bytes->at)
            abort();
    }
    if (n > 0)
        memcpy(bytes->at + bytes->n, from, n);
    bytes->n += n;
}

void sim_bytes_take(struct sim_bytes *bytes, size_t n)
{
    bytes->n -= n;
    memmove(bytes->at, bytes->at + n, bytes->n);
}
