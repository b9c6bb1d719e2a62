#include "sim_less.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which they are tried: what makes a story short comes first. */
static const struct {
    const char *name;
    size_t at;
    uint32_t least;
} knobs[SIM_KNOBS] = {
#define KNOB(member, least)                                                                        \
    {                                                                                              \
#member, offsetof(struct sim_settings, member), least                                      \
    }
    KNOB(hands, 1),      KNOB(n_faults, 0), KNOB(instances, 1), KNOB(clients, 1),    KNOB(deals, 1),
    KNOB(think_ms, 0),   KNOB(items, 1),    KNOB(accounts, 2),  KNOB(workers, 1),    KNOB(batch, 1),
    KNOB(hand_overs, 0), KNOB(turns, 1),    KNOB(replicas, 0),  KNOB(retention_s, 0)
#undef KNOB
};

static const char *const kinds[SIM_EVENTS] = {
#define KIND(name, text) #name,
    SIM_EVENT_MAP(KIND)
#undef KIND
};

static const char *name_of(int i)
{
    return i < SIM_KNOBS ? knobs[i].name : kinds[i - SIM_KNOBS];
}

static uint32_t *knob_of(struct sim_settings *settings, int i)
{
    return (uint32_t *)(void *)((char *)settings + knobs[i].at);
}

uint32_t sim_less_value(const struct sim_settings *settings, int i)
{
    if (i >= SIM_KNOBS)
        return settings->faults[i - SIM_KNOBS];
    return knobs[i].name ? *(const uint32_t *)(const void *)((const char *)settings + knobs[i].at)
                         : 0;
}

uint32_t sim_less_least(int i)
{
    return i < SIM_KNOBS ? knobs[i].least : 0;
}

void sim_less_apply(const struct sim_less *less, struct sim_settings *settings)
{
    for (int i = 0; i < SIM_LESS_MAX; i++) {
        if (!less->set[i])
            continue;
        if (i >= SIM_KNOBS)
            settings->faults[i - SIM_KNOBS] = false;
        else if (knobs[i].name && less->values[i] < *knob_of(settings, i))
            *knob_of(settings, i) = less->values[i];
    }
    settings->claims_safe = settings->claims_safe || less->claims;
}

static bool parse_one(const char *name, uint32_t value, struct sim_less *ret)
{
    if (strcmp(name, "run") == 0)
        ret->run = value;
    else if (strcmp(name, "claims") == 0)
        ret->claims = value != 0;
    else
        for (int i = 0;; i++) {
            if (i == SIM_LESS_MAX)
                return false;
            if (!name_of(i) || strcmp(name, name_of(i)) != 0)
                continue;
            ret->set[i] = true;
            ret->values[i] = value;
            break;
        }
    return true;
}

bool sim_less_parse(const char *text, struct sim_less *ret)
{
    char copy[SIM_LESS_TEXT_MAX], *rest = copy, *one;
    memset(ret, 0, sizeof *ret);
    if (strlen(text ? text : "") >= sizeof copy)
        return false;
    strcpy(copy, text ? text : "");
    while ((one = strsep(&rest, ",")) != NULL) {
        char *value = strchr(one, '=');
        if (one[0] == '\0')
            continue;
        if (!value)
            return false;
        *value = '\0';
        if (!parse_one(one, (uint32_t)strtoul(value + 1, NULL, 10), ret))
            return false;
    }
    return true;
}

void sim_less_print(const struct sim_less *less, char ret[SIM_LESS_TEXT_MAX])
{
    size_t n = 0;
    ret[0] = '\0';
    for (int i = 0; i < SIM_LESS_MAX; i++)
        if (less->set[i])
            n += (size_t)snprintf(ret + n, SIM_LESS_TEXT_MAX - n, "%s%s=%u", n ? "," : "",
                                  name_of(i), less->values[i]);
    if (less->claims)
        n += (size_t)snprintf(ret + n, SIM_LESS_TEXT_MAX - n, "%sclaims=1", n ? "," : "");
    if (less->run)
        snprintf(ret + n, SIM_LESS_TEXT_MAX - n, "%srun=%u", n ? "," : "", less->run);
}
