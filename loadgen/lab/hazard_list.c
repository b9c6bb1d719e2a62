/* All hazards, in the order in which a course would take them. */
#include "hazard.h"
#include "hazard_rows.h"

#include <string.h>

const struct hazard *const hazard_list[] = {
#define LIST_ENTRY(name) &hazard_##name,
    HAZARD_MAP(LIST_ENTRY)
#undef LIST_ENTRY
        NULL,
};

const struct hazard *hazard_find(const char *id)
{
    for (size_t i = 0; hazard_list[i] != NULL; i++)
        if (strcmp(hazard_list[i]->id, id) == 0)
            return hazard_list[i];
    return NULL;
}

const char *hazard_outcome_text(enum hazard_outcome outcome)
{
    static const char *const texts[] = {
#define OUTCOME_TEXT(name, text) [HAZARD_##name] = text,
        HAZARD_OUTCOME_MAP(OUTCOME_TEXT)
#undef OUTCOME_TEXT
    };
    return texts[outcome];
}

#define SETTLE(member, fallback)                                                                   \
    do {                                                                                           \
        if (!with.member)                                                                          \
            with.member = hazard->with.member;                                                     \
        if (!with.member)                                                                          \
            with.member = (fallback);                                                              \
    } while (0)

struct hazard_setting hazard_setting_of(const struct hazard *hazard, const struct hazard_case *one)
{
    struct hazard_setting with = one->with;
    SETTLE(instances, HAZARD_INSTANCES);
    SETTLE(lease_ms, HAZARD_LEASE_MS);
    SETTLE(wait_ms, HAZARD_WAIT_MS);
    SETTLE(watchdog, ON);
    SETTLE(fence, ON);
    SETTLE(fence_source, "");
    SETTLE(by_proxy, false);
    SETTLE(store_by_proxy, false);
    SETTLE(workers, 0);
    SETTLE(lane_turns, 0);
    SETTLE(slip, "");
    SETTLE(clock_ms, 0);
    SETTLE(max_hold_ms, 0);
    SETTLE(close_ms, 0);
    SETTLE(redis, REDIS_PLAIN);
    SETTLE(servers, 1);
    SETTLE(replicas, 0);
    SETTLE(isolation, "read-committed");
    return with;
}

int64_t hazard_initial(const struct hazard *hazard)
{
    return hazard->initial != 0 ? hazard->initial : 1000;
}

int64_t hazard_delta(const struct hazard *hazard, enum hazard_who who)
{
    static const int64_t usual[HAZARD_ACTORS] = {-200, -300, -100};
    if (hazard->subject == ITEM)
        return -1;
    return hazard->deltas[who] != 0 ? hazard->deltas[who] : usual[who];
}
