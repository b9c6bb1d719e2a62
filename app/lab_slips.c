#include "lab_slips.h"

#include <stdio.h>
#include <string.h>

bool lab_slip_install(const char *id)
{
    static const struct {
        const char *id, *text;
        void (*install)(void);
    } slips[] = {
#define SLIP_ENTRY(name, id, text) {id, text, lab_slip_##name},
        LAB_SLIP_MAP(SLIP_ENTRY)
#undef SLIP_ENTRY
    };
    for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++)
        if (strcmp(slips[i].id, id) == 0) {
            slips[i].install();
            return true;
        }
    fprintf(stderr, "seckilld: lab-slip: unknown \"%s\"; known are:\n", id);
    for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++)
        fprintf(stderr, "  %-18s %s\n", slips[i].id, slips[i].text);
    return false;
}
