/* The file of tokens. */
#include "tokens_private.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/base16.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 256, HEX_DIGITS = 2 * SHA256_DIGEST_SIZE };

bool tokens_role(const char *word, enum role *ret)
{
    *ret = strcmp(word, "operator") == 0 ? ROLE_OPERATOR : ROLE_BUYER;
    return *ret == ROLE_OPERATOR || strcmp(word, "buyer") == 0;
}

const char *tokens_name_wrong(const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    /* The ledger names the service's own transactions "task<TAB>...", "reset<TAB>..." and
     * "setting<TAB>...", and those
     * of callers "NAME<TAB>KEY". */
    static const char *const taken[] = {"task", "reset", "setting"};
    const size_t length = strlen(name);
    if (length < 1 || length > TOKENS_NAME_MAX || strspn(name, allowed) != length)
        return "a name is 1 to 64 of [A-Za-z0-9_-]";
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (strcmp(name, taken[i]) == 0)
            return "the service itself uses this name";
    return NULL;
}

static bool read_hash(const char *hex, uint8_t ret[SHA256_DIGEST_SIZE])
{
    struct base16_decode_ctx context;
    size_t n = SHA256_DIGEST_SIZE;
    if (strlen(hex) != HEX_DIGITS)
        return false;
    base16_decode_init(&context);
    return base16_decode_update(&context, &n, ret, HEX_DIGITS, hex) == 1 &&
           base16_decode_final(&context) == 1 && n == SHA256_DIGEST_SIZE;
}

/* Returns NULL, or what is wrong. */
static const char *add(struct token_list *tokens, const struct token *token)
{
    if (tokens->n == TOKENS_MAX)
        return "too many tokens";
    if (tokens->n == tokens->room) {
        const size_t room = tokens->room > 0 ? 2 * tokens->room : 16;
        struct token *list = realloc(tokens->list, room * sizeof *list);
        if (list == NULL)
            return "out of memory";
        tokens->list = list;
        tokens->room = room;
    }
    tokens->list[tokens->n++] = *token;
    return NULL;
}

/* Takes one line. Returns NULL, or what is wrong with it. */
static const char *take_line(struct token_list *tokens, char *line)
{
    static const char space[] = " \t\r\n";
    char *rest = NULL;
    struct token token = {.caller = {.role = ROLE_BUYER}};
    const char *role = strtok_r(line, space, &rest);
    if (role == NULL || role[0] == '#')
        return NULL;
    const char *name = strtok_r(NULL, space, &rest);
    const char *hash = strtok_r(NULL, space, &rest);
    const char *more = strtok_r(NULL, space, &rest);
    if (hash == NULL || more != NULL)
        return "not of the form ROLE NAME SHA256HEX";
    if (!tokens_role(role, &token.caller.role))
        return "a role is buyer or operator";
    const char *wrong = tokens_name_wrong(name);
    if (wrong != NULL)
        return wrong;
    if (!read_hash(hash, token.hash))
        return "the hash is not 64 hexadecimal digits";
    strcpy(token.caller.name, name);
    return add(tokens, &token);
}

static bool fail(char *message, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool fail(char *message, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, size, format, args);
    va_end(args);
    return false;
}

static const char *read_lines(FILE *file, struct token_list *tokens, int *ret_number)
{
    char line[LINE_BYTES];
    const char *wrong = NULL;
    for (*ret_number = 0; wrong == NULL && fgets(line, sizeof line, file) != NULL;) {
        ++*ret_number;
        wrong = strlen(line) == sizeof line - 1 ? "line too long" : take_line(tokens, line);
    }
    return wrong == NULL && ferror(file) ? "read error" : wrong;
}

static bool read_file(const char *path, struct token_list *tokens, char *message, size_t size)
{
    struct stat status;
    int number;
    /* Without waiting: a FIFO would hold the service up. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL && fd >= 0)
        close(fd);
    if (file == NULL)
        return fail(message, size, "tokens: cannot read %.300s: %s", path, strerror(errno));
    const char *wrong = NULL, *at = path;
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode))
        wrong = "it is not a regular file";
    else if ((status.st_mode & S_IRWXO) != 0)
        wrong = "other users may open it: chmod o= FILE";
    if (wrong != NULL) {
        fclose(file);
        return fail(message, size, "tokens: %.300s: %s", at, wrong);
    }
    wrong = read_lines(file, tokens, &number);
    fclose(file);
    return wrong == NULL || fail(message, size, "tokens: %.300s:%d: %s", at, number, wrong);
}

/* A name has one role, or a buyer could replay an operator's keys. */
static int compare_names(const void *a, const void *b)
{
    const struct token *x = a, *y = b;
    return strcmp(x->caller.name, y->caller.name);
}

static int compare_hashes(const void *a, const void *b)
{
    const struct token *x = a, *y = b;
    return memcmp(x->hash, y->hash, sizeof x->hash);
}

static bool check(struct token_list *tokens, char *message, size_t size)
{
    qsort(tokens->list, tokens->n, sizeof *tokens->list, compare_names);
    for (size_t i = 1; i < tokens->n; i++) {
        const struct caller *one = &tokens->list[i - 1].caller, *two = &tokens->list[i].caller;
        if (strcmp(one->name, two->name) == 0 && one->role != two->role)
            return fail(message, size, "tokens: %s is both buyer and operator", one->name);
    }
    qsort(tokens->list, tokens->n, sizeof *tokens->list, compare_hashes);
    for (size_t i = 1; i < tokens->n; i++)
        if (compare_hashes(&tokens->list[i - 1], &tokens->list[i]) == 0)
            return fail(message, size, "tokens: %s and %s have the same token",
                        tokens->list[i - 1].caller.name, tokens->list[i].caller.name);
    return true;
}

bool tokens_read(const struct tokens_source *source, struct token_list *ret, char *message,
                 size_t size)
{
    *ret = (struct token_list){.n = 0};
    if (source->operator_sha256[0] != '\0') {
        struct token token = {.caller = {.role = ROLE_OPERATOR, .name = "operator"}};
        if (!read_hash(source->operator_sha256, token.hash))
            return fail(message, size, "operator-token-sha256: not 64 hexadecimal digits");
        const char *wrong = add(ret, &token);
        if (wrong != NULL)
            return fail(message, size, "operator-token-sha256: %s", wrong);
    }
    if (source->file[0] != '\0' && !read_file(source->file, ret, message, size))
        return false;
    return ret->n == 0 || check(ret, message, size);
}
