#include "lab_slips.h"

#include <stdio.h>
#include <string.h>

static const struct slip {
    const char *id, *text;
    void (*install)(void);
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

void lab_slip_install(const char *id)
{
    find(id)->install();
}
