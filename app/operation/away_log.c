#include "away_log.h"
#include "answer.h"
#include "point.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

enum { LINE_US = 1000000, WHY_MAX = 2 * LK_MESSAGE_MAX };

/* Lines of one kind: at most one per LINE_US. */
struct kind {
    int64_t next_us;
    uint64_t suppressed;
};

/* False: not now; it is counted. *ret_suppressed: those counted since the last line. */
static bool says(struct kind *kind, uint64_t *ret_suppressed)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    const int64_t us = now_us();
    const bool now = us >= kind->next_us;
    *ret_suppressed = kind->suppressed;
    kind->suppressed = now ? 0 : kind->suppressed + 1;
    if (now)
        kind->next_us = us + LINE_US;
    pthread_mutex_unlock(&mutex);
    return now;
}

void away_log(const char *what, const char *why)
{
    static struct kind away;
    uint64_t suppressed;
    char escaped[WHY_MAX];
    if (!says(&away, &suppressed))
        return;
    json_escape(escaped, sizeof escaped, why);
    fprintf(stderr,
            "level=error event=unavailable what=\"%s\" reason=\"%s\" suppressed=%" PRIu64 "\n",
            what, escaped, suppressed);
}

void away_log_pending(void *arg, const char *key, lk_pending what, int64_t pending_ms)
{
    static struct kind kinds[LK_PENDING_GIVEN_UP + 1];
    static const char *const levels[] = {"warning", "info", "error"};
    uint64_t suppressed;
    const char *guard = arg;
    if (says(&kinds[what], &suppressed))
        fprintf(stderr,
                "level=%s event=release-%s guard=\"%s\" key=\"%s\" pending_ms=%" PRId64
                " suppressed=%" PRIu64 "\n",
                levels[what], lk_pending_text(what), guard, key, pending_ms, suppressed);
}

void away_log_kept(enum away_kept what, const char *key, int64_t ms)
{
    static struct kind kinds[AWAY_KEPT_LEFT + 1];
    static const struct {
        const char *level, *event, *text;
    } lines[] = {
        [AWAY_KEPT] = {"warning", "undecided", "the commit was not answered; the lock is kept"},
        [AWAY_KEPT_DECIDED] = {"info", "decided", "the lock is released"},
        [AWAY_KEPT_LOST] = {"error", "undecided-lost",
                            "the lock ended before the commit was decided; only a fence stands"},
        [AWAY_KEPT_LEFT] = {"error", "undecided-left",
                            "the service ends before the commit is decided; the lock is left to "
                            "its lease"}};
    uint64_t suppressed;
    if (says(&kinds[what], &suppressed))
        fprintf(stderr,
                "level=%s event=%s key=\"%s\" kept_ms=%" PRId64 " detail=\"%s\" suppressed=%" PRIu64
                "\n",
                lines[what].level, lines[what].event, key, ms, lines[what].text, suppressed);
}
