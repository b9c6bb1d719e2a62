#include "redis_link.h"
#include "sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool link_open_for(struct link *link, const char *url, int64_t timeout_ms)
{
    *link = (struct link){.options = {.command_timeout_ms = timeout_ms}};
    snprintf(link->url, sizeof link->url, "%s", url);
    link->context = (lk_context){.env = lk_env_system(),
                                 .options = &link->options,
                                 .endpoints = link->url,
                                 .commands = &link->commands};
    lk_error error;
    if (lk_redis_open(&link->context, &link->redis, &error) == LK_OK)
        return true;
    fprintf(stderr, "%s: %s\n", url, error.message);
    return false;
}

bool link_open(struct link *link, const char *url)
{
    return link_open_for(link, url, LINK_TIMEOUT_MS);
}

bool link_open_port(struct link *link, int port)
{
    char url[64];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", port);
    return link_open(link, url);
}

bool link_open_stranger(struct link *link, const char *url)
{
    unsetenv(LK_REDIS_LOGIN);
    bool opened = link_open(link, url);
    return setenv(LK_REDIS_LOGIN, sandbox_password(), 1) == 0 && opened;
}

void link_close(struct link *link)
{
    lk_redis_close(link->redis);
}

bool link_echoes(struct link *link, const char *text, lk_status *ret_status)
{
    lk_redis_reply reply;
    *ret_status = lk_redis_command(link->redis, &reply, "ECHO", text);
    return *ret_status != LK_OK ||
           (reply.root.type == REDIS_REPLY_STRING && strcmp(reply.root.text, text) == 0);
}
