/*
 * Text with placeholders that differ from request to request:
 *
 *   {{seq}}           the request's number, from 0
 *   {{uuid}}          a random UUID (RFC 9562, version 4)
 *   {{random}}        a whole number from 0 to 2147483647
 *   {{random A B}}    one from A to B
 *
 * Random ones depend on seed, request and place only: the same seed asks for the same, whatever the
 * order of sending; a request that is sent again is the same again.
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

/* text is borrowed as long as the template is used. 0, or -1 with a message. */
int template_compile(const char *text, struct template *ret, char *message, size_t size);
bool template_is_plain(const struct template *template); /* has no placeholders */
/* The text of one request; `place` tells several templates of a request apart. Returns its length,
 * or -1 when it does not fit. No NUL is added. */
long template_expand(const struct template *template, uint64_t seed, uint64_t seq, unsigned place,
                     char *out, size_t size);

#endif
