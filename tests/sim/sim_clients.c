/*
 * Clients: each wants some things once, under a key each, and asks any instance until it is
 * decided. What they are told goes into books of their own, which the judge compares with the
 * database.
 */
#include "events.h"
#include "sim_threads.h"
#include "sim_watch.h"
#include "sim_world.h"

#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_AT_ONCE_US = 100000,
    PATIENCE_US = 60000000,
    HEALED_US = 120000000,
    PATCHES_MAX = 5,
    QUIET_US = 2000000 /* where nothing goes wrong, an answer comes within a tenth of it */
};

/* One sending of a deal. Its memory stays: the instance may still have it. */
struct attempt {
    struct op op;
    struct sim_instance *instance;
    bool done;
};

static void on_done(struct op *op)
{
    struct attempt *attempt = op->http;
    attempt->done = true;
    sim_wake(attempt, INT32_MAX);
}

/* The HTTP side: a thread of the instance. */
static void *submit(void *arg)
{
    struct attempt *attempt = arg;
    struct sim_instance *instance = attempt->instance;
    if (instance->state != SIM_UP && instance->state != SIM_STOPPING)
        return NULL;
    instance->entering++;
    if (!service_submit(instance->service, &attempt->op))
        on_done(&attempt->op);
    instance->entering--;
    return NULL;
}

/* NULL: no answer, and what became of it is not known. */
static struct attempt *ask(struct sim_instance *instance, const struct op *question,
                           int64_t patience_us)
{
    struct attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt)
        abort();
    attempt->op = *question;
    attempt->op.http = attempt;
    attempt->op.done = on_done;
    attempt->op.fence = -1;
    attempt->op.deadline_us = sim_now_us() + sim_world.is.wait_ms * INT64_C(1000);
    attempt->instance = instance;
    uint32_t life = instance->life;
    int64_t until_us = sim_now_us() + patience_us;
    sim_spawn(instance->group, "http", submit, attempt);
    while (!attempt->done && instance->life == life && sim_now_us() < until_us)
        sim_wait(attempt, sim_now_us() + ANSWER_AT_ONCE_US);
    return attempt->done ? attempt : NULL;
}

/* -- an operator ------------------------------------------------------------------------------ */

void sim_put(enum op_kind kind, const char *id, int64_t amount, const char *guard)
{
    struct op op = {.kind = kind,
                    .amount = amount,
                    .price = 50,
                    .per_user_limit = sim_world.is.per_user_limit,
                    .reserve_s = sim_world.is.reserve_s};
    snprintf(op.id, sizeof op.id, "%s", id);
    snprintf(op.guard, sizeof op.guard, "%s", guard);
    const int64_t begin_us = sim_now_us();
    while (sim_world.result->broken[0] == '\0') {
        struct sim_instance *instance = sim_instance_any();
        struct attempt *told = instance ? ask(instance, &op, PATIENCE_US) : NULL;
        bool done = told && told->op.answer.status >= 200 && told->op.answer.status < 300;
        free(told);
        if (done)
            return;
        sim_sleep_us(ANSWER_AT_ONCE_US);
        const int64_t since_us = begin_us > sim_world.healed_us ? begin_us : sim_world.healed_us;
        if (sim_now_us() > since_us + 2 * HEALED_US)
            sim_broken("PUT of %s is not done after %d s", id, 2 * HEALED_US / 1000000);
    }
}

/* The version of an item or account; 0: not known. */
static int64_t version_of(bool item, const char *id)
{
    struct op op = {.kind = item ? OP_GET_ITEM : OP_GET_ACCOUNT};
    snprintf(op.id, sizeof op.id, "%s", id);
    struct sim_instance *instance = sim_instance_any();
    struct attempt *told = instance ? ask(instance, &op, PATIENCE_US) : NULL;
    const int64_t version = told ? told->op.answer.version : 0;
    if (told)
        free(told->op.answer.body);
    free(told);
    return version;
}

bool sim_patch(bool item, const char *id, const char *guard)
{
    struct op op = {.kind = item ? OP_PATCH_ITEM : OP_PATCH_ACCOUNT,
                    .price = OP_UNCHANGED,
                    .per_user_limit = OP_UNCHANGED,
                    .reserve_s = OP_UNCHANGED};
    snprintf(op.id, sizeof op.id, "%s", id);
    snprintf(op.guard, sizeof op.guard, "%s", guard);
    bool done = false;
    for (int i = 0; i < PATCHES_MAX && !done; i++) {
        op.condition = (struct condition){
            .kind = CONDITION_ONE_OF, .n = 1, .versions = {version_of(item, id)}};
        struct sim_instance *instance = sim_instance_any();
        struct attempt *told = instance ? ask(instance, &op, PATIENCE_US) : NULL;
        done = told && told->op.answer.status == 200;
        if (done && told->op.answer.version != op.condition.versions[0] + 1)
            sim_broken("%s was changed over version %lld, and has version %lld", id,
                       (long long)op.condition.versions[0], (long long)told->op.answer.version);
        if (told && told->op.answer.problem == PROBLEM_CHANGED)
            sim_count(SIM_CHANGED);
        if (told)
            free(told->op.answer.body);
        free(told);
    }
    return done;
}

void sim_free_lock(const char *resource)
{
    struct op op = {.kind = OP_FREE_LOCK};
    snprintf(op.resource, sizeof op.resource, "%s", resource);
    struct sim_instance *instance = sim_instance_any();
    struct attempt *told = instance ? ask(instance, &op, PATIENCE_US) : NULL;
    if (!told)
        return;
    if (told->op.answer.body && strstr(told->op.answer.body, "true")) {
        sim_count(SIM_KEY_DELETED);
        sim_tell("somebody deletes the key lock:%s", resource);
    }
    free(told->op.answer.body);
    free(told);
}

/* -- clients ---------------------------------------------------------------------------------- */

/* A client waits for its answer longer than the service takes, or not at all so long. */
static int64_t draw_patience_us(void)
{
    if (!sim_world.is.faults[SIM_GAVE_UP] || sim_world.healed || !sim_one_in(4))
        return PATIENCE_US;
    return INT64_C(1000) << sim_below(10);
}

static void ask_once(struct sim_deal *deal)
{
    struct sim_instance *instance = sim_instance_any();
    if (!instance) {
        sim_sleep_us(ANSWER_AT_ONCE_US);
        return;
    }
    struct op op = {.kind = deal->kind, .amount = deal->amount};
    snprintf(op.key, sizeof op.key, "%s", deal->key);
    snprintf(op.id, sizeof op.id, "%s", deal->id);
    snprintf(op.other, sizeof op.other, "%s", deal->other);
    if (deal->kind == OP_CHANGE_STOCK)
        strcpy(op.reason, "count-correction");
    snprintf(op.request, sizeof op.request, "%d %s %s %lld", (int)deal->kind, deal->id, deal->other,
             (long long)deal->amount);
    if (deal->asked_us == 0)
        deal->asked_us = sim_now_us();
    if (deal->asking++ > 0)
        sim_count(SIM_TWICE);
    sim_tell("%s asks i%d: %s %s %s %lld", deal->key, instance->number, event_kind_text(deal->kind),
             deal->id, deal->other, (long long)deal->amount);
    const int64_t asked_us = sim_now_us();
    struct attempt *told = ask(instance, &op, draw_patience_us());
    deal->asking--;
    if (sim_world.is.n_faults == 0 && sim_now_us() > asked_us + QUIET_US)
        sim_broken("%s had no answer for %d s, and nothing went wrong", deal->key,
                   QUIET_US / 1000000);
    if (!told) {
        sim_count(SIM_GAVE_UP);
        return;
    }
    sim_tell("%s: %d %s from i%d", deal->key, told->op.answer.status,
             told->op.answer.problem ? problem_info(told->op.answer.problem)->id : "ok",
             instance->number);
    sim_watch();
    sim_enter(deal, &told->op, asked_us);
    free(told->op.answer.body);
    free(told);
}

static void see_through(struct sim_deal *deal)
{
    int64_t pause_us = 1000;
    while (!deal->decided && sim_world.result->broken[0] == '\0') {
        ask_once(deal);
        if (deal->decided)
            break;
        sim_sleep_us(pause_us / 2 + sim_below((uint32_t)pause_us));
        if (pause_us < 500000)
            pause_us *= 2;
        if (sim_world.healed && sim_now_us() > sim_world.healed_us + HEALED_US)
            sim_broken("%s has no answer %d s after all was healed", deal->key,
                       HEALED_US / 1000000);
    }
}

/* The text at "name":"...". */
static bool find_text(const char *body, const char *name, char *ret, size_t size)
{
    char label[32];
    snprintf(label, sizeof label, "\"%s\":\"", name);
    const char *at = strstr(body, label);
    if (!at)
        return false;
    at += strlen(label);
    snprintf(ret, size, "%.*s", (int)strcspn(at, "\""), at);
    return true;
}

static struct sim_deal *new_deal(enum op_kind kind, const char *id, const char *other,
                                 int64_t amount)
{
    struct sim_deal *deal = &sim_world.deals[sim_world.n_deals];
    *deal = (struct sim_deal){.kind = kind, .amount = amount};
    snprintf(deal->key, sizeof deal->key, "deal-%u", sim_world.n_deals++);
    snprintf(deal->id, sizeof deal->id, "%s", id);
    snprintf(deal->other, sizeof deal->other, "%s", other);
    sim_world.n_open++;
    return deal;
}

static void name(char *ret, size_t size, const char *prefix, uint32_t n)
{
    snprintf(ret, size, "%s%u", prefix, n);
}

static void name_item(char ret[16])
{
    name(ret, 16, "", sim_world.is.hot ? 0 : sim_below(sim_world.is.items));
}

/* An order, and often what becomes of it. */
static void buy(const char *user)
{
    char item[16], order[DB_ID_MAX + 1];
    name_item(item);
    struct sim_deal *deal = new_deal(OP_PLACE_ORDER, item, user, 1 + sim_below(2));
    see_through(deal);
    if (deal->status != 201 || sim_one_in(3) || sim_world.n_deals >= SIM_DEALS_MAX ||
        !find_text(deal->body, "order_id", order, sizeof order))
        return;
    see_through(new_deal(sim_one_in(2) ? OP_PAY_ORDER : OP_CANCEL_ORDER, order, "", 0));
}

/* The money back for any order that was paid, perhaps again. */
static void refund(void)
{
    const struct sim_deal *paid = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim_world.n_deals; i++)
        if (sim_world.deals[i].kind == OP_PAY_ORDER && sim_world.deals[i].status == 201 &&
            sim_below(++n) == 0)
            paid = &sim_world.deals[i];
    if (paid)
        see_through(new_deal(OP_REFUND_ORDER, paid->id, "", 0));
}

/* One to three pieces more or less. */
static void count_stock(void)
{
    char item[16];
    name_item(item);
    const int64_t pieces = 1 + sim_below(3);
    see_through(new_deal(OP_CHANGE_STOCK, item, "", sim_one_in(2) ? pieces : -pieces));
}

/* Another's key, perhaps while it runs. Where answers are pruned, often one that was refused: it
 * may be decided anew. */
static void ask_again(void)
{
    const uint32_t first = sim_below(sim_world.n_deals);
    uint32_t i = first;
    if (sim_world.is.retention_s > 0 && sim_one_in(2))
        while (sim_world.deals[i].status < 300 && (i + 1) % sim_world.n_deals != first)
            i = (i + 1) % sim_world.n_deals;
    ask_once(&sim_world.deals[i]);
}

static void *client(void *arg)
{
    const struct sim_settings *is = &sim_world.is;
    char user[16], other[16];
    uint32_t number = (uint32_t)(uintptr_t)arg;
    name(user, sizeof user, "u", number % is->accounts);
    for (uint32_t i = 0; i < is->deals && sim_world.n_deals + 1 < SIM_DEALS_MAX; i++) {
        uint32_t what = is->hot && !sim_one_in(8) ? 0 : sim_below(10);
        if (is->think_ms > 0)
            sim_sleep_us(sim_below(is->think_ms * 1000));
        if (what < 4) {
            buy(user);
        } else if (what < 5) {
            see_through(new_deal(OP_CHANGE_BALANCE, user, "", (int64_t)sim_below(120) - 40));
        } else if (what < 7) {
            name(other, sizeof other, "u",
                 (number + 1 + sim_below(is->accounts - 1)) % is->accounts);
            if (strcmp(user, other) != 0)
                see_through(new_deal(OP_TRANSFER, user, other, 1 + sim_below(60)));
        } else if (what < 8) {
            count_stock();
        } else if (what < 9) {
            refund();
        } else if (sim_world.n_deals > 0) {
            ask_again();
        }
    }
    sim_world.clients_left--;
    sim_wake(&sim_world.clients_left, INT32_MAX);
    return NULL;
}

void sim_clients_start(void)
{
    sim_world.clients_left = sim_world.is.clients;
    for (uint32_t i = 0; i < sim_world.is.clients; i++)
        sim_spawn(SIM_WORLD, "client", client, (void *)(uintptr_t)i);
}
