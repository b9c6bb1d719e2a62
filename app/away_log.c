#include "away_log.h"
#include "answer.h"
#include "../lockkit/lockkit.h"
#include "point.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

enum { LINE_US = 1000000, WHY_MAX = 2 * LK_MESSAGE_MAX };

void away_log(const char *what, const char *why)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static int64_t next_us;
    static uint64_t suppressed;
    char escaped[WHY_MAX];
    pthread_mutex_lock(&mutex);
    const int64_t us = now_us();
    const bool says = us >= next_us;
    const uint64_t before = suppressed;
    suppressed = says ? 0 : suppressed + 1;
    if (says)
        next_us = us + LINE_US;
    pthread_mutex_unlock(&mutex);
    if (!says)
        return;
    json_escape(escaped, sizeof escaped, why);
    fprintf(stderr,
            "level=error event=unavailable what=\"%s\" reason=\"%s\" suppressed=%" PRIu64 "\n",
            what, escaped, before);
}
