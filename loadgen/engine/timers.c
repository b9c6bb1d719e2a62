#include "timers.h"

#include <stdlib.h>

enum { SIZE_MIN = 64 };

bool timers_add(struct timers *timers, const struct timer *timer)
{
    if (timers->count == timers->size) {
        size_t size = timers->size > 0 ? timers->size * 2 : SIZE_MIN;
        struct timer *heap = realloc(timers->heap, size * sizeof *heap);
        if (heap == NULL)
            return false;
        timers->heap = heap;
        timers->size = size;
    }
    size_t hole = timers->count++;
    while (hole > 0 && timers->heap[(hole - 1) / 2].due_us > timer->due_us) {
        timers->heap[hole] = timers->heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    timers->heap[hole] = *timer;
    return true;
}

int64_t timers_next_us(const struct timers *timers)
{
    return timers->count > 0 ? timers->heap[0].due_us : INT64_MAX;
}

bool timers_take(struct timers *timers, int64_t now_us, struct timer *ret)
{
    if (timers->count == 0 || timers->heap[0].due_us > now_us)
        return false;
    *ret = timers->heap[0];
    const struct timer last = timers->heap[--timers->count];
    size_t hole = 0;
    for (;;) {
        size_t child = 2 * hole + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count &&
            timers->heap[child + 1].due_us < timers->heap[child].due_us)
            child++;
        if (timers->heap[child].due_us >= last.due_us)
            break;
        timers->heap[hole] = timers->heap[child];
        hole = child;
    }
    timers->heap[hole] = last;
    return true;
}

void timers_free(struct timers *timers)
{
    free(timers->heap);
    *timers = (struct timers){0};
}
