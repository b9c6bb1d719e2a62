#include "shop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_MAX = 40 };

const char *shop_binary(const char *name)
{
    static char path[512];
    const char *build = getenv("BUILD");
    snprintf(path, sizeof path, "%s/%s", build != NULL && build[0] != '\0' ? build : "build", name);
    return path;
}

struct sandbox_server *shop_instance(struct shop *shop, const char *const *args)
{
    char db[SANDBOX_TEXT_MAX + 32];
    snprintf(db, sizeof db, "sqlite:%s/shop.db", sandbox_dir(shop->sandbox));
    const char *all[ARGS_MAX + 1] = {"--redis", shop->redis->url, "--db", db};
    size_t n = 4;
    for (; args != NULL && *args != NULL; args++)
        if (n < ARGS_MAX)
            all[n++] = *args;
    return sandbox_seckilld(shop->sandbox, shop_binary("seckilld"), all);
}

int shop_open(struct shop *shop, const char *const *args)
{
    *shop = (struct shop){.client.fd = -1};
    if (sandbox_open(&shop->sandbox) != 0)
        return -1;
    shop->redis = sandbox_redis(shop->sandbox, NULL);
    shop->service = shop->redis != NULL ? shop_instance(shop, args) : NULL;
    if (shop->service == NULL)
        return -1;
    shop->client.port = shop->service->port;
    return 0;
}

bool shop_stop(struct sandbox_server *service)
{
    if (service == NULL || !sandbox_alive(service))
        return true;
    int status = sandbox_signal(service, SIGTERM);
    if (status == 0)
        return true;
    fprintf(stderr, "%s ended with wait status 0x%x; its log:\n", service->name, status);
    FILE *log = fopen(service->log, "r");
    for (int c; log != NULL && (c = fgetc(log)) != EOF;)
        fputc(c, stderr);
    if (log != NULL)
        fclose(log);
    return false;
}

void shop_close(struct shop *shop)
{
    client_close(&shop->client);
    sandbox_close(shop->sandbox);
    *shop = (struct shop){.client.fd = -1};
}

bool shop_put(struct shop *shop, const char *path, const char *body)
{
    struct reply *reply = malloc(sizeof *reply);
    int status = reply != NULL ? client_put(&shop->client, path, body, SHOP_WAIT_MS, reply) : 0;
    bool done = status == 200 || status == 201;
    if (!done && reply != NULL)
        fprintf(stderr, "PUT %s: %d %s\n", path, reply->status, reply->body);
    free(reply);
    return done;
}

int shop_post(struct shop *shop, const char *path, const char *key, const char *body,
              struct reply *ret)
{
    return client_call(&shop->client, "POST", path, key, body, SHOP_WAIT_MS, ret);
}

bool shop_audit_ok(int port)
{
    json_t *audit = client_get(port, "/v1/audit");
    bool ok = json_is_true(json_object_get(audit, "ok"));
    if (!ok) {
        char *text = audit != NULL ? json_dumps(audit, JSON_INDENT(1)) : NULL;
        fprintf(stderr, "audit: %s\n", text != NULL ? text : "no answer");
        free(text);
    }
    json_decref(audit);
    return ok;
}
