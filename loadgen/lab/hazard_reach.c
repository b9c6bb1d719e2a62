/* What can strike whom: why a cell of the matrix is empty. */
#include "hazard.h"

#include <string.h>

const struct hazard_blank_text hazard_blank_texts[HAZARD_BLANKS] = {
#define BLANK_TEXT(name, id, sign) [BLANK_##name] = {id, sign},
    HAZARD_BLANK_MAP(BLANK_TEXT)
#undef BLANK_TEXT
};

/* Names, separated by blanks. */
static bool names(const char *list, const char *guard)
{
    for (const char *name = list; name != NULL && *name != '\0';) {
        const size_t length = strcspn(name, " ");
        const bool open = length > 0 && name[length - 1] == '*';
        if (open ? strncmp(name, guard, length - 1) == 0
                 : strlen(guard) == length && strncmp(name, guard, length) == 0)
            return true;
        name += length + strspn(name + length, " ");
    }
    return false;
}

enum hazard_blank hazard_blank(const struct hazard *hazard, const char *guard)
{
    const struct hazard_reach *reach = &hazard->reach;
    const lk_provider_info *info = lk_provider_find(guard); /* NULL: not lockkit's, so no claims */
    const uint32_t caps = info != NULL ? info->caps : 0;
    if ((reach->only != NULL && !names(reach->only, guard)) || names(reach->never, guard) ||
        (reach->needs != 0 && (caps & reach->needs) == 0))
        return BLANK_NEVER;
    return (caps & reach->holds) != 0 ? BLANK_CLAIMED : BLANK_UNTRIED;
}
