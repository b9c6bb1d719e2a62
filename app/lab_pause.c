/* Pauses: who is to be held where, and who is. */
#include "lab_private.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char *const action_names[] = {
    [LAB_HOLD] = "hold", [LAB_KILL] = "kill", [LAB_NOTE] = "note"};

struct pause {
    int id; /* 0: free place */
    char point[LAB_POINT_MAX + 1], match[DB_KEY_MAX + 1];
    enum lab_action action;
    int64_t count;  /* may still be held */
    int64_t passed; /* everybody who matched */
    bool removed;   /* those held are to go; the last one frees the place */
    int n_held;
    char held[LAB_HELD_MAX][LAB_KEY_MAX + 1];
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t removed;
    int last_id;
    struct pause list[LAB_PAUSES_MAX];
} pauses = {.mutex = PTHREAD_MUTEX_INITIALIZER, .removed = PTHREAD_COND_INITIALIZER};

static bool matches(const struct pause *pause, const struct lab_passage *passage)
{
    if (pause->id == 0 || pause->removed || strcmp(pause->point, passage->point) != 0)
        return false;
    return pause->match[0] == '\0' || strcmp(pause->match, passage->key) == 0 ||
           strcmp(pause->match, passage->request_id) == 0 ||
           strcmp(pause->match, passage->user) == 0 || strcmp(pause->match, passage->lock) == 0;
}

/* With the mutex, which is let go while waiting. */
static void hold(struct pause *pause, const struct lab_passage *passage)
{
    pause->count--;
    if (pause->n_held < LAB_HELD_MAX)
        snprintf(pause->held[pause->n_held], sizeof pause->held[0], "%.*s", LAB_KEY_MAX,
                 passage->key[0] != '\0' ? passage->key : passage->lock);
    pause->n_held++;
    while (!pause->removed)
        pthread_cond_wait(&pauses.removed, &pauses.mutex);
    if (--pause->n_held == 0)
        pause->id = 0;
}

void lab_pause_pass(const struct lab_passage *passage)
{
    pthread_mutex_lock(&pauses.mutex);
    for (int i = 0; i < LAB_PAUSES_MAX; i++) {
        struct pause *pause = &pauses.list[i];
        if (!matches(pause, passage))
            continue;
        pause->passed++;
        if (pause->action == LAB_KILL)
            raise(SIGKILL);
        if (pause->action == LAB_HOLD && pause->count > 0)
            hold(pause, passage);
    }
    pthread_mutex_unlock(&pauses.mutex);
}

int lab_pause_add(const char *point, const char *match, enum lab_action action, int64_t count)
{
    int id = 0;
    pthread_mutex_lock(&pauses.mutex);
    for (int i = 0; i < LAB_PAUSES_MAX && id == 0; i++) {
        struct pause *pause = &pauses.list[i];
        if (pause->id != 0)
            continue;
        id = ++pauses.last_id;
        *pause = (struct pause){.id = id, .action = action, .count = count};
        snprintf(pause->point, sizeof pause->point, "%s", point);
        snprintf(pause->match, sizeof pause->match, "%s", match);
    }
    pthread_mutex_unlock(&pauses.mutex);
    return id;
}

bool lab_pause_remove(int id)
{
    bool found = id == 0;
    pthread_mutex_lock(&pauses.mutex);
    for (int i = 0; i < LAB_PAUSES_MAX; i++) {
        struct pause *pause = &pauses.list[i];
        if (pause->id == 0 || pause->removed || (id != 0 && pause->id != id))
            continue;
        found = true;
        pause->removed = true;
        if (pause->n_held == 0)
            pause->id = 0;
    }
    pthread_cond_broadcast(&pauses.removed);
    pthread_mutex_unlock(&pauses.mutex);
    return found;
}

static json_t *pause_json(const struct pause *pause)
{
    json_t *held = json_array();
    for (int i = 0; i < pause->n_held && i < LAB_HELD_MAX; i++)
        json_array_append_new(held, json_string(pause->held[i]));
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:i, s:o}", "id", pause->id, "point", pause->point,
                     "match", pause->match, "action", action_names[pause->action], "passed",
                     (json_int_t)pause->passed, "n_held", pause->n_held, "held", held);
}

json_t *lab_pause_list(void)
{
    json_t *list = json_array();
    pthread_mutex_lock(&pauses.mutex);
    for (int i = 0; i < LAB_PAUSES_MAX; i++)
        if (pauses.list[i].id != 0 && !pauses.list[i].removed)
            json_array_append_new(list, pause_json(&pauses.list[i]));
    pthread_mutex_unlock(&pauses.mutex);
    return list;
}
