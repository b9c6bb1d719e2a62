/* The endpoints of Redis: one node, Sentinels, a cluster, and the list of Redlock. A URL is printed
 * again from what was read, and must be read as the same. */
#include "fuzz.h"
#include "redis_topology.h"

enum { AGAIN_MAX = 8192 };

static void escape(char *to, const char *text)
{
    for (; *text != '\0'; text++)
        to += sprintf(to, "%%%02x", (unsigned char)*text);
    *to = '\0';
}

static void check_url(const lk_redis_url *url)
{
    FUZZ_CHECK(strlen(url->host) < sizeof url->host && strlen(url->path) < sizeof url->path);
    FUZZ_CHECK((url->host[0] == '\0') != (url->path[0] == '\0'));
    FUZZ_CHECK(url->port > 0 && url->port <= 65535 && url->db >= 0 && url->db <= LK_REDIS_DB_MAX);
}

/* "redis://user:password@[host]:port/db" */
static void print_and_read(const lk_redis_url *url)
{
    char again[AGAIN_MAX], user[4 * sizeof url->user], password[4 * sizeof url->password];
    lk_redis_url same;
    escape(user, url->user);
    escape(password, url->password);
    const bool v6 = strchr(url->host, ':') != NULL;
    if (strpbrk(url->host, "[]") != NULL)
        return; /* a host that no brackets can hold */
    if (url->path[0] != '\0')
        snprintf(again, sizeof again, "unix://%s?db=%d", url->path, url->db);
    else
        snprintf(again, sizeof again, "redis://%s%s%s%s%s%s%s:%d/%d", user,
                 password[0] != '\0' ? ":" : "", password, password[0] != '\0' ? "@" : "",
                 v6 ? "[" : "", url->host, v6 ? "]" : "", url->port, url->db);
    FUZZ_CHECK(lk_redis_url_parse(again, &same, NULL) == LK_OK);
    FUZZ_CHECK(strcmp(same.host, url->host) == 0 && strcmp(same.path, url->path) == 0 &&
               strcmp(same.user, url->user) == 0 && strcmp(same.password, url->password) == 0 &&
               same.port == url->port && same.db == url->db);
}

/* A refused URL's message tells nothing of its password. */
static void check_message(const char *text, const lk_error *error)
{
    FUZZ_CHECK(strlen(error->message) > 0 && strlen(error->message) < sizeof error->message);
    if (strstr(text, "SeCrEt") != NULL)
        FUZZ_CHECK(strstr(error->message, "SeCrEt") == NULL);
}

static void check_list(const char *list)
{
    for (size_t span; *list != '\0'; list += span + (list[span] == ',')) {
        span = lk_redis_url_span(list);
        FUZZ_CHECK(span <= strlen(list) && (list[span] == '\0' || list[span] == ','));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    char *text = fuzz_text(input, size);
    lk_redis_url url;
    lk_error error = {.message = ""};
    static lk_redis_topology topology;
    check_list(text);
    if (lk_redis_url_parse(text, &url, &error) == LK_OK) {
        check_url(&url);
        print_and_read(&url);
    } else {
        check_message(text, &error);
    }
    if (lk_redis_topology_parse(text, &topology, &error) != LK_OK) {
        check_message(text, &error);
    } else if (topology.kind == LK_REDIS_NODE) {
        check_url(&topology.node);
    } else {
        FUZZ_CHECK(topology.n_seeds >= 1 && topology.n_seeds <= LK_REDIS_SEEDS_MAX);
        FUZZ_CHECK((topology.kind == LK_REDIS_SENTINEL) == (topology.master[0] != '\0'));
        for (size_t i = 0; i < topology.n_seeds; i++)
            check_url(&topology.seed[i]);
    }
    free(text);
    return 0;
}
