#include "lab_slips.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct slip {
    const char *id, *text;
    void (*install)(struct seams *seams);
} slips[] = {
#define SLIP_ENTRY(name, id, text) {id, text, lab_slip_##name},
    LAB_SLIP_MAP(SLIP_ENTRY)
#undef SLIP_ENTRY
};
enum { SLIPS = sizeof slips / sizeof slips[0] };

static const struct slip *find(const char *id)
{
    for (size_t i = 0; i < SLIPS; i++)
        if (strcmp(slips[i].id, id) == 0)
            return &slips[i];
    return NULL;
}

bool lab_slip_is_known(const char *id)
{
    if (find(id))
        return true;
    fprintf(stderr, "seckilld: lab-slip: unknown \"%s\"; known are:\n", id);
    for (size_t i = 0; i < SLIPS; i++)
        fprintf(stderr, "  %-18s %s\n", slips[i].id, slips[i].text);
    return false;
}

void lab_slip_install(const char *id, struct seams *seams)
{
    find(id)->install(seams);
}

void lab_slip_provider(struct seams *seams, const struct lk_provider *provider)
{
    size_t i = 0;
    while (seams->providers[i])
        i++;
    assert(i < SEAMS_PROVIDERS_MAX);
    seams->providers[i] = provider;
}
