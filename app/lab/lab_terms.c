/* Terms: the lease, the wait and the use of lanes for matching requests. */
#include "lab_private.h"

#include <pthread.h>
#include <string.h>

static struct {
    pthread_mutex_t mutex;
    size_t next; /* index of the next new entry */
    struct lab_terms list[LAB_TERMS_MAX];
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void lab_terms_set(const struct lab_terms *terms)
{
    pthread_mutex_lock(&all.mutex);
    size_t i = 0;
    while (i < LAB_TERMS_MAX && strcmp(all.list[i].match, terms->match) != 0)
        i++;
    if (i == LAB_TERMS_MAX)
        i = all.next++ % LAB_TERMS_MAX;
    all.list[i] = *terms;
    pthread_mutex_unlock(&all.mutex);
}

struct lab_terms lab_terms_of(const char *key, const char *request_id, const char *resource)
{
    struct lab_terms found = {.match = "", .lanes = -1};
    pthread_mutex_lock(&all.mutex);
    for (size_t i = 0; i < LAB_TERMS_MAX; i++) {
        const char *match = all.list[i].match;
        if (match[0] != '\0' && (strcmp(match, key) == 0 || strcmp(match, request_id) == 0 ||
                                 strcmp(match, resource) == 0)) {
            found = all.list[i];
            break;
        }
    }
    pthread_mutex_unlock(&all.mutex);
    return found;
}
