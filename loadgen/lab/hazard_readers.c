#include "hazard_readers.h"

#include <stdio.h>

struct visit {
    lk_hold hold;
    int64_t value; /* as it was read on entering */
};

/* -- the relay, in a thread of its own -------------------------------------------------------- */

static bool fail(struct readers *readers, const char *what)
{
    snprintf(readers->message, sizeof readers->message, "a reader: %s", what);
    return false;
}

static bool read_value(struct readers *readers, int64_t *ret)
{
    struct hazard_run *run = readers->run;
    return lab_value(&run->world->instances[0].target, run->id, ret, readers->message) == 0;
}

/* LK_OK: it is inside and has read; LK_TIMEOUT: it was not let in within wait_ms. */
static lk_status enter(struct readers *readers, struct visit *visit, int64_t wait_ms)
{
    const lk_request request = {.key = readers->run->lock, .mode = LK_SHARED, .wait_ms = wait_ms};
    lk_status status = lk_acquire(readers->client, &request, &visit->hold);
    if (status == LK_OK && !read_value(readers, &visit->value)) {
        lk_release(&visit->hold);
        return LK_UNKNOWN;
    }
    return status == LK_BUSY ? LK_TIMEOUT : status;
}

/* Reads once more: nobody may have written meanwhile. */
static bool leave(struct readers *readers, struct visit *visit)
{
    int64_t value;
    bool read = read_value(readers, &value);
    if (read && value != visit->value)
        atomic_fetch_add(&readers->torn, 1);
    if (lk_release(&visit->hold) != LK_OK)
        return fail(readers, "its lock was gone");
    return read;
}

/* The next reader enters, then the present one leaves. If a writer waits, the present one must
 * leave first. */
static bool hand_over(struct readers *readers, struct visit *here, struct visit *next)
{
    lk_status status = enter(readers, next, 0);
    if (status == LK_OK) {
        atomic_fetch_add(&readers->together, 1);
        return leave(readers, here);
    }
    if (status != LK_TIMEOUT)
        return fail(readers, lk_status_text(status));
    if (!leave(readers, here)) /* a writer waits */
        return false;
    atomic_store(&readers->waits, true);
    status = enter(readers, next, readers->run->how.patience_ms);
    atomic_store(&readers->waits, false);
    return status == LK_OK || fail(readers, "was not let in again");
}

static void *relay(void *arg)
{
    struct readers *readers = arg;
    struct visit visits[2];
    int here = 0;
    if (enter(readers, &visits[here], readers->run->how.patience_ms) != LK_OK) {
        fail(readers, "was not let in");
        return NULL;
    }
    while (!atomic_load(&readers->stop) && hand_over(readers, &visits[here], &visits[1 - here]))
        here = 1 - here;
    if (readers->message[0] == '\0')
        leave(readers, &visits[here]);
    return NULL;
}

/* -- steps ------------------------------------------------------------------------------------ */

static bool were_together(void *arg)
{
    struct hazard_run *run = arg;
    return atomic_load(&run->readers.together) >= run->readers.wanted;
}

static bool waits_or_is_inside(void *arg)
{
    struct hazard_run *run = arg;
    return atomic_load(&run->readers.waits) || were_together(arg);
}

static int look(struct hazard_run *run, bool (*seen)(void *arg), const char *otherwise)
{
    run->readers.wanted = atomic_load(&run->readers.together) + 2;
    if (run_until(run, seen, run) == 0)
        return 0;
    snprintf(run->message, LAB_MESSAGE_MAX, "%s", otherwise);
    return -1;
}

int readers_send(struct hazard_run *run)
{
    struct readers *readers = &run->readers;
    lk_error error;
    readers->run = run;
    if (lk_open(run->one->guard, run->world->endpoints, NULL, &readers->client, &error) != LK_OK) {
        snprintf(run->message, LAB_MESSAGE_MAX, "%s", error.message);
        return -1;
    }
    readers->started = pthread_create(&readers->thread, NULL, relay, readers) == 0;
    if (!readers->started) {
        lk_close(readers->client);
        return -1;
    }
    int result = look(run, were_together, "no two readers were inside together");
    run_note(run, "readers", "inside together");
    return result;
}

int readers_until_inside(struct hazard_run *run)
{
    int result = look(run, were_together, "the readers were not let in together any more");
    run_note(run, "readers", "inside together");
    return result;
}

int readers_as_far_as(struct hazard_run *run)
{
    int result = look(run, waits_or_is_inside, "the readers neither wait nor are inside");
    run_note(run, "readers", atomic_load(&run->readers.waits) ? "they wait" : "inside together");
    return result;
}

int readers_answer(struct hazard_run *run)
{
    struct readers *readers = &run->readers;
    if (!readers->started)
        return 0;
    atomic_store(&readers->stop, true);
    pthread_join(readers->thread, NULL); /* patience_ms bounds its waits */
    readers->started = false;
    lk_close(readers->client);
    run_note(run, "readers", "gone: %ld times together, %ld saw a change",
             atomic_load(&readers->together), atomic_load(&readers->torn));
    if (readers->message[0] != '\0')
        snprintf(run->message, LAB_MESSAGE_MAX, "%s", readers->message);
    return readers->message[0] == '\0' ? 0 : -1;
}
