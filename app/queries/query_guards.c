/* GET /v1/guards: the guards, their claims, and whether their servers answer. */
#include "answer.h"
#include "queries.h"

#include <jansson.h>
#include <pthread.h>
#include <string.h>

static const char *const kinds[] = {
    [GUARD_NONE] = "none",       [GUARD_LOCK] = "lock",        [GUARD_ROW] = "in-store",
    [GUARD_ATOMIC] = "in-store", [GUARD_VERSION] = "in-store",
};

/* Guards of one family share their servers. Each server is asked once, and all at the same time,
 * because lk_ping() of a dead one may wait for its timeout. */
struct server {
    const char *endpoints;
    lk_client *client;
    pthread_t thread;
    bool asked, answers;
};

struct servers {
    size_t n;
    struct server list[GUARDS_MAX];
    const struct server *of[GUARDS_MAX]; /* by index of the guard; NULL: it could not be opened */
};

static struct server *server_at(struct servers *servers, const char *endpoints, lk_client *client)
{
    for (size_t i = 0; i < servers->n; i++) {
        if (strcmp(servers->list[i].endpoints, endpoints) == 0)
            return &servers->list[i];
    }
    servers->list[servers->n] = (struct server){.endpoints = endpoints, .client = client};
    return &servers->list[servers->n++];
}

static bool servers_answer(const struct servers *servers, const struct guard *guard, size_t i)
{
    return !guard->endpoints || (servers->of[i] && servers->of[i]->answers);
}

static void *ask(void *arg)
{
    struct server *server = arg;
    server->answers = lk_ping(server->client) == LK_OK;
    return NULL;
}

/* Opens each guard once, because a second call could have another result. A guard may not open
 * although another one with the same endpoints does: pg-advisory, with a SQLite file. */
static void ask_all(struct guards *guards, struct servers *servers)
{
    struct guard *guard;
    for (size_t i = 0; (guard = guard_at(guards, i)) != NULL; i++) {
        lk_client *client = guard->endpoints ? guard_client(guard, NULL) : NULL;
        servers->of[i] = client ? server_at(servers, guard->endpoints, client) : NULL;
    }
    for (size_t i = 0; i < servers->n; i++) {
        struct server *server = &servers->list[i];
        server->asked = pthread_create(&server->thread, NULL, ask, server) == 0;
        if (!server->asked)
            ask(server);
    }
    for (size_t i = 0; i < servers->n; i++) {
        if (servers->list[i].asked)
            pthread_join(servers->list[i].thread, NULL);
    }
}

static json_t *caps_json(uint32_t caps)
{
    json_t *names = json_array();
    const lk_cap_info *list = lk_cap_list();
    for (size_t i = 0; i < LK_CAP_COUNT; i++) {
        if (caps & list[i].bit)
            json_array_append_new(names, json_string(list[i].name));
    }
    return names;
}

/* Where the fence of a write under this guard comes from. */
static const char *fence_source(const struct config *config, const struct guard *guard)
{
    if (guard->kind != GUARD_LOCK || !config->fence)
        return "none";
    if (config->fence_database)
        return "database";
    return guard->info->caps & LK_CAP_FENCE ? "lock" : "none";
}

static json_t *guard_json(const struct config *config, struct guard *guard, bool is_default,
                          bool answer)
{
    const lk_provider_info *info = guard->info;
    return json_pack("{s:s, s:s, s:b, s:o, s:b, s:b, s:s, s:s, s:s, s:s, s:s, s:b}", "name",
                     info->name, "kind", kinds[guard->kind], "default", is_default, "caps",
                     caps_json(info->caps), "claims_safe", guard_claims_safe(guard),
                     "claims_safe_in_one_process", guard_claims_safe_in_one_process(guard),
                     "fence_source", fence_source(config, guard), "algorithm", info->algorithm,
                     "guarantee", info->guarantee, "weakness", info->weakness, "source",
                     info->source, "servers_answer", answer);
}

static json_t *legend_json(void)
{
    json_t *legend = json_object();
    const lk_cap_info *list = lk_cap_list();
    for (size_t i = 0; i < LK_CAP_COUNT; i++)
        json_object_set_new(legend, list[i].name, json_string(list[i].text));
    return legend;
}

void query_guards(const struct queries *queries, struct op *op)
{
    struct servers servers = {.n = 0};
    ask_all(queries->guards, &servers);
    const struct guard *chosen = guard_default(queries->guards);
    struct guard *guard;
    json_t *list = json_array();
    for (size_t i = 0; (guard = guard_at(queries->guards, i)) != NULL; i++)
        json_array_append_new(list, guard_json(queries->config, guard, guard == chosen,
                                               servers_answer(&servers, guard, i)));
    json_t *document =
        json_pack("{s:s, s:s, s:b, s:b, s:b, s:s, s:o, s:o}", "instance", queries->config->instance,
                  "default", chosen->info->name, "lanes", queries->config->lanes, "lab",
                  queries->config->lab, "fence", queries->config->fence, "fence_source",
                  queries->config->fence_database ? "database" : "lock", "guards", list, "caps",
                  legend_json());
    op_answer_json(op, document);
}
