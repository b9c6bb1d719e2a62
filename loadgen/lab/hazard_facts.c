#include "hazard_facts.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* {who} {other} are names, {a} to {d} numbers or short texts. */
#define FACT_MAP(X)                                                                                                      \
    X(BALANCE_RIGHT, "balance-right",                                                                                    \
      "The balance is {a}, as the accepted requests leave it. It was {b}.",                                              \
      "余额为 {a}，与成功的请求相符；原来是 {b}。")                                                                      \
    X(NOT_DEDUCTED, "not-deducted",                                                                                      \
      "The balance is {a} and should be {b}: one withdrawal of {c} was not deducted.",                                   \
      "余额为 {a}，应为 {b}：有一笔 {c} 的扣款没有扣掉。")                                                               \
    X(TOO_LITTLE, "too-little",                                                                                          \
      "The balance is {a} and should be {b}: {c} too little was deducted.",                                              \
      "余额为 {a}，应为 {b}：少扣了 {c}。")                                                                              \
    X(TOO_MUCH, "too-much", "The balance is {a} and should be {b}: {c} too much was deducted.",                          \
      "余额为 {a}，应为 {b}：多扣了 {c}。")                                                                              \
    X(BALANCE_WRONG, "balance-wrong", "The balance is {a} and should be {b}.",                                           \
      "余额为 {a}，应为 {b}。")                                                                                          \
    X(SOLD_RIGHT, "sold-right", "Sold: {a} of {b}, as the orders say.",                                                  \
      "共 {b} 件，售出 {a} 件，与订单相符。")                                                                            \
    X(OVERSOLD, "oversold", "Sold: {a} of {b}. Oversold by {c}.",                                                        \
      "共 {b} 件，售出 {a} 件：超卖 {c} 件。")                                                                           \
    X(SOLD_WRONG, "sold-wrong", "Sold: {a} of {b}. It should be {c}.",                                                   \
      "共 {b} 件，售出 {a} 件，应为 {c} 件。")                                                                           \
    X(PAID_AND_CLOSED, "paid-and-closed",                                                                                \
      "{who}'s order was closed, its piece went back to the stock, and then it was paid.",                               \
      "{who} 的订单已关闭，那一件已退回库存，之后又付了款。")                                                            \
    X(TWICE, "twice", "Effects that happened a second time: {a}.", "重复生效 {a} 次。")                                  \
    X(OVERWRITTEN, "overwritten", "Lost updates in the ledger: {a}.",                                                    \
      "流水表中丢失更新：{a} 次。")                                                                                      \
    X(FORK, "fork",                                                                                                      \
      "{who} and {other} started from one version of the row, and from one value ({a}). {who} "                          \
      "wrote {b}, and {other} {c}.",                                                                                     \
      "{who} 和 {other} 从这一行的同一版本、同一个值（{a}）出发：{who} 写入 {b}，{other} 写入 " \
      "{c}。")                                                                                                           \
    X(RELEASED_EARLY, "released-early", "{who} released the lock before its commit.",                                    \
      "{who} 在提交之前就释放了锁。")                                                                                    \
    X(TWO_HOLDERS, "two-holders", "{other} went in while {who} was still inside.",                                       \
      "{who} 还在临界区内，{other} 就进来了。")                                                                          \
    X(FENCE_REFUSED, "fence-refused", "The store refused {who}'s late write: fence {a} < {b}.",                          \
      "存储拒绝了 {who} 迟到的写入：栅栏令牌 {a} < {b}。")                                                               \
    X(REFUSED, "refused", "{who} was refused ({a}), and its request changed nothing.",                                   \
      "{who} 被拒绝（{a}），它的请求没有改动任何数据。")                                                                 \
    X(TIMED_OUT, "timed-out", "{who} did not get the lock in its time ({a}).",                                           \
      "{who} 在限时内没有拿到锁（{a}）。")                                                                               \
    X(NO_ANSWER, "no-answer", "{who} got no answer.", "{who} 没有得到应答。")                                            \
    X(WOKEN, "woken", "The waiters woken by each release: {a}.",                                                         \
      "每次释放锁叫醒的等待者：{a} 个。")                                                                                \
    X(OVERTAKEN, "overtaken", "Later waiters overtook the one that fared worst: {a}.",                                   \
      "被插队最多的等待者，被后来者超过 {a} 次。")                                                                       \
    X(LATE, "late", "{who}'s answer took {a}.", "{who} 等应答用了 {a}。")

enum fact {
#define FACT_ENUM(name, id, en, zh) name,
    FACT_MAP(FACT_ENUM)
#undef FACT_ENUM
        FACTS
};

static const struct {
    const char *id;
    hazard_text text;
} facts[FACTS] = {
#define FACT_ENTRY(name, its_id, en, zh) [name] = {its_id, {en, zh}},
    FACT_MAP(FACT_ENTRY)
#undef FACT_ENTRY
};

struct list {
    const struct lab_result *result;
    struct lab_fact *facts;
    int n;
};

/* -- words ------------------------------------------------------------------------------------- */

struct value {
    const char *name; /* "{a}" */
    const char *text;
};

static void fill(char out[LAB_FACT_MAX], const char *form, const struct value *values)
{
    size_t n = 0;
    while (*form != '\0' && n < LAB_FACT_MAX - 1) {
        const struct value *value = values;
        while (value->name != NULL && strncmp(form, value->name, strlen(value->name)) != 0)
            value++;
        if (value->name == NULL) {
            out[n++] = *form++;
            continue;
        }
        n += (size_t)snprintf(out + n, LAB_FACT_MAX - n, "%s", value->text);
        form += strlen(value->name);
    }
    out[n < LAB_FACT_MAX ? n : LAB_FACT_MAX - 1] = '\0';
}

/* The values may be NULL from the first that the words do not need. */
static void say(struct list *list, enum fact fact, const char *who, const char *other,
                const char *a, const char *b, const char *c)
{
    const struct value values[] = {
        {"{who}", who ? who : ""}, {"{other}", other ? other : ""},
        {"{a}", a ? a : ""},       {"{b}", b ? b : ""},
        {"{c}", c ? c : ""},       {NULL, NULL},
    };
    if (list->n == LAB_FACTS_MAX)
        return;
    struct lab_fact *said = &list->facts[list->n++];
    said->id = facts[fact].id;
    for (int language = 0; language < HAZARD_LANGUAGES; language++)
        fill(said->text[language], facts[fact].text[language], values);
}

static void say_figures(struct list *list, enum fact fact, int64_t a, int64_t b, int64_t c)
{
    char texts[3][TEXT_MAX];
    say(list, fact, NULL, NULL, text_count(texts[0], a), text_count(texts[1], b),
        text_count(texts[2], c));
}

/* -- events ------------------------------------------------------------------------------------ */

static bool is_at(const struct run_event *event, const char *actor, const char *point)
{
    return strcmp(event->actor, actor) == 0 && strcmp(event->point, point) == 0;
}

static bool is_answer(const struct run_event *event, const char *actor)
{
    return strcmp(event->actor, actor) == 0 &&
           (strncmp(event->point, "answer ", 7) == 0 || strcmp(event->point, "no answer") == 0);
}

/* Index of the actor's last event of this kind before `before`; -1: none. point NULL: an answer. */
static int last_of(const struct lab_result *result, const char *actor, const char *point,
                   int before)
{
    int i = before;
    while (--i >= 0)
        if (point != NULL ? is_at(&result->events[i], actor, point)
                          : is_answer(&result->events[i], actor))
            return i;
    return -1;
}

static bool has_status(const struct lab_result *result, int answer, const char *status)
{
    return answer >= 0 && strncmp(result->events[answer].point, "answer ", 7) == 0 &&
           strstr(result->events[answer].point, status) == result->events[answer].point + 7;
}

/* A commit that changed the value: a refusal is committed, too, for a retry. */
static bool is_change(const struct lab_result *result, int committed)
{
    const struct run_event *event = &result->events[committed];
    const int read = last_of(result, event->actor, "read", committed);
    return !event->has_value || read < 0 || result->events[read].value != event->value;
}

/* -- figures ----------------------------------------------------------------------------------- */

static bool is_accepted_withdrawal_of(const struct lab_result *result, int64_t amount)
{
    for (enum hazard_who who = A; who < HAZARD_ACTORS; who++)
        if (hazard_delta(result->hazard, who) == -amount &&
            has_status(result, last_of(result, who_name(who), NULL, result->n_events), "201"))
            return true;
    return false;
}

static void say_balance(struct list *list)
{
    const struct run_outcome *o = &list->result->outcome;
    const int64_t off = o->final - o->expected_final, most = off < 0 ? -off : off;
    if (off == 0)
        say_figures(list, BALANCE_RIGHT, o->final, o->initial, 0);
    else if (list->result->hazard->subject == TRANSFER)
        say_figures(list, BALANCE_WRONG, o->final, o->expected_final, 0);
    else if (off > 0 && o->lost_updates == 1 && is_accepted_withdrawal_of(list->result, off))
        say_figures(list, NOT_DEDUCTED, o->final, o->expected_final, most);
    else
        say_figures(list, off > 0 ? TOO_LITTLE : TOO_MUCH, o->final, o->expected_final, most);
}

static void say_sold(struct list *list)
{
    const struct lab_result *result = list->result;
    const struct run_outcome *o = &result->outcome;
    const int paid = last_of(result, "A", NULL, result->n_events),
              closed = last_of(result, "tasks", "A's order is closed", result->n_events);
    if (o->oversold > 0)
        say_figures(list, OVERSOLD, o->final, o->initial, o->oversold);
    else if (o->final != o->expected_final)
        say_figures(list, SOLD_WRONG, o->final, o->initial, o->expected_final);
    else
        say_figures(list, SOLD_RIGHT, o->final, o->initial, 0);
    if (closed >= 0 && paid > closed && has_status(result, paid, "201"))
        say(list, PAID_AND_CLOSED, "A", NULL, NULL, NULL, NULL);
}

/* "h12-A1" is A's; a task's has no client's key. */
static const char *writer_of(const struct ledger_row *row, char out[24])
{
    const char *name = strrchr(row->txn_id, '-');
    if (strncmp(row->txn_id, "task\t", 5) == 0 || name == NULL)
        snprintf(out, 24, "%.16s", row->instance);
    else if (name[1] == 'u')
        snprintf(out, 24, "%.16s", name + 1);
    else
        snprintf(out, 24, "%c", name[1]);
    return out;
}

static void say_fork(struct list *list)
{
    const struct ledger_row *rows = list->result->outcome.fork;
    char names[2][24], values[3][TEXT_MAX];
    const bool same =
        rows[0].version_before == rows[1].version_before && rows[0].before == rows[1].before;
    if (!list->result->outcome.has_fork || !same)
        return;
    say(list, FORK, writer_of(&rows[0], names[0]), writer_of(&rows[1], names[1]),
        text_count(values[0], rows[0].before), text_count(values[1], rows[0].after),
        text_count(values[2], rows[1].after));
}

/* -- the way there ----------------------------------------------------------------------------- */

int64_t lab_refusing_fence(const struct lab_result *result, const struct run_event *rejected)
{
    const char *before = "";
    int64_t newest = 0;
    for (const struct run_event *event = result->events; event < rejected; event++) {
        bool own = strcmp(event->actor, rejected->actor) == 0;
        if (own && strcmp(event->point, "lost") == 0 && strcmp(before, "checked") != 0)
            return 0; /* its own check said that the lease was over */
        if (own && event->fence != 0)
            before = event->point;
        if (!own && strcmp(event->point, "committed") == 0 && event->fence > newest)
            newest = event->fence;
    }
    return result->fence && rejected->fence != 0 && newest > rejected->fence ? newest : 0;
}

/* How many locks the actor holds before event i, as far as it knows. The thread of the leases
 * also releases for a request whose commit had no answer. */
static int holds(const struct lab_result *result, const char *actor, int i)
{
    int n = 0;
    for (int k = 0; k < i; k++) {
        const struct run_event *event = &result->events[k];
        const bool by_keeper =
            is_at(event, "watchdog", "lock.release") || is_at(event, "lease timer", "lock.release");
        if (is_at(event, actor, "lock.acquired"))
            n++;
        else if (n > 0 && (is_at(event, actor, "lock.release") || by_keeper))
            n--;
        else if (is_at(event, actor, "killed") || is_at(event, actor, "lost") ||
                 is_at(event, actor, "rejected"))
            n = 0;
    }
    return n;
}

static void say_early_release(struct list *list, const char *actor)
{
    const struct lab_result *result = list->result;
    for (int i = 0; i < result->n_events; i++) {
        if (!is_at(&result->events[i], actor, "committed") || !is_change(result, i))
            continue;
        const int acquired = last_of(result, actor, "lock.acquired", i),
                  sent = last_of(result, actor, "sends", i);
        if (acquired > sent && holds(result, actor, i) == 0) {
            say(list, RELEASED_EARLY, actor, NULL, NULL, NULL, NULL);
            return;
        }
    }
}

/* Of transfers, which have two locks, the events do not say which. */
static void say_two_holders(struct list *list, const char *one, const char *other)
{
    const struct lab_result *result = list->result;
    for (int i = 0; i < result->n_events && result->hazard->subject != TRANSFER; i++)
        if (is_at(&result->events[i], other, "lock.acquired") && holds(result, one, i) > 0 &&
            holds(result, other, i) == 0) { /* a re-entry goes in nowhere */
            say(list, TWO_HOLDERS, one, other, NULL, NULL, NULL);
            return;
        }
}

static void say_fence(struct list *list, const char *actor)
{
    const struct lab_result *result = list->result;
    for (int i = 0; i < result->n_events; i++) {
        const struct run_event *event = &result->events[i];
        char own[TEXT_MAX], newer[TEXT_MAX];
        const int64_t fence =
            is_at(event, actor, "rejected") ? lab_refusing_fence(result, event) : 0;
        if (fence == 0)
            continue;
        say(list, FENCE_REFUSED, actor, NULL, text_count(own, event->fence),
            text_count(newer, fence), NULL);
        return;
    }
}

/* How its last request ended, if it was not served. */
static void say_answer(struct list *list, const char *actor)
{
    const struct lab_result *result = list->result;
    const int answer = last_of(result, actor, NULL, result->n_events),
              sent = last_of(result, actor, "sends", answer),
              committed = last_of(result, actor, "committed", answer);
    const bool changed = committed > sent && is_change(result, committed);
    if (answer < 0 || has_status(result, answer, "201"))
        return;
    const char *status = result->events[answer].point + 7;
    if (strcmp(result->events[answer].point, "no answer") == 0)
        say(list, NO_ANSWER, actor, NULL, NULL, NULL, NULL);
    else if (strstr(status, "lock-timeout") != NULL)
        say(list, TIMED_OUT, actor, NULL, status, NULL, NULL);
    else if (last_of(result, actor, "rejected", answer) > sent &&
             (!changed || !result->events[committed].has_value))
        say(list, REFUSED, actor, NULL, status, NULL, NULL);
}

static void say_times(struct list *list)
{
    const struct lab_result *result = list->result;
    const struct hazard *hazard = result->hazard;
    char time[TEXT_MAX];
    if (hazard->slow_wakes > 0)
        say_figures(list, WOKEN, result->outcome.wakes, 0, 0);
    if (hazard->queue > 0)
        say_figures(list, OVERTAKEN, result->outcome.overtakings, 0, 0);
    const bool by_b = last_of(result, "B", NULL, result->n_events) >= 0;
    if (hazard->slow_ms > 0)
        say(list, LATE, by_b ? "B" : "A", NULL,
            text_time_us(time, result->outcome.measure_ms * 1000), NULL, NULL);
}

int lab_facts(const struct lab_result *result, struct lab_fact ret[LAB_FACTS_MAX])
{
    struct list list = {.result = result, .facts = ret};
    if (result->hazard->subject == ITEM)
        say_sold(&list);
    else
        say_balance(&list);
    if (result->outcome.duplicates > 0)
        say_figures(&list, TWICE, result->outcome.duplicates, 0, 0);
    if (result->outcome.lost_updates > 0)
        say_figures(&list, OVERWRITTEN, result->outcome.lost_updates, 0, 0);
    say_fork(&list);
    for (enum hazard_who who = A; who < HAZARD_ACTORS; who++)
        say_early_release(&list, who_name(who));
    for (enum hazard_who one = A; one < HAZARD_ACTORS; one++)
        for (enum hazard_who other = A; other < HAZARD_ACTORS; other++)
            if (one != other)
                say_two_holders(&list, who_name(one), who_name(other));
    for (enum hazard_who who = A; who < HAZARD_ACTORS; who++)
        say_fence(&list, who_name(who));
    for (enum hazard_who who = A; who < HAZARD_ACTORS; who++)
        say_answer(&list, who_name(who));
    say_times(&list);
    return list.n;
}
