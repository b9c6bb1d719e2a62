#include "condition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One element of a list. */
struct tag {
    bool weak;
    const char *text; /* between the quotes */
    size_t length;
};

static bool is_tag_char(unsigned char c)
{
    return c == '!' || (c >= '#' && c != 0x7f);
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

/* Reads the next tag of a list. Returns where the next begins; NULL: the list is malformed. Empty
 * elements are allowed (RFC 9110 5.6.1.2). ret->text NULL: there was none. */
static const char *next_tag(const char *at, const char *end, struct tag *ret)
{
    ret->text = NULL;
    at = skip_blanks(at, end);
    if (at < end && *at == ',')
        return at + 1;
    if (at == end)
        return end;
    ret->weak = end - at >= 2 && at[0] == 'W' && at[1] == '/';
    if (ret->weak)
        at += 2;
    if (at == end || *at++ != '"')
        return NULL;
    ret->text = at;
    while (at < end && is_tag_char((unsigned char)*at))
        at++;
    ret->length = (size_t)(at - ret->text);
    if (at == end || *at++ != '"')
        return NULL;
    at = skip_blanks(at, end);
    if (at < end && *at++ != ',')
        return NULL;
    return at;
}

/* 0: no row has this tag. Each version has one tag: no sign, no leading zero. */
static int64_t version_of(const struct tag *tag)
{
    int64_t version = 0;
    if (tag->length == 0 || tag->text[0] == '0')
        return 0;
    for (size_t i = 0; i < tag->length; i++) {
        if (tag->text[i] < '0' || tag->text[i] > '9' ||
            __builtin_mul_overflow(version, 10, &version) ||
            __builtin_add_overflow(version, tag->text[i] - '0', &version))
            return 0;
    }
    return version;
}

static bool is_star(const char *text, size_t length)
{
    return length == 1 && text[0] == '*';
}

static const char *read_list(const char *text, size_t length, bool weak_counts,
                             struct condition *ret)
{
    const char *const end = text + length;
    bool any = false;
    while (text < end) {
        struct tag tag;
        text = next_tag(text, end, &tag);
        if (text == NULL)
            return "give entity tags in quotes, such as \"7\"";
        any = any || tag.text != NULL;
        const int64_t version =
            tag.text != NULL && (weak_counts || !tag.weak) ? version_of(&tag) : 0;
        if (version == 0)
            continue;
        if (ret->n == CONDITION_VERSIONS_MAX)
            return "give fewer entity tags";
        ret->versions[ret->n++] = version;
    }
    return any ? NULL : "give an entity tag";
}

const char *condition_read(const char *if_match, size_t if_match_length, const char *if_none_match,
                           size_t if_none_match_length, struct condition *ret)
{
    ret->kind = CONDITION_NONE;
    ret->n = 0;
    if (if_match != NULL && if_none_match != NULL)
        return "give one of them";
    if (if_match != NULL && is_star(if_match, if_match_length)) {
        ret->kind = CONDITION_EXISTS;
        return NULL;
    }
    if (if_match != NULL) {
        ret->kind = CONDITION_ONE_OF;
        return read_list(if_match, if_match_length, false, ret);
    }
    if (if_none_match == NULL)
        return NULL;
    if (is_star(if_none_match, if_none_match_length)) {
        ret->kind = CONDITION_ABSENT;
        return NULL;
    }
    ret->kind = CONDITION_NOT_OF;
    return read_list(if_none_match, if_none_match_length, true, ret);
}

static bool has(const struct condition *condition, int64_t version)
{
    for (size_t i = 0; i < condition->n; i++) {
        if (condition->versions[i] == version)
            return true;
    }
    return false;
}

bool condition_holds(const struct condition *condition, int64_t version)
{
    switch (condition->kind) {
    case CONDITION_ABSENT:
        return version == 0;
    case CONDITION_EXISTS:
        return version != 0;
    case CONDITION_ONE_OF:
        return has(condition, version);
    case CONDITION_NOT_OF:
        return !has(condition, version);
    case CONDITION_NONE:
        break;
    }
    return true;
}

bool condition_protects(const struct condition *condition)
{
    return condition->kind == CONDITION_ABSENT || condition->kind == CONDITION_ONE_OF;
}

void condition_tag(int64_t version, char ret[CONDITION_TAG_MAX])
{
    snprintf(ret, CONDITION_TAG_MAX, "\"%" PRId64 "\"", version);
}
