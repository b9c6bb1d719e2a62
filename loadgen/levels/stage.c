#include "stage.h"
#include "answer_problem.h"
#include "json_text.h"
#include "steady.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALL_MS = 20000,
    ANSWER_MS = 600000, /* longer than any run */
    LONG_MS = 600000,   /* a lease, or a wait, that outlasts any run */
    SETTLE_MS = 60000,
    HELD_MAX = 1000000 /* times that a pause holds */
};

/* -- the service -------------------------------------------------------------------------------
 */

int stage_call(struct stage *stage, const char *method, const char *path, const char *body,
               json_t **ret)
{
    char *answer = NULL;
    int result = -1;
    const int status = load_fetch(&stage->target, method, path, "", body, CALL_MS, &answer);
    if (status < 200 || status > 299)
        snprintf(stage->message, sizeof stage->message, "%s %s: %d %.200s", method, path, status,
                 answer != NULL ? answer : "");
    else if (ret != NULL && (*ret = json_loads(answer, 0, NULL)) == NULL)
        snprintf(stage->message, sizeof stage->message, "%s %s: not JSON", method, path);
    else
        result = 0;
    free(answer);
    return result;
}

static int add_pause(struct stage *stage, const char *point, const char *key, const char *action,
                     int *ret)
{
    char body[2 * STAGE_TEXT_MAX + 100];
    json_t *answer;
    snprintf(body, sizeof body,
             "{\"point\":\"%s\",\"match\":\"%s\",\"action\":\"%s\",\"count\":%d}", point, key,
             action, HELD_MAX);
    if (stage_call(stage, "POST", "/v1/lab/pauses", body, &answer) != 0)
        return -1;
    *ret = (int)json_integer_value(json_object_get(answer, "id"));
    json_decref(answer);
    return 0;
}

static int set_terms(struct stage *stage, const char *key, int64_t lease_ms)
{
    char body[STAGE_TEXT_MAX + 100];
    snprintf(body, sizeof body, "{\"match\":\"%s\",\"lease_ms\":%lld,\"wait_ms\":%d}", key,
             (long long)lease_ms, LONG_MS);
    return stage_call(stage, "POST", "/v1/lab/terms", body, NULL);
}

static int put_row(struct stage *stage)
{
    char path[2 * STAGE_TEXT_MAX], body[2 * STAGE_TEXT_MAX];
    snprintf(path, sizeof path, "/v1/%s/%s/reset", stage->is_item ? "items" : "accounts",
             stage->row);
    snprintf(body, sizeof body, "{\"%s\":%lld,\"guard\":\"%s\",\"fence\":%s}",
             stage->is_item ? "stock" : "balance", (long long)stage->start,
             json_text_of(stage->level, "guard"),
             json_is_true(json_object_get(stage->level, "fence")) ? "true" : "false");
    return stage_call(stage, "POST", path, body, NULL);
}

/* -- an actor ----------------------------------------------------------------------------------
 */

static void *ask(void *arg)
{
    struct stage_actor *actor = arg;
    struct stage *stage = actor->stage;
    char path[2 * STAGE_TEXT_MAX], body[100], headers[STAGE_TEXT_MAX + 40], *answer = NULL;
    snprintf(path, sizeof path,
             stage->is_item ? "/v1/items/%s/orders" : "/v1/accounts/%s/transactions", stage->row);
    if (stage->is_item)
        snprintf(body, sizeof body, "{\"user_id\":\"%c\",\"quantity\":%lld}", actor->name,
                 (long long)-actor->amount);
    else
        snprintf(body, sizeof body, "{\"amount\":%lld}", (long long)actor->amount);
    snprintf(headers, sizeof headers, "Idempotency-Key: %s\r\n", actor->key);
    actor->status = load_fetch(&stage->target, "POST", path, headers, body, ANSWER_MS, &answer);
    actor->problem[0] = '\0';
    if (actor->status > 0)
        answer_problem_name(answer, actor->problem, sizeof actor->problem);
    actor->answered_us = steady_us();
    free(answer);
    atomic_store(&actor->answered, true);
    return NULL;
}

static int send(struct stage_actor *actor)
{
    actor->sent_us = steady_us();
    actor->sent = pthread_create(&actor->thread, NULL, ask, actor) == 0;
    if (!actor->sent)
        snprintf(actor->stage->message, STAGE_MESSAGE_MAX, "no thread for %c", actor->name);
    return actor->sent ? 0 : -1;
}

static int let_go(struct stage_actor *actor)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/lab/pauses/%d", actor->at);
    actor->at = 0;
    return stage_call(actor->stage, "POST", path, "{}", NULL);
}

static int arm(struct stage_actor *actor, int64_t lease_ms)
{
    const size_t i = (size_t)(actor->name - 'A');
    const json_t *points = json_array_get(json_object_get(actor->stage->level, "points"), i);
    snprintf(actor->key, sizeof actor->key, "%s-%c", actor->stage->row, actor->name);
    if (set_terms(actor->stage, actor->key, lease_ms) != 0 ||
        add_pause(actor->stage, "lock.wait", actor->key, "note", &actor->waits) != 0 ||
        add_pause(actor->stage, "acquired", actor->key, "note", &actor->acquired) != 0)
        return -1;
    for (size_t k = 0; k < json_array_size(points); k++)
        if (add_pause(actor->stage, json_string_value(json_array_get(points, k)), actor->key,
                      "hold", &actor->pauses[k]) != 0)
            return -1;
    return 0;
}

/* -- looking -----------------------------------------------------------------------------------
 */

static const json_t *pause_of(const json_t *pauses, int id)
{
    for (size_t i = 0; i < json_array_size(pauses); i++)
        if (json_integer_value(json_object_get(json_array_get(pauses, i), "id")) == id)
            return json_array_get(pauses, i);
    return NULL;
}

static json_int_t count(const json_t *pauses, int id, const char *what)
{
    return json_integer_value(json_object_get(pause_of(pauses, id), what));
}

/* answered: before the pauses were asked for. */
static void look_at(struct stage_actor *actor, const json_t *pauses, bool answered)
{
    if (actor->state != STAGE_MOVING && actor->state != STAGE_WAITING)
        return;
    for (int i = 0; i < STAGE_POINTS_MAX; i++)
        if (actor->pauses[i] != 0 && count(pauses, actor->pauses[i], "n_held") > 0) {
            actor->at = actor->pauses[i];
            actor->state = STAGE_HELD;
            return;
        }
    const bool waits =
        count(pauses, actor->waits, "passed") > 0 && count(pauses, actor->acquired, "passed") == 0;
    actor->state = answered ? STAGE_DONE : waits ? STAGE_WAITING : STAGE_MOVING;
}

static int look(struct stage *stage)
{
    bool answered[STAGE_ACTORS_MAX];
    json_t *answer;
    for (int i = 0; i < stage->n; i++)
        answered[i] = atomic_load(&stage->actors[i].answered);
    if (stage_call(stage, "GET", "/v1/lab/pauses", NULL, &answer) != 0)
        return -1;
    for (int i = 0; i < stage->n; i++)
        look_at(&stage->actors[i], json_object_get(answer, "pauses"), answered[i]);
    json_decref(answer);
    return 0;
}

/* The lock as its server shows it. */
static int look_at_lock(struct stage *stage)
{
    char path[2 * STAGE_TEXT_MAX];
    json_t *answer;
    const int64_t asked_us = steady_us();
    snprintf(path, sizeof path, "/v1/lab/locks/%s:%s", stage->is_item ? "item" : "account",
             stage->row);
    if (stage_call(stage, "GET", path, NULL, &answer) != 0)
        return -1;
    const bool held = json_integer_value(json_object_get(answer, "holders")) > 0;
    snprintf(stage->lock, sizeof stage->lock, "%s", json_text_of(answer, "key"));
    snprintf(stage->token, sizeof stage->token, "%s", held ? json_text_of(answer, "token") : "");
    json_decref(answer);
    if (stage->token[0] != '\0' && strcmp(stage->token, stage->actors[0].token) == 0)
        stage->held_us = asked_us;
    return 0;
}

/* The actor whose token the lock shows; NULL: nobody's that is known. */
static struct stage_actor *holder(struct stage *stage)
{
    for (int i = 0; i < stage->n; i++)
        if (stage->token[0] != '\0' && strcmp(stage->actors[i].token, stage->token) == 0)
            return &stage->actors[i];
    return NULL;
}

static bool any(const struct stage *stage, enum stage_state state)
{
    bool found = false;
    for (int i = 0; i < stage->n; i++)
        found |= stage->actors[i].state == state;
    return found;
}

/* Who came to be held in this move has the lock that was nobody's before. */
static void claim(struct stage *stage, const bool *was_held)
{
    for (int i = 0; i < stage->n; i++)
        if (stage->token[0] != '\0' && holder(stage) == NULL && !was_held[i] &&
            stage->actors[i].state == STAGE_HELD)
            snprintf(stage->actors[i].token, STAGE_TEXT_MAX, "%s", stage->token);
}

/* Waits until no request moves: each is held at a point, or waits for the lock of a held one. */
static int settle(struct stage *stage, const bool *was_held)
{
    const int64_t until_us = steady_us() + (int64_t)SETTLE_MS * 1000;
    while (steady_us() < until_us) {
        if (look(stage) != 0)
            return -1;
        if (!any(stage, STAGE_MOVING)) {
            if (look_at_lock(stage) != 0)
                return -1;
            claim(stage, was_held);
            const struct stage_actor *has = holder(stage);
            if (!any(stage, STAGE_WAITING) || (has != NULL && has->state == STAGE_HELD))
                return 0;
        }
        steady_sleep_ms(1);
    }
    snprintf(stage->message, sizeof stage->message, "%s: a request came nowhere", stage->id);
    return -1;
}

/* -- moves -------------------------------------------------------------------------------------
 */

void stage_movable(const struct stage *stage, char ret[STAGE_ACTORS_MAX + 2])
{
    const struct stage_actor *a = &stage->actors[0];
    const bool lease = json_integer_value(json_object_get(stage->level, "lease_ms")) > 0;
    int n = 0;
    for (int i = 0; i < stage->n; i++)
        if (stage->actors[i].state == STAGE_HELD ||
            (stage->actors[i].state == STAGE_IDLE && !any(stage, STAGE_WAITING)))
            ret[n++] = stage->actors[i].name;
    if (lease && a->state == STAGE_HELD && a->token[0] != '\0' &&
        strcmp(a->token, stage->token) == 0)
        ret[n++] = 'L';
    ret[n] = '\0';
}

static int await_lease(struct stage *stage)
{
    const int64_t until_us = steady_us() + (int64_t)SETTLE_MS * 1000;
    while (steady_us() < until_us) {
        if (look_at_lock(stage) != 0)
            return -1;
        if (strcmp(stage->token, stage->actors[0].token) != 0)
            return 0;
        steady_sleep_ms(1);
    }
    snprintf(stage->message, sizeof stage->message, "%s: A's lease did not end", stage->id);
    return -1;
}

int stage_move(struct stage *stage, char who)
{
    bool was_held[STAGE_ACTORS_MAX];
    int failed;
    for (int i = 0; i < stage->n; i++)
        was_held[i] = stage->actors[i].state == STAGE_HELD && stage->actors[i].name != who;
    if (who == 'L')
        failed = await_lease(stage);
    else {
        struct stage_actor *actor = &stage->actors[who - 'A'];
        failed = actor->state == STAGE_IDLE ? send(actor) : let_go(actor);
        actor->state = STAGE_MOVING;
    }
    return failed == 0 ? settle(stage, was_held) : -1;
}

/* -- a run -------------------------------------------------------------------------------------
 */

int stage_open(struct stage *stage, const struct load_target *target, const json_t *level,
               const json_t *subject)
{
    *stage = (struct stage){.target = *target,
                            .level = level,
                            .start = json_integer_value(json_object_get(subject, "start")),
                            .is_item = strcmp(json_text_of(level, "subject"), "item") == 0,
                            .n = (int)json_array_size(json_object_get(level, "points"))};
    snprintf(stage->id, sizeof stage->id, "level-%s", json_text_of(level, "id"));
    if (stage->n < 2 || stage->n > STAGE_ACTORS_MAX) {
        snprintf(stage->message, sizeof stage->message, "%s: not 2 or 3 actors", stage->id);
        return -1;
    }
    for (int i = 0; i < stage->n; i++) {
        const char name[] = {(char)('A' + i), '\0'};
        const json_t *amounts = json_object_get(subject, "amounts");
        stage->actors[i] = (struct stage_actor){
            .stage = stage,
            .name = name[0],
            .amount = json_integer_value(json_object_get(amounts, name)),
        };
    }
    return 0;
}

int stage_begin(struct stage *stage, int64_t lease_ms)
{
    snprintf(stage->row, sizeof stage->row, "%s-%d", stage->id, ++stage->runs);
    stage->lock[0] = stage->token[0] = '\0';
    if (put_row(stage) != 0 || stage_call(stage, "DELETE", "/v1/lab/trace", NULL, NULL) != 0)
        return -1;
    for (int i = 0; i < stage->n; i++) {
        struct stage_actor *actor = &stage->actors[i];
        actor->state = STAGE_IDLE;
        actor->at = actor->status = 0;
        actor->token[0] = '\0';
        atomic_store(&actor->answered, false);
        if (arm(actor, i == 0 && lease_ms != 0 ? lease_ms : LONG_MS) != 0)
            return -1;
    }
    return 0;
}

int stage_end(struct stage *stage)
{
    const int failed = stage_call(stage, "DELETE", "/v1/lab/pauses", NULL, NULL);
    for (int i = 0; i < stage->n; i++)
        if (stage->actors[i].sent) {
            pthread_join(stage->actors[i].thread, NULL); /* ANSWER_MS bounds it */
            stage->actors[i].sent = false;
        }
    return failed;
}
