/*
 * Conditions of a request on the version of its item or account: If-Match and If-None-Match,
 * RFC 9110 13.1.
 *
 * The entity tag of a row is its version in quotes: "7". It is strong: every accepted change raises
 * the version. (Under a weak guard two changes may get one version. The audit shows them as a
 * fork.)
 */
#ifndef CONDITION_H
#define CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONDITION_VERSIONS_MAX = 2, CONDITION_TAG_MAX = 24 };

enum condition_kind {
    CONDITION_NONE,   /* no such header */
    CONDITION_ABSENT, /* If-None-Match: * */
    CONDITION_ONE_OF, /* If-Match, a list of tags */
    CONDITION_EXISTS, /* If-Match: * */
    CONDITION_NOT_OF  /* If-None-Match, a list of tags */
};

struct condition {
    uint8_t kind; /* enum condition_kind; small, as each waiting request has one */
    uint8_t n;
    int64_t versions[CONDITION_VERSIONS_MAX];
};

/* Reads the two headers; NULL: not sent. Text need not end at its length. A tag that is no version
 * counts as one that no row has. So does a weak one in If-Match. Returns NULL and fills *ret, or
 * says what is wrong. */
const char *condition_read(const char *if_match, size_t if_match_length, const char *if_none_match,
                           size_t if_none_match_length, struct condition *ret);

/* Whether a row of this version fulfils it; 0: there is no row. */
bool condition_holds(const struct condition *condition, int64_t version);

/* Whether it lets a write replace only a state that its client knows: absent, or these versions. */
bool condition_protects(const struct condition *condition);

/* Writes the tag of a version. */
void condition_tag(int64_t version, char ret[CONDITION_TAG_MAX]);

#endif
