/*
 * Lanes: a worker takes the steps of attempt.h for the operations of one lane, batch by batch, or
 * for a few operations of each of many lanes.
 */
#include "point.h"
#include "service_private.h"

#include <assert.h>
#include <string.h>

_Static_assert((int)LANES_MANY_MAX <= (int)SECTIONS_MAX &&
                   (int)LANES_MANY_MAX <= (int)LOCK_SETS_MAX,
               "serve_many() takes more lanes than one commit or one release");

static void finish_answered(struct writer *writer, struct attempt *attempt)
{
    for (struct op *op = attempt_answered(attempt), *next; op; op = next) {
        next = op->next;
        service_finish(writer->service, op);
    }
}

/* -- one lane --------------------------------------------------------------------------------- */

static const struct guard *guard_of(const struct attempt *attempt)
{
    return attempt->section->rows[0].guard;
}

/* Without a guard nothing may keep the operations apart. A batch runs one after the other, which
 * would be a guard, so each operation but the first gets a lane of its own. */
static void spread(struct writer *writer, struct attempt *attempt, const char *lane)
{
    struct section *section = attempt->section;
    size_t n = lanes_spread(writer->service->writes, lane, &section->ops[1], section->n_ops - 1);
    section->n_ops -= n;
    memmove(&section->ops[1], &section->ops[1 + n], (section->n_ops - 1) * sizeof section->ops[0]);
}

/* Whether the lock may be kept for the next batch. Not a fair lock: the next in its queue may be of
 * another instance. */
static bool may_keep(const struct writer *writer, const struct attempt *attempt, const char *lane,
                     int64_t turn)
{
    struct service *service = writer->service;
    const struct section *section = attempt->section;
    const struct guard *guard = guard_of(attempt);
    return !attempt->postponed && !section->guard_changed && !section->outcome_unknown &&
           turn < service->config->lane_turns && section->n_rows == 1 && section->n_ops > 0 &&
           guard->kind == GUARD_LOCK && !(guard->info->caps & LK_CAP_FAIR) &&
           !atomic_load(&service->closing) && lanes_goes_on(service->writes, lane);
}

/* One batch. Returns whether the lock is kept for the next one. */
static bool serve_batch(struct writer *writer, struct attempt *attempt, const char *lane,
                        int64_t turn)
{
    struct section *section = attempt->section;
    bool keeps = false;
    while (!attempt->postponed && attempt_look_up(attempt)) {
        finish_answered(writer, attempt); /* they need not wait for the lock */
        if (guard_of(attempt)->kind == GUARD_NONE) {
            attempt->postponed = attempt->must_not_wait;
            if (attempt->postponed)
                break;
            spread(writer, attempt, lane);
        }
        if (attempt_acquire(attempt)) {
            if (attempt_take_fences(attempt)) {
                do {
                    section_open_snapshot(section);
                    section_read(section);
                    section_decide(section);
                    section_close_snapshot(section);
                    section_commit(section);
                } while (attempt_again(attempt));
            }
            keeps = may_keep(writer, attempt, lane, turn);
            if (keeps)
                attempt_keep(attempt);
            else
                attempt_release(attempt);
            attempt_answer(attempt);
        }
        finish_answered(writer, attempt);
    }
    finish_answered(writer, attempt);
    return keeps;
}

size_t serve_lane(struct writer *writer, const char *lane, struct op **ops, size_t n,
                  bool must_not_wait)
{
    struct attempt attempt = {.section = &writer->sections[0], .must_not_wait = must_not_wait};
    int64_t turn = 1;
    bool keeps;
    do {
        keeps = attempt_begin(&attempt, ops, n) && serve_batch(writer, &attempt, lane, turn++);
        n = keeps ? lanes_more(writer->service->writes, lane, ops) : 0;
    } while (n > 0);
    attempt_end(&attempt);
    finish_answered(writer, &attempt);
    return attempt.section->n_ops;
}

/* -- many lanes ------------------------------------------------------------------------------- */

/* The attempts that go together: one snapshot, one round trip for the locks, one commit. */
struct together {
    struct attempt *attempts[LANES_MANY_MAX];
    struct section *sections[LANES_MANY_MAX]; /* of the attempts */
    struct lock_set *locks[LANES_MANY_MAX];   /* of the attempts */
    size_t n;
};

static void add(struct together *together, struct attempt *attempt)
{
    together->attempts[together->n] = attempt;
    together->sections[together->n] = attempt->section;
    together->locks[together->n] = &attempt->section->locks;
    together->n++;
}

static bool fits(const struct attempt *attempt)
{
    const struct section *section = attempt->section;
    return section->n_ops > 0 && section->n_rows == 1 &&
           guard_is_quick_with_many(guard_of(attempt));
}

/* Finds the attempts that need no lock, and the attempts that get their lock at once. All locks are
 * of one guard: that of the first attempt that needs one. */
static void acquire_many(struct attempt *attempts, size_t n, struct together *ret)
{
    struct together asking = {.n = 0};
    enum problem problems[LANES_MANY_MAX];
    const struct guard *lock = NULL;
    ret->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (!fits(&attempts[i]))
            continue;
        const struct guard *guard = guard_of(&attempts[i]);
        if (guard->kind != GUARD_LOCK) {
            add(ret, &attempts[i]);
        } else if (!lock || guard == lock) {
            lock = guard;
            add(&asking, &attempts[i]);
        }
    }
    if (asking.n > 0)
        lock_sets_try(asking.locks, asking.n, problems);
    for (size_t i = 0; i < asking.n; i++) {
        if (problems[i] == PROBLEM_NONE)
            add(ret, asking.attempts[i]);
    }
    for (size_t i = 0; i < ret->n; i++)
        attempt_acquired(ret->attempts[i]);
}

static void take_fences(struct together *together)
{
    for (size_t i = 0; i < together->n; i++) {
        bool fenced = attempt_take_fences(together->attempts[i]);
        assert(fenced); /* they are the locks' own: see service_threads.c */
    }
}

static void read_decide_commit(struct section *const *sections, size_t n)
{
    section_open_snapshot(sections[0]);
    for (size_t i = 1; i < n; i++)
        section_share_snapshot(sections[i], sections[0]);
    for (size_t i = 0; i < n; i++) {
        section_read(sections[i]);
        section_decide(sections[i]);
    }
    section_close_snapshot(sections[0]);
    section_commit_many(sections, n);
}

static void serve_together(struct together *together)
{
    take_fences(together);
    read_decide_commit(together->sections, together->n);
    for (size_t i = 0; i < together->n; i++)
        while (attempt_again(together->attempts[i]))
            read_decide_commit(&together->sections[i], 1);
    attempt_release_many(together->attempts, together->n);
    for (size_t i = 0; i < together->n; i++)
        attempt_answer(together->attempts[i]);
}

void serve_lanes(struct writer *writer, struct lanes_part *parts, size_t n)
{
    struct attempt attempts[LANES_MANY_MAX];
    struct together together;
    struct section *sections = writer->sections;
    for (size_t i = 0; i < n; i++) {
        attempts[i] = (struct attempt){.section = &sections[i], .must_not_wait = true};
        sections[i].reader = sections[0].reader;
        if (!attempt_begin(&attempts[i], parts[i].ops, parts[i].n)) {
            finish_answered(writer, &attempts[0]);
            parts->n = 0; /* no reader: the first lane is answered, the others are postponed */
            return;
        }
    }
    attempt_look_up_many(attempts, n);
    for (size_t i = 0; i < n; i++)
        finish_answered(writer, &attempts[i]);
    acquire_many(attempts, n, &together);
    if (together.n > 0)
        serve_together(&together);
    for (size_t i = 0; i < n; i++) {
        finish_answered(writer, &attempts[i]);
        parts[i].n = sections[i].n_ops;
        if (i > 0)
            sections[i].reader = NULL;
    }
}
