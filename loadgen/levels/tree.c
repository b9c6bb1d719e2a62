#include "tree.h"
#include "json_text.h"
#include "run_record.h"
#include "steady.h"
#include "tree_sums.h"

#include <stdio.h>
#include <string.h>

enum {
    SCHEDULES_MAX = 5000,
    FIRST_LEASE_MS = 150, /* of A, where its end is a move */
    LEASES = 7            /* each twice as long as the one before it */
};

/* The moves so far: what could be moved at each depth, and which of these is. */
struct path {
    struct {
        char movable[STAGE_ACTORS_MAX + 2];
        int chosen;
    } at[RUN_MOVES_MAX];
    int n;
};

/* EARLY: A's lease ended before its move. */
enum ran { RAN, RAN_FAILED, RAN_EARLY };

static bool has_lease_end(const char *begins, const struct path *path)
{
    if (strchr(begins, 'L') != NULL)
        return true;
    for (int i = 0; i < path->n; i++)
        if (path->at[i].movable[path->at[i].chosen] == 'L')
            return true;
    return false;
}

/* What can be moved: with the level's first moves, only the next of these. */
static void movable_of(const struct stage *stage, int n, char ret[STAGE_ACTORS_MAX + 2])
{
    const char *begins = json_text_of(stage->level, "begins");
    stage_movable(stage, ret);
    if (n < (int)strlen(begins)) {
        const bool can = strchr(ret, begins[n]) != NULL;
        ret[0] = can ? begins[n] : '\0';
        ret[1] = '\0';
    }
}

/* The path to its end: beyond what it has, the first that can be moved. */
static enum ran follow(struct stage *stage, struct path *path, struct run_moves *moves)
{
    const int known = path->n;
    for (moves->n = 0;; moves->n++) {
        char movable[STAGE_ACTORS_MAX + 2];
        movable_of(stage, moves->n, movable);
        if (moves->n < known && strcmp(path->at[moves->n].movable, movable) != 0)
            return RAN_EARLY;
        if (movable[0] == '\0')
            break;
        if (moves->n == RUN_MOVES_MAX) {
            snprintf(stage->message, sizeof stage->message, "%s: more than %d moves", stage->id,
                     RUN_MOVES_MAX);
            return RAN_FAILED;
        }
        if (moves->n == path->n) {
            strcpy(path->at[path->n].movable, movable);
            path->at[path->n++].chosen = 0;
        }
        const char who = path->at[moves->n].movable[path->at[moves->n].chosen];
        moves->who[moves->n] = who;
        if (stage_move(stage, who) != 0)
            return RAN_FAILED;
        moves->ended_us[moves->n] = steady_us();
        if (who != 'L')
            continue;
        if (moves->n == 0 || stage->held_us < moves->ended_us[moves->n - 1])
            return RAN_EARLY; /* A's key was not seen in this move */
        moves->lease_us = stage->held_us;
    }
    moves->who[moves->n] = '\0';
    return RAN;
}

static json_t *run_once(struct stage *stage, struct path *path, int64_t lease_ms, enum ran *ret)
{
    struct run_moves moves = {.n = 0};
    char message[STAGE_MESSAGE_MAX];
    *ret = stage_begin(stage, lease_ms) == 0 ? follow(stage, path, &moves) : RAN_FAILED;
    snprintf(message, sizeof message, "%s", stage->message);
    if (stage_end(stage) != 0 && *ret == RAN)
        *ret = RAN_FAILED;
    else if (*ret == RAN_FAILED)
        snprintf(stage->message, sizeof stage->message, "%s", message);
    json_t *record = *ret == RAN ? run_record(stage, &moves) : NULL;
    if (*ret == RAN && record == NULL)
        *ret = RAN_FAILED;
    return record;
}

/* A lease that ended before its move was too short for this machine: again, with a longer one. */
static json_t *run(struct stage *stage, struct path *path)
{
    int64_t lease_ms =
        has_lease_end(json_text_of(stage->level, "begins"), path) ? FIRST_LEASE_MS : 0;
    const int known = path->n;
    for (int i = 0; i < LEASES; i++, lease_ms *= 2) {
        enum ran ran;
        path->n = known;
        json_t *record = run_once(stage, path, lease_ms, &ran);
        if (ran != RAN_EARLY)
            return record;
        if (lease_ms == 0)
            break;
    }
    snprintf(stage->message, sizeof stage->message,
             "%s: the service did not behave the same way twice", stage->id);
    return NULL;
}

/* The next path in order. False: that was the last. */
static bool next(struct path *path)
{
    while (path->n > 0) {
        const int last = path->n - 1;
        if (path->at[last].movable[++path->at[last].chosen] != '\0')
            return true;
        path->n--;
    }
    return false;
}

json_t *tree_record(struct stage *stage, const atomic_bool *stop)
{
    static struct path path;
    json_t *runs = json_array();
    bool good = true;
    path.n = 0;
    do {
        json_t *record = NULL;
        if (json_array_size(runs) == SCHEDULES_MAX)
            snprintf(stage->message, sizeof stage->message, "%s: more than %d schedules", stage->id,
                     SCHEDULES_MAX);
        else if (atomic_load(stop))
            snprintf(stage->message, sizeof stage->message, "interrupted");
        else
            record = run(stage, &path);
        good = record != NULL;
        if (good)
            json_array_append_new(runs, record);
    } while (good && next(&path));
    if (good)
        return tree_sums(runs);
    json_decref(runs);
    return NULL;
}
