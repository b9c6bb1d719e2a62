/*
 * Endpoints other than those of Redis. The first byte names the kind: memcached, PostgreSQL as the
 * store and as a lock, the target of a load, ZooKeeper. What is taken is compared with what the
 * text says, or printed and taken again.
 */
#include "fuzz.h"
#include "load.h"
#include "memcached_pool.h"
#include "postgres.h"
#include "sql_postgres.h"
#include "zk_session.h"

#include <netdb.h>

/* No name server is asked. */
int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret)
{
    struct addrinfo numeric = *hints;
    numeric.ai_flags |= AI_NUMERICHOST;
    return __real_getaddrinfo(name, service, &numeric, ret);
}

static void check_port(const char *digits)
{
    FUZZ_CHECK(strlen(digits) > 0 && strspn(digits, "0123456789") == strlen(digits));
    FUZZ_CHECK(strtoll(digits, NULL, 10) >= 1 && strtoll(digits, NULL, 10) <= 65535);
}

static void try_memcached(const char *text)
{
    const lk_options options = {.command_timeout_ms = 1};
    const lk_context context = {.options = &options, .endpoints = text};
    lk_memcached_pool *pool;
    lk_error error = {.message = ""};
    if (lk_memcached_open(&context, &pool, &error) != LK_OK) {
        FUZZ_CHECK(error.message[0] != '\0');
        return;
    }
    lk_memcached_close(pool);
    FUZZ_CHECK(strchr(text, ',') == NULL);
    if (strncmp(text, "unix://", 7) == 0)
        FUZZ_CHECK(text[7] == '/');
    else if (text[0] == '[' && strchr(text, ']')[1] != '\0')
        check_port(strchr(text, ']') + 2);
    else if (text[0] != '[' && strchr(text, ':') != NULL)
        check_port(strchr(text, ':') + 1);
}

/* What libpq gets is a URL that it takes, and without our own parameters. */
static void check_uri(const char *uri)
{
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(uri, &why);
    FUZZ_CHECK(options != NULL);
    PQconninfoFree(options);
    PQfreemem(why);
    for (const char *at = strchr(uri, '?'); at != NULL; at = strchr(at + 1, '&'))
        FUZZ_CHECK(strncmp(at + 1, "pool=", 5) != 0 && strncmp(at + 1, "isolation=", 10) != 0);
}

static void check_message(const char *text, const char *message)
{
    FUZZ_CHECK(message[0] != '\0');
    if (strstr(text, ":SeCrEt@") != NULL && strstr(text, "pool=") == NULL &&
        strstr(text, "isolation=") == NULL)
        FUZZ_CHECK(strstr(message, "SeCrEt") == NULL);
}

static void try_postgres(const char *text)
{
    struct pg_target store, again;
    lk_pg_target lock, lock_again;
    db_error error = {.message = ""};
    lk_error lock_error = {.message = ""};
    if (pg_target_parse(text, &store, &error) != DB_OK) {
        check_message(text, error.message);
    } else {
        FUZZ_CHECK(store.pool_max >= 1 && store.pool_max <= PG_POOL_MAX);
        check_uri(store.uri);
        FUZZ_CHECK(pg_target_parse(store.uri + strlen("postgresql:"), &again, &error) == DB_OK);
        FUZZ_CHECK(strcmp(again.uri, store.uri) == 0 && again.pool_max == PG_POOL_DEFAULT);
    }
    if (lk_pg_target_parse(text, &lock, &lock_error) != LK_OK) {
        check_message(text, lock_error.message);
    } else {
        FUZZ_CHECK(lock.pool_max >= 0 && lock.pool_max <= LK_PG_POOL_MAX);
        check_uri(lock.uri);
        FUZZ_CHECK(lk_pg_target_parse(lock.uri, &lock_again, &lock_error) == LK_OK);
        FUZZ_CHECK(strcmp(lock_again.uri, lock.uri) == 0 && lock_again.pool_max == 0);
    }
}

static void try_target(const char *text)
{
    struct load_target target, again;
    char message[8192] = "", url[8192];
    if (load_target_parse(text, &target, message, sizeof message) != 0) {
        FUZZ_CHECK(message[0] != '\0');
        return;
    }
    FUZZ_CHECK(target.path[0] == '/' && strchr(target.path, '#') == NULL);
    if (strstr(text, "{{") != NULL)
        return; /* a fragment may begin in a placeholder: what is left is for the template */
    if (target.socket_path[0] != '\0')
        snprintf(url, sizeof url, "http+unix://%s:%s", target.socket_path, target.path);
    else
        snprintf(url, sizeof url, "http://%s%s", target.host, target.path);
    FUZZ_CHECK(load_target_parse(url, &again, message, sizeof message) == 0);
    FUZZ_CHECK(again.port == target.port && strcmp(again.host, target.host) == 0 &&
               strcmp(again.path, target.path) == 0 && strcmp(again.address, target.address) == 0 &&
               strcmp(again.socket_path, target.socket_path) == 0);
    FUZZ_CHECK(target.socket_path[0] != '\0' || (target.port >= 1 && target.port <= 65535));
}

/* "host:port[,host:port...][/folder]" */
static void try_zookeeper(const char *text)
{
    const lk_context context = {.endpoints = text};
    lk_zk *zk;
    lk_error error = {.message = ""};
    if (lk_zk_open(&context, &zk, &error) != LK_OK) {
        FUZZ_CHECK(error.message[0] != '\0');
        return;
    }
    lk_zk_close(zk);
    char *hosts = fuzz_text(text, strcspn(text, "/")), *rest = hosts;
    for (char *host; (host = strsep(&rest, ",")) != NULL;)
        check_port(strchr(host, ':') + 1);
    free(hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    const int kind = fuzz_byte(&input, &size) % 4;
    char *text = fuzz_text(input, size);
    if (kind == 0)
        try_memcached(text);
    else if (kind == 1)
        try_postgres(text);
    else if (kind == 2)
        try_target(text);
    else
        try_zookeeper(text);
    free(text);
    return 0;
}
