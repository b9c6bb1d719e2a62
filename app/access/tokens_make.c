/* seckilld token ROLE NAME */
#include "tokens_private.h"

#include <nettle/base16.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { RANDOM_BYTES = 32 };

static void to_hex(char ret[TOKENS_TEXT_MAX + 1], const uint8_t bytes[RANDOM_BYTES])
{
    base16_encode_update(ret, RANDOM_BYTES, bytes);
    ret[TOKENS_TEXT_MAX] = '\0';
}

int tokens_make(int argc, char **argv)
{
    enum role role;
    const char *wrong = argc != 3                      ? "it needs ROLE and NAME"
                        : !tokens_role(argv[1], &role) ? "a role is buyer or operator"
                                                       : tokens_name_wrong(argv[2]);
    if (wrong != NULL) {
        fprintf(stderr, "seckilld token: %s\nUsage: seckilld token buyer|operator NAME >>FILE\n",
                wrong);
        return 2;
    }
    uint8_t random[RANDOM_BYTES], hash[SHA256_DIGEST_SIZE];
    char token[TOKENS_TEXT_MAX + 1], hash_text[TOKENS_TEXT_MAX + 1];
    struct sha256_ctx context;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        perror("seckilld token: getrandom");
        return 1;
    }
    to_hex(token, random);
    sha256_init(&context);
    sha256_update(&context, TOKENS_TEXT_MAX, (const uint8_t *)token);
    sha256_digest(&context, sizeof hash, hash);
    to_hex(hash_text, hash);
    if (printf("%s %s %s\n", argv[1], argv[2], hash_text) < 0 || fflush(stdout) != 0) {
        perror("seckilld token: standard output");
        return 1;
    }
    fprintf(stderr, "The token of %s, which is kept nowhere else:\n%s\n", argv[2], token);
    return 0;
}
