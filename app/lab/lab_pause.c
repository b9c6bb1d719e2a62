/* Pauses: which requests are held at which point. */
#include "lab_private.h"
#include "section.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char *const action_names[] = {
    [LAB_HOLD] = "hold", [LAB_KILL] = "kill", [LAB_NOTE] = "note"};

struct pause {
    int id; /* 0: unused */
    char point[LAB_POINT_MAX + 1], match[OP_KEY_MAX + 1];
    enum lab_action action;
    int64_t after;        /* requests that pass before it acts */
    int64_t count;        /* requests that it may still hold */
    int64_t passed;       /* requests that matched */
    int64_t round;        /* a new number lets the held requests go */
    int64_t value, fence; /* of the last request that passed */
    bool has_value;
    int n_held;
    char held[LAB_HELD_MAX][LAB_KEY_MAX + 1];
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t let_go;
    int last_id;
    int64_t rounds; /* so far; each number is used once */
    struct pause list[LAB_PAUSES_MAX];
} pauses = {.mutex = PTHREAD_MUTEX_INITIALIZER, .let_go = PTHREAD_COND_INITIALIZER};

static bool matches(const struct pause *pause, const struct lab_passage *passage)
{
    if (pause->id == 0 || strcmp(pause->point, passage->point) != 0)
        return false;
    return pause->match[0] == '\0' || strcmp(pause->match, passage->key) == 0 ||
           strcmp(pause->match, passage->request_id) == 0 ||
           strcmp(pause->match, passage->user) == 0 || strcmp(pause->match, passage->lock) == 0 ||
           strcmp(pause->match, passage->resource) == 0;
}

/* Called with the mutex, which it releases while it waits. */
static void hold(struct pause *pause, const struct lab_passage *passage)
{
    const int64_t round = pause->round;
    pause->count--;
    if (pause->n_held < LAB_HELD_MAX)
        snprintf(pause->held[pause->n_held], sizeof pause->held[0], "%.*s", LAB_KEY_MAX,
                 passage->key[0] != '\0' ? passage->key : passage->lock);
    pause->n_held++;
    if (passage->section)
        section_close_snapshot(passage->section);
    while (pause->round == round)
        pthread_cond_wait(&pauses.let_go, &pauses.mutex);
}

void lab_pause_pass(const struct lab_passage *passage)
{
    pthread_mutex_lock(&pauses.mutex);
    for (int i = 0; i < LAB_PAUSES_MAX; i++) {
        struct pause *pause = &pauses.list[i];
        if (!matches(pause, passage))
            continue;
        pause->passed++;
        if (passage->has_value) {
            pause->value = passage->value;
            pause->has_value = true;
        }
        pause->fence = passage->fence;
        if (pause->passed <= pause->after)
            continue;
        if (pause->action == LAB_KILL)
            raise(SIGKILL);
        if (pause->action == LAB_HOLD && pause->count > 0)
            hold(pause, passage);
    }
    pthread_mutex_unlock(&pauses.mutex);
}

int lab_pause_add(const char *point, const char *match, enum lab_action action, int64_t after,
                  int64_t count)
{
    int id = 0;
    pthread_mutex_lock(&pauses.mutex);
    for (int i = 0; i < LAB_PAUSES_MAX && id == 0; i++) {
        struct pause *pause = &pauses.list[i];
        if (pause->id != 0)
            continue;
        id = ++pauses.last_id;
        *pause = (struct pause){
            .id = id, .action = action, .after = after, .count = count, .round = ++pauses.rounds};
        snprintf(pause->point, sizeof pause->point, "%s", point);
        snprintf(pause->match, sizeof pause->match, "%s", match);
    }
    pthread_mutex_unlock(&pauses.mutex);
    return id;
}

bool lab_pause_let_go(int id, bool forget)
{
    bool found = id == 0;
    pthread_mutex_lock(&pauses.mutex);
    for (int i = 0; i < LAB_PAUSES_MAX; i++) {
        struct pause *pause = &pauses.list[i];
        if (pause->id == 0 || (id != 0 && pause->id != id))
            continue;
        found = true;
        pause->round = ++pauses.rounds;
        pause->n_held = 0;
        if (forget)
            pause->id = 0;
    }
    pthread_cond_broadcast(&pauses.let_go);
    pthread_mutex_unlock(&pauses.mutex);
    return found;
}

static json_t *pause_json(const struct pause *pause)
{
    json_t *held = json_array();
    for (int i = 0; i < pause->n_held && i < LAB_HELD_MAX; i++)
        json_array_append_new(held, json_string(pause->held[i]));
    json_t *value = pause->has_value ? json_integer(pause->value) : json_null();
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:i, s:o, s:o, s:I}", "id", pause->id, "point",
                     pause->point, "match", pause->match, "action", action_names[pause->action],
                     "passed", (json_int_t)pause->passed, "n_held", pause->n_held, "held", held,
                     "value", value, "fence", (json_int_t)pause->fence);
}

json_t *lab_pause_list(void)
{
    json_t *list = json_array();
    pthread_mutex_lock(&pauses.mutex);
    for (int i = 0; i < LAB_PAUSES_MAX; i++)
        if (pauses.list[i].id != 0)
            json_array_append_new(list, pause_json(&pauses.list[i]));
    pthread_mutex_unlock(&pauses.mutex);
    return list;
}
