/* Its commands: add, gets, cas, delete, meta get and meta delete, version, the dump of all keys. */
#include "sim_memcached.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1024, WORDS_MAX = 8, MONTH_S = 60 * 60 * 24 * 30 };

/* -- items ------------------------------------------------------------------------------------ */

static void drop(struct sim_memcached *server, struct sim_memcached_item *item)
{
    *item = server->items[--server->n];
}

static struct sim_memcached_item *find(struct sim_memcached *server, const char *key)
{
    const int64_t now_s = sim_memcached_now_s(server);
    for (size_t i = 0; i < server->n; i++) {
        struct sim_memcached_item *item = &server->items[i];
        if (strcmp(item->key, key) != 0)
            continue;
        if (item->until_s == 0 || item->until_s > now_s)
            return item;
        drop(server, item);
        return NULL;
    }
    return NULL;
}

static void put(struct sim_memcached *server, struct sim_memcached_item *item, char *const *words,
                const char *value, size_t n)
{
    const int64_t s = strtoll(words[3], NULL, 10), now_s = sim_memcached_now_s(server);
    if (!item && server->n == SIM_MEMCACHED_ITEMS_MAX)
        abort();
    if (!item)
        item = &server->items[server->n++];
    if (n >= sizeof item->value || s > MONTH_S)
        abort();
    snprintf(item->key, sizeof item->key, "%s", words[1]);
    memcpy(item->value, value, n);
    item->value[n] = '\0';
    item->cas = ++server->last_cas;
    item->until_s = s == 0 ? 0 : s < 0 ? 1 : now_s + s;
}

/* -- commands --------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void tell(struct sim_bytes *answer, const char *format,
                                                       ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sim_bytes_add(answer, text, (size_t)n);
}

/* add KEY FLAGS EXPTIME BYTES, cas KEY FLAGS EXPTIME BYTES CAS */
static void store(struct sim_memcached *server, char *const *words, const char *value, size_t n,
                  struct sim_bytes *answer)
{
    struct sim_memcached_item *item = find(server, words[1]);
    const bool adds = strcmp(words[0], "add") == 0;
    if (adds && item) {
        tell(answer, "NOT_STORED\r\n");
    } else if (!adds && !item) {
        tell(answer, "NOT_FOUND\r\n");
    } else if (!adds && item->cas != strtoull(words[5], NULL, 10)) {
        tell(answer, "EXISTS\r\n");
    } else {
        put(server, item, words, value, n);
        tell(answer, "STORED\r\n");
    }
}

static void gets(struct sim_memcached *server, char *const *words, struct sim_bytes *answer)
{
    const struct sim_memcached_item *item = find(server, words[1]);
    if (item)
        tell(answer, "VALUE %s 0 %zu %" PRIu64 "\r\n%s\r\n", item->key, strlen(item->value),
             item->cas, item->value);
    tell(answer, "END\r\n");
}

static void delete_key(struct sim_memcached *server, char *const *words, struct sim_bytes *answer)
{
    struct sim_memcached_item *item = find(server, words[1]);
    if (item)
        drop(server, item);
    tell(answer, item ? "DELETED\r\n" : "NOT_FOUND\r\n");
}

/* md KEY C<cas> */
static void meta_delete(struct sim_memcached *server, char *const *words, struct sim_bytes *answer)
{
    struct sim_memcached_item *item = find(server, words[1]);
    if (!item) {
        tell(answer, "NF\r\n");
    } else if (item->cas != strtoull(words[2] + 1, NULL, 10)) {
        tell(answer, "EX\r\n");
    } else {
        drop(server, item);
        tell(answer, "HD\r\n");
    }
}

/* mg KEY t v u */
static void meta_get(struct sim_memcached *server, char *const *words, struct sim_bytes *answer)
{
    const struct sim_memcached_item *item = find(server, words[1]);
    if (!item)
        tell(answer, "EN\r\n");
    else
        tell(answer, "VA %zu t%" PRId64 "\r\n%s\r\n", strlen(item->value),
             item->until_s == 0 ? -1 : item->until_s - sim_memcached_now_s(server), item->value);
}

static void version(struct sim_memcached *server, char *const *words, struct sim_bytes *answer)
{
    (void)server, (void)words;
    tell(answer, "VERSION 1.6\r\n");
}

static const struct {
    const char *name;
    int words;
    void (*run)(struct sim_memcached *server, char *const *words, struct sim_bytes *answer);
} commands[] = {{"gets", 2, gets},
                {"delete", 2, delete_key},
                {"md", 3, meta_delete},
                {"mg", 5, meta_get},
                {"version", 1, version}};

static int split(char *line, char *words[WORDS_MAX])
{
    int n = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (n == WORDS_MAX)
            abort();
        words[n++] = word;
    }
    return n;
}

static void run_line(struct sim_memcached *server, int n, char *const *words,
                     struct sim_bytes *answer)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (n == commands[i].words && strcmp(words[0], commands[i].name) == 0) {
            commands[i].run(server, words, answer);
            return;
        }
    fprintf(stderr, "the model of memcached does not know: %s\n", n > 0 ? words[0] : "");
    abort();
}

bool sim_memcached_run(struct sim_memcached *server, struct sim_bytes *asked,
                       struct sim_bytes *answer)
{
    char line[LINE_MAX_BYTES], *words[WORDS_MAX];
    const char *end = asked->n > 0 ? memmem(asked->at, asked->n, "\r\n", 2) : NULL;
    if (!end)
        return false;
    const size_t length = (size_t)(end - asked->at);
    if (length >= sizeof line)
        abort();
    memcpy(line, asked->at, length);
    line[length] = '\0';
    const int n = split(line, words);
    const bool adds = n == 5 && strcmp(words[0], "add") == 0;
    if (!adds && !(n == 6 && strcmp(words[0], "cas") == 0)) {
        run_line(server, n, words, answer);
        sim_bytes_take(asked, length + 2);
        return true;
    }
    const size_t bytes = strtoull(words[4], NULL, 10);
    if (asked->n < length + 2 + bytes + 2)
        return false;
    store(server, words, end + 2, bytes, answer);
    sim_bytes_take(asked, length + 2 + bytes + 2);
    return true;
}
