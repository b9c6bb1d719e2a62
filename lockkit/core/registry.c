/* Finding a provider by its name. The list is in providers.h. */
#include "providers.h"

#include <stdio.h>
#include <string.h>

const lk_provider *const lk_providers[] = {
#define PROVIDER_ENTRY(name) &lk_##name,
    LK_PROVIDER_MAP(PROVIDER_ENTRY)
#undef PROVIDER_ENTRY
        NULL,
};

const lk_provider *lk_provider_builtin(const char *name)
{
    for (size_t i = 0; name && lk_providers[i]; i++)
        if (strcmp(lk_providers[i]->info.name, name) == 0)
            return lk_providers[i];
    return NULL;
}

lk_status lk_open(const char *provider, const char *endpoints, const lk_options *options,
                  lk_client **ret, lk_error *error)
{
    const lk_provider *found = lk_provider_builtin(provider);
    if (found)
        return lk_open_provider(found, endpoints, options, ret, error);
    char known[LK_MESSAGE_MAX] = "";
    size_t length = 0;
    /* uncovered: all names fit */
    for (size_t i = 0; lk_providers[i] && length < sizeof known; i++)
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "",
                                   lk_providers[i]->info.name);
    return lk_fail(error, LK_INVALID, "unknown guard \"%.40s\"; known are: %s",
                   provider ? provider : "", known);
}

const lk_provider_info *lk_provider_at(size_t i)
{
    size_t n = 0;
    while (lk_providers[n])
        n++;
    return i < n ? &lk_providers[i]->info : NULL;
}

const lk_provider_info *lk_provider_find(const char *name)
{
    const lk_provider *found = lk_provider_builtin(name);
    return found ? &found->info : NULL;
}

const lk_cap_info *lk_cap_list(void)
{
    static const lk_cap_info caps[LK_CAP_COUNT] = {
#define CAP_INFO(name, id, text) {LK_CAP_##name, id, text},
        LK_CAP_MAP(CAP_INFO)
#undef CAP_INFO
    };
    return caps;
}
