/*
 * Text with placeholders that differ from request to request:
 *
 *   {{seq}}           the request's number, from 0
 *   {{uuid}}          a random UUID (RFC 9562, version 4)
 *   {{random}}        a whole number from 0 to 2147483647
 *   {{random A B}}    a whole number from A to B
 *
 * Random values depend only on seed, request and place. The same seed gives the same values in any
 * order of sending. A request that is sent again has the same values again.
 */
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEMPLATE_PARTS_MAX = 64 };

struct template_part {
    enum template_kind { TEMPLATE_TEXT, TEMPLATE_SEQ, TEMPLATE_UUID, TEMPLATE_RANDOM } kind;
    const char *text; /* of the source, not copied */
    size_t length;
    int64_t min, max; /* of a random number */
};

struct template
{
    size_t n;
    struct template_part parts[TEMPLATE_PARTS_MAX];
};

/* text must live as long as the template. Returns 0, or -1 with a message. */
int template_compile(const char *text, struct template *ret, char *message, size_t size);
bool template_is_plain(const struct template *template); /* has no placeholders */
/* Writes the text of one request, without a NUL. `place` distinguishes the templates of one
 * request. Returns the length, or -1 if it does not fit. */
long template_expand(const struct template *template, uint64_t seed, uint64_t seq, unsigned place,
                     char *out, size_t size);

#endif
