/* What came of a run: two witnesses, the service's audit of its ledger and the answers. */
#include "hazard_crowd.h"
#include "hazard_queue.h"
#include "hazard_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A change may have been made although its answer was lost or was an error. Then the store's answer
 * for the key decides. */
static int was_accepted(struct hazard_run *run, const struct actor *actor, bool *ret)
{
    *ret = actor->status == 201 || actor->order[0] != '\0';
    if (*ret || actor->times == 0 || actor->status == 409)
        return 0;
    return lab_was_accepted(&run->world->instances[0].target, actor->key, ret, run->message);
}

/* What the value has to be: each intent that was accepted counts once. */
static int expect(struct hazard_run *run, int64_t *ret)
{
    int64_t delta = 0;
    for (int i = 0; i < HAZARD_ACTORS; i++) {
        bool accepted;
        if (was_accepted(run, &run->actors[i], &accepted) != 0)
            return -1;
        delta += accepted ? hazard_delta(run->hazard, (enum hazard_who)i) : 0;
    }
    *ret = run->outcome.initial + delta + run->queue.accepted * QUEUE_DELTA;
    return 0;
}

/* For items the value is the number of pieces sold: accepted orders minus closed ones, at most the
 * stock. */
static void expect_sold(struct hazard_run *run)
{
    int64_t accepted = run->outcome.initial - run->outcome.expected_final;
    accepted += atomic_load(&run->crowd.accepted) - run->tasks.closed;
    run->outcome.expected_final = accepted < run->outcome.initial ? accepted : run->outcome.initial;
}

static bool lost_something(const struct run_outcome *outcome, const struct audit_row *audit)
{
    return outcome->final != outcome->expected_final || audit->lost_updates != 0 ||
           audit->lost_amount != 0 || audit->oversold != 0 || audit->over_limit != 0 ||
           audit->duplicates != 0 || audit->negative != 0 || audit->broken != 0;
}

static bool is_stuck(const struct hazard_run *run)
{
    for (int i = 0; i < HAZARD_ACTORS; i++)
        if (run->actors[i].times > 0 && run->actors[i].answer == ANSWER_STUCK &&
            run->hazard->last[i] != ANSWER_STUCK) /* the row wants this actor to give up */
            return true;
    return false;
}

/* Each actor has the answer that the row wants. The crowd has bought all pieces, or one each. An
 * order whose time is over is paid or closed. */
static bool all_are_served(const struct hazard_run *run)
{
    const struct hazard *hazard = run->hazard;
    int64_t stock = hazard_initial(hazard), crowd = hazard->crowd < stock ? hazard->crowd : stock;
    for (int i = 0; i < HAZARD_ACTORS; i++)
        if (run->actors[i].times > 0 && run->actors[i].answer != hazard->last[i])
            return false;
    return atomic_load(&run->crowd.accepted) == crowd && atomic_load(&run->crowd.failed) == 0 &&
           run->queue.accepted == hazard->queue &&
           (hazard->reserve_s == 0 || run->tasks.closed || run->actors[A].pays);
}

enum hazard_outcome run_classify(const struct hazard_run *run, const struct audit_row *audit)
{
    const struct hazard *hazard = run->hazard;
    if (lost_something(&run->outcome, audit) || atomic_load(&run->readers.torn) != 0)
        return HAZARD_UNSAFE;
    if (is_stuck(run) && !hazard->gives_up)
        return HAZARD_STUCK;
    if (!all_are_served(run))
        return HAZARD_REFUSED;
    bool late = hazard->slow_ms > 0 && run->outcome.measure_ms > hazard->slow_ms;
    bool herd = hazard->slow_wakes > 0 && run->outcome.wakes > hazard->slow_wakes;
    bool overtaken =
        hazard->slow_overtakings > 0 && run->outcome.overtakings > hazard->slow_overtakings;
    return late || herd || overtaken ? HAZARD_SLOW : HAZARD_SAFE;
}

int run_judge(struct hazard_run *run)
{
    struct audit_row audit;
    struct run_outcome *outcome = &run->outcome;
    if (lab_audit(&run->world->instances[0].target, run->resource, &audit, run->message) != 0)
        return -1;
    *outcome = (struct run_outcome){
        .initial = audit.initial,
        .final = run->hazard->subject == ITEM ? audit.sold : audit.current,
        .lost_updates = audit.lost_updates,
        .lost_amount = audit.lost_amount,
        .oversold = audit.oversold,
        .duplicates = audit.duplicates,
        .failed = atomic_load(&run->crowd.failed),
        .has_fork = audit.has_fork,
    };
    if (audit.has_fork)
        memcpy(outcome->fork, audit.fork, sizeof outcome->fork);
    if (expect(run, &outcome->expected_final) != 0)
        return -1;
    if (run->hazard->subject == ITEM)
        expect_sold(run);
    outcome->measure_ms = run->actors[run->actors[B].times > 0 ? B : A].took_us / 1000;
    if (run->hazard->slow_wakes > 0)
        outcome->wakes = crowd_wakes(run);
    if (run->hazard->queue > 0)
        queue_measure(run);
    run->observed = run_classify(run, &audit);
    return 0;
}
