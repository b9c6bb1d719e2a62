/*
 * No wake-up is lost: every interleaving of waiters, releases, messages, time-outs, lost answers
 * and broken subscriptions, enumerated.
 *
 * The code under test and its world are in wake_model.h. The explorer tries every next step, and
 * does not explore a state twice.
 *
 * The claim: in each state without a next step, no permit is free while a waiter sleeps.
 */
#include "process.h"
#include "tests.h"
#include "wake_model.h"
#include <stdio.h>

enum {
    DEPTH_MAX = 120,
    SEEN_MAX = 1 << 21 /* a power of two */
};

/* -- next steps ----------------------------------------------------------------------------------
 */

enum what { RUN, LATE, RELEASE, DELIVER, BREAK, REMAKE };

struct choice {
    enum what what;
    int who;
};

enum { CHOICES_MAX = 2 * WAITERS_MAX + 1 + 3 * CLIENTS_MAX };

static int choices(struct choice *ret)
{
    int n = 0;
    for (int i = 0; i < model.is.waiters; i++) {
        const struct waiter *waiter = &model.waiters[i];
        bool sleeps = waiter->at == AT_BELL && !*waiter->woken && !waiter->late;
        if (waiter->at != AT_END && !sleeps)
            ret[n++] = (struct choice){RUN, i};
        if (sleeps && i == 0 && model.is.hasty)
            ret[n++] = (struct choice){LATE, i};
    }
    if (model.to_release > 0)
        ret[n++] = (struct choice){RELEASE, 0};
    for (int i = 0; i < model.is.clients; i++) {
        const struct client *client = &model.clients[i];
        if (client->messages > 0)
            ret[n++] = (struct choice){DELIVER, i};
        if (model.breaks > 0 && client->sub.subscribed && !client->sub.broken)
            ret[n++] = (struct choice){BREAK, i};
        if (client->sub.broken)
            ret[n++] = (struct choice){REMAKE, i};
    }
    return n;
}

static void run(int who)
{
    for (int i = 0; i < model.is.waiters; i++)
        fibers.all[i].due_us = i == who ? 1 : 2;
    fibers_step(&fibers);
}

static void take(struct choice choice)
{
    struct client *client = &model.clients[choice.who];
    switch (choice.what) {
    case LATE:
        model.waiters[choice.who].late = true; /* a wake-up may still come before it runs */
        break;
    case RUN:
        run(choice.who);
        break;
    case RELEASE:
        model.to_release--;
        release();
        break;
    case DELIVER:
        client->messages--;
        on_message(&client->wake, "permits:{k}", "0");
        break;
    case BREAK:
        model.breaks--;
        client->messages = 0;
        client->sub.broken = true;
        client->sub.subscribed = client->sub.listeners > 0;
        client->sub.live++;
        on_message(&client->wake, NULL, NULL);
        break;
    case REMAKE:
        client->sub.broken = false;
        break;
    }
}

/* -- the explorer --------------------------------------------------------------------------------
 */

static struct {
    struct choice path[DEPTH_MAX];
    uint64_t seen[SEEN_MAX]; /* hashes of states; 0: none */
    size_t states, ends;
    bool idle; /* in a state without a next step a permit was free while a waiter slept */
} explorer;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x9e3779b97f4a7c15 ^ hash >> 29;
}

/* A hash of everything that later steps depend on. */
static uint64_t state(void)
{
    uint64_t hash = mix(mix(mix(1, model.free), model.to_release), model.breaks);
    for (int i = 0; i < model.is.clients; i++) {
        const struct client *client = &model.clients[i];
        const struct line *line = client->wake.waiters->by_name;
        hash = mix(mix(hash, client->messages), client->sub.live);
        hash =
            mix(hash, client->sub.listeners * 4 + client->sub.subscribed * 2 + client->sub.broken);
        hash = mix(mix(hash, line ? line->n_kept + 1 : 0), line ? line->n_waiters : 0);
        for (const lk_redis_waiter *w = line ? line->asleep : NULL; w != NULL; w = w->next)
            for (int k = 0; k < model.is.waiters; k++) {
                const struct waiting *waiting = model.waiters[k].attempt.waiter;
                if (waiting != NULL && waiting->waiter == w)
                    hash = mix(hash, 100 + k);
            }
    }
    for (int i = 0; i < model.is.waiters; i++) {
        const struct waiter *waiter = &model.waiters[i];
        const struct waiting *waiting = waiter->attempt.waiter;
        hash = mix(hash, waiter->at * 16 + waiter->granted * 8 + waiter->last * 4 +
                             waiter->late * 2 + waiter->is_first);
        hash = mix(hash, waiting == NULL ? 0
                                         : 1 + waiting->live * 8 + waiting->joined * 4 +
                                               waiting->waiter->woken * 2);
    }
    return hash != 0 ? hash : 1;
}

static bool is_new(uint64_t hash)
{
    size_t at = hash & (SEEN_MAX - 1);
    for (; explorer.seen[at] != 0; at = (at + 1) & (SEEN_MAX - 1))
        if (explorer.seen[at] == hash)
            return false;
    explorer.seen[at] = hash;
    return ++explorer.states < SEEN_MAX / 2;
}

static void explore(const struct setting *is, int depth)
{
    struct choice next[CHOICES_MAX];
    start(is);
    for (int i = 0; i < depth; i++)
        take(explorer.path[i]);
    if (explorer.idle || !is_new(state()))
        return;
    int n = choices(next);
    if (n == 0) {
        bool sleeps = false;
        for (int i = 0; i < is->waiters; i++)
            sleeps = sleeps || model.waiters[i].at == AT_BELL;
        explorer.ends++;
        explorer.idle = sleeps && model.free > 0;
    }
    assert_true(depth < DEPTH_MAX);
    for (int i = 0; i < n && !explorer.idle; i++) {
        explorer.path[depth] = next[i];
        explore(is, depth + 1);
    }
}

/* True: in some interleaving a permit stays idle. */
static bool idles(const struct setting *is)
{
    memset(&explorer, 0, sizeof explorer);
    explore(is, 0);
    printf("permits %d, waiters %d, clients %d, releases %d%s%s%s, breaks %d: %zu states, %zu "
           "ends%s\n",
           is->permits, is->waiters, is->clients, is->releases, is->again ? " and again" : "",
           is->hasty ? ", hasty" : "", is->unheard ? ", unheard" : "", is->breaks, explorer.states,
           explorer.ends, explorer.idle ? ": a permit idles" : "");
    assert_true(explorer.states < SEEN_MAX / 2);
    assert_true(explorer.ends > 0);
    return explorer.idle;
}

static void no_permit_idles(int permits, int waiters, int clients, int breaks, bool again,
                            bool hasty, bool unheard)
{
    struct setting is = {.permits = permits,
                         .waiters = waiters,
                         .clients = clients,
                         .releases = permits,
                         .again = again,
                         .hasty = hasty,
                         .unheard = unheard,
                         .breaks = breaks,
                         .said = (uint32_t)permits};
    assert_false(idles(&is));
}

/* TEST_FULL=1: all settings, 4 million states. */
TEST_THAT(no_permit_idles_while_a_waiter_sleeps)
{
    bool full = test_size(0, 1);
    static const struct {
        bool hasty, unheard;
    } ends[] = {{true, false}, {true, true}, {false, false}};
    for (int permits = 1; permits <= 3; permits++)
        for (int waiters = 1; waiters <= (full ? WAITERS_MAX : 2); waiters++)
            for (int clients = 1; clients <= CLIENTS_MAX && clients <= waiters; clients++)
                for (int more = 0; more < (full ? 6 : 2); more++)
                    no_permit_idles(permits, waiters, clients,
                                    full ? waiters < WAITERS_MAX : permits < 3 && clients == 1,
                                    more >= 3, ends[more % 3].hasty, ends[more % 3].unheard);
    if (!full)
        no_permit_idles(2, WAITERS_MAX, 1, 0, false, false, false);
}

/* The explorer finds the error if the rule for one permit is used for two: other waiters in the
 * queue do not prove that no release was missed. */
TEST_THAT(rule_of_a_lock_lets_a_permit_idle)
{
    struct setting is = {.permits = 2, .waiters = 2, .clients = 1, .releases = 2, .said = 1};
    assert_true(idles(&is));
}

static int free_stacks(void **state)
{
    (void)state;
    fibers_free(&fibers);
    return 0;
}

GROUP_FIXTURE(NULL, free_stacks);
