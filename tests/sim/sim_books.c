/* The books of the clients: what they were told about each key, and what they may be told next. */
#include "sim_threads.h"
#include "sim_world.h"

#include <string.h>

enum { LONG_WAIT_MS = 3000, SESSION_CLOCK_US = 10000 /* it is right to */ };

static bool is_decided(const struct answer *answer)
{
    return answer->problem == PROBLEM_NONE || problem_info(answer->problem)->decided;
}

static void count_answer(const struct op *op)
{
    static const struct {
        enum problem problem;
        enum sim_event event;
    } counted[] = {
        {PROBLEM_SOLD_OUT, SIM_SOLD_OUT},         {PROBLEM_FUNDS, SIM_FUNDS},
        {PROBLEM_LOCK_TIMEOUT, SIM_LOCK_TIMEOUT}, {PROBLEM_UNAVAILABLE, SIM_UNAVAILABLE},
        {PROBLEM_IN_FLIGHT, SIM_IN_FLIGHT},       {PROBLEM_STORAGE_FULL, SIM_STORAGE_FULL},
        {PROBLEM_DRAINING, SIM_DRAINING},         {PROBLEM_STOCK, SIM_TOO_FEW}};
    static const struct {
        enum op_kind kind;
        enum sim_event event;
    } done[] = {{OP_PAY_ORDER, SIM_PAID},
                {OP_CANCEL_ORDER, SIM_CANCELLED},
                {OP_TRANSFER, SIM_TRANSFERRED},
                {OP_CHANGE_STOCK, SIM_RESTOCKED},
                {OP_REFUND_ORDER, SIM_REFUNDED}};
    if (op->answer.replayed)
        sim_count(op->point_us[OP_CHECKED] != 0 ? SIM_DUPLICATE : SIM_REPLAYED);
    if (op->answer.body && strstr(op->answer.body, "outcome of the commit unknown"))
        sim_count(SIM_UNKNOWN_COMMIT);
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++)
        if (op->answer.problem == counted[i].problem)
            sim_count(counted[i].event);
    if (op->answer.problem == PROBLEM_LOCK_TIMEOUT && sim_world.is.n_faults == 0 &&
        sim_world.is.wait_ms >= LONG_WAIT_MS)
        sim_broken("a lock was not had within %u ms, and nothing went wrong", sim_world.is.wait_ms);
    if (op->answer.problem != PROBLEM_NONE)
        return;
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++)
        if (op->kind == done[i].kind)
            sim_count(done[i].event);
}

static bool stands_still(void)
{
    const bool *faults = sim_world.is.faults;
    return faults[SIM_PAUSE] || faults[SIM_STALL] || faults[SIM_PG_SLOW];
}

/* The time of PostgreSQL's answers is its clock's, as the session took it when it connected. */
bool sim_may_be_pruned(const struct sim_deal *deal)
{
    const struct sim_settings *is = &sim_world.is;
    const bool by_server = is->postgres;
    if (is->retention_s == 0)
        return false;
    return is->faults[SIM_CLOCK] || (by_server && stands_still()) ||
           sim_now_us() >= deal->asked_us + is->retention_s * INT64_C(1000000) -
                               (by_server ? SESSION_CLOCK_US : 0);
}

/* A refusal is also pruned once enough newer ones are stored. */
bool sim_refusal_may_go(const struct sim_deal *deal)
{
    return sim_may_be_pruned(deal) || sim_world.is.refusals_max < SIM_REFUSALS_ALL;
}

bool sim_newer_refusals_since(const struct sim_deal *deal, int64_t *ret_us)
{
    const bool by_server = sim_world.is.postgres;
    *ret_us = sim_wall_begin_us + deal->refused_us - (by_server ? SESSION_CLOCK_US : 0);
    return !sim_world.is.faults[SIM_CLOCK] && !(by_server && stands_still());
}

/* Its answer is no longer kept. */
static void enter_done(struct sim_deal *deal)
{
    sim_count(SIM_PRUNED);
    if (!sim_may_be_pruned(deal))
        sim_broken("the answer to %s was pruned before its time", deal->key);
    if (deal->decided && deal->status < 300)
        return;
    if (!deal->decided)
        sim_world.n_open--;
    deal->decided = deal->unseen = true;
    deal->status = 0;
    deal->body[0] = '\0';
}

/* A decided key is answered otherwise. A refusal that was pruned may be decided anew, and may be
 * told late. */
static bool may_differ(const struct sim_deal *deal, int status)
{
    if (deal->unseen && status < 300)
        return true;
    return sim_refusal_may_go(deal) && (deal->status >= 300 || status >= 300);
}

void sim_enter(struct sim_deal *deal, const struct op *op, int64_t asked_us)
{
    const struct answer *answer = &op->answer;
    const char *body = answer->body ? answer->body : "";
    count_answer(op);
    if (answer->problem == PROBLEM_NOT_FOUND || answer->problem == PROBLEM_KEY_REUSED ||
        answer->problem == PROBLEM_INTERNAL || answer->problem == PROBLEM_BAD_REQUEST)
        sim_broken("%s was answered %d: %.200s", deal->key, answer->status, body);
    if (answer->problem == PROBLEM_ALREADY_DONE)
        enter_done(deal);
    if (!is_decided(answer))
        return;
    if (answer->status >= 300 && !answer->replayed && asked_us > deal->refused_us)
        deal->refused_us = asked_us;
    if (deal->decided && deal->status >= 300 && !answer->replayed && sim_may_be_pruned(deal))
        sim_count(SIM_REDECIDED);
    if (deal->decided && (deal->status != answer->status || strcmp(deal->body, body) != 0)) {
        if (!may_differ(deal, answer->status))
            sim_broken("%s was answered twice: %d %.120s and %d %.120s", deal->key, deal->status,
                       deal->body, answer->status, body);
        if (answer->status >= 300 && (deal->unseen || deal->status < 300)) /* told late */
            return;
    }
    if (!deal->decided)
        sim_world.n_open--;
    deal->decided = true;
    deal->unseen = false;
    deal->status = answer->status;
    snprintf(deal->body, sizeof deal->body, "%s", body);
}
