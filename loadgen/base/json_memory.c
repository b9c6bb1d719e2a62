#include "json_memory.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *ending; /* the program */

static void *take(size_t size)
{
    void *piece = malloc(size);
    if (piece == NULL) {
        fprintf(stderr, "%s: out of memory\n", ending);
        _exit(EXIT_FAILURE); /* from any thread; what the others hold ends with the process */
    }
    return piece;
}

void json_memory_or_end(const char *program)
{
    ending = program;
    json_set_alloc_funcs(take, free);
}
