/*
 * A client that lost an answer does not know the outcome. The idempotency key decides. First the
 * key is looked up. If nothing happened, the same request is sent again under it. However often it
 * is sent, its effect happens once.
 */
#include "progress.h"
#include "run.h"
#include "steady.h"

#include <stdlib.h>

enum { RESOLVE_PAUSE_MS = 20 };

/* True: it is decided. *ret_heard: the service answered. */
static bool try_once(struct run *run, uint64_t origin, uint64_t attempt, bool *ret_heard)
{
    char key[RUN_KEY_MAX], path[REMOTE_PATH_MAX], body[RUN_BODY_MAX], *answer;
    run_key(run, origin, key);
    run->workload->ask(run, origin, path, body);
    history_invoke(run->history, key, path, body);
    history_hand_over(run->history);
    int status = remote_outcome(run->options, origin + attempt, key, &answer);
    if (status == 404) {
        free(answer);
        status = remote_post(run->options, origin + attempt, path, key, body, &answer);
    }
    *ret_heard = status > 0;
    history_complete(run->history, key,
                     &(struct load_answer){.end = status > 0 ? LOAD_ANSWERED : LOAD_BROKEN,
                                           .status = status,
                                           .body = answer == NULL ? "" : answer,
                                           .answered_us = steady_us()});
    bool decided = status > 0 && tally_decide(&run->tally, origin, status, answer);
    free(answer);
    return decided;
}

/* Tries each request at least once, even after patience has ended. False: the service does not
 * answer. */
static bool resolve_one(struct run *run, uint64_t origin, int64_t deadline_ms)
{
    bool heard;
    for (uint64_t attempt = 0; !try_once(run, origin, attempt, &heard); attempt++) {
        if (run_stopped(run) || steady_ms() > deadline_ms)
            return heard;
        steady_sleep_ms(RESOLVE_PAUSE_MS);
    }
    return true;
}

void resolve_unknown(struct run *run)
{
    struct tally *tally = &run->tally;
    uint64_t left = tally_count(tally, TALLY_UNKNOWN);
    int64_t deadline_ms = steady_ms() + run->options->patience_ms;
    bool heard = true;
    for (uint64_t seq = 0; seq < tally_end(tally) && left > 0 && heard && !run_stopped(run); seq++)
        if (tally->entries[seq].state == TALLY_UNKNOWN && tally_origin(tally, seq) == seq) {
            progress_step(run->options, "%s under %s: %llu unknown outcomes to find out",
                          run->workload->name, run->guard, (unsigned long long)left--);
            heard = resolve_one(run, seq, deadline_ms);
        }
}
