#include "tree_sums.h"

#include <stdbool.h>
#include <string.h>

static json_int_t figure(const json_t *run, const char *name)
{
    return json_integer_value(json_object_get(run, name));
}

int tree_loses(const json_t *run)
{
    return figure(run, "final") != figure(run, "expected");
}

static const char *text_at(const json_t *array, size_t i)
{
    return json_string_value(json_array_get(array, i));
}

/* The index of the actor's last write; of a run's events. */
static size_t write_of(const json_t *events, const char *who)
{
    size_t found = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_at(event, 1), who) == 0 && strcmp(text_at(event, 2), "committed") == 0)
            found = i;
    }
    return found;
}

/* The ledger's first row that starts from a version from which another row has started: with it, an
 * update is lost. */
static const json_t *fork_of(const json_t *run)
{
    const json_t *rows = json_object_get(run, "rows");
    for (size_t i = 1; i < json_array_size(rows); i++)
        for (size_t k = 0; k < i; k++)
            if (json_equal(json_array_get(json_array_get(rows, i), 3),
                           json_array_get(json_array_get(rows, k), 3)))
                return json_array_get(rows, i);
    return NULL;
}

/* Moves made when the fork's second row was written; 0: the ledger has no fork. */
static size_t lost_at(const json_t *run)
{
    const json_t *fork = fork_of(run), *ends = json_object_get(run, "ends");
    if (fork == NULL)
        return 0;
    const size_t event = write_of(json_object_get(run, "events"), text_at(fork, 0));
    size_t move = 0;
    while (move < json_array_size(ends) &&
           (size_t)json_integer_value(json_array_get(ends, move)) <= event)
        move++;
    return move + 1;
}

/* Without the end of a lease. */
static json_int_t moves_until(const json_t *run, size_t n)
{
    const char *moves = json_string_value(json_object_get(run, "moves"));
    json_int_t counted = 0;
    for (size_t i = 0; i < n; i++)
        counted += moves[i] != 'L';
    return counted;
}

json_t *tree_sums(json_t *runs)
{
    json_int_t losing = 0, fewest = 0;
    json_t *run;
    size_t i;
    json_array_foreach(runs, i, run)
    {
        if (!tree_loses(run))
            continue;
        const size_t at = lost_at(run);
        const json_int_t n = moves_until(run, at);
        losing++;
        json_object_set_new(run, "lost_at", json_integer((json_int_t)at));
        if (fewest == 0 || n < fewest)
            fewest = n;
    }
    return json_pack("{s:I, s:I, s:o, s:o}", "schedules", (json_int_t)json_array_size(runs),
                     "losing", losing, "fewest", losing > 0 ? json_integer(fewest) : json_null(),
                     "runs", runs);
}
