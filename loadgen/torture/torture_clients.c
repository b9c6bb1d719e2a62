#include "torture_clients.h"
#include "splitmix.h"
#include "steady.h"
#include "torture_books.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 2000, RETRY_MS = 40, AGAIN_IN = 12 };

/* -- one question ------------------------------------------------------------------------------ */

/* Keeps the id of an own order, for a payment or a cancellation. */
static void note_order(struct torture_client *client, const char *path, const json_t *answer)
{
    const char *id = json_string_value(json_object_get(answer, "order_id"));
    if (id == NULL || strstr(path, "/v1/items/") == NULL)
        return;
    snprintf(client->orders[client->n_orders % TORTURE_ORDERS_KEPT], sizeof client->orders[0], "%s",
             id);
    client->n_orders++;
}

/* One attempt. True: it is decided. */
static bool attempt(struct torture_client *client, const char *method, const char *path,
                    const char *key, const char *body)
{
    struct torture_clients *all = client->all;
    uint32_t at = torture_below(&client->random, all->is->instances);
    char headers[96] = "", *answer = NULL;
    bool post = strcmp(method, "POST") == 0;
    if (post)
        snprintf(headers, sizeof headers, "Idempotency-Key: %s\r\n", key);
    history_invoke(all->books, key, path, body);
    history_hand_over(all->books);
    int status = load_fetch_until(&all->stop, &all->targets[at], method, path, headers, body,
                                  PATIENCE_MS + all->is->wait_ms, &answer);
    const char *text = answer != NULL ? answer : "";
    history_complete(all->books, key,
                     &(struct load_answer){.end = status > 0 ? LOAD_ANSWERED : LOAD_BROKEN,
                                           .status = status,
                                           .body = text});
    json_t *json = status > 0 ? json_loads(text, 0, NULL) : NULL;
    const char *type = json_string_value(json_object_get(json, "type"));
    bool decided = status > 0 && torture_is_decided(status, type != NULL ? type : "");
    if (decided && post)
        note_order(client, path, json);
    if (!decided)
        atomic_fetch_add(&all->unknown, 1);
    else if (status < 300)
        atomic_fetch_add(&all->accepted, 1);
    else
        atomic_fetch_add(&all->refused, 1);
    json_decref(json);
    free(answer);
    return decided;
}

static bool may_go_on(const struct torture_client *client)
{
    return atomic_load(&client->all->phase) != TORTURE_NO_MORE;
}

/* Asks until it is decided. */
static void ask(struct torture_client *client, const char *path, const char *key, const char *body)
{
    while (may_go_on(client) && !attempt(client, "POST", path, key, body))
        steady_sleep_ms(1 + torture_below(&client->random, RETRY_MS));
    if (key != client->last_key) {
        snprintf(client->last_key, sizeof client->last_key, "%s", key);
        snprintf(client->last_path, sizeof client->last_path, "%s", path);
        snprintf(client->last_body, sizeof client->last_body, "%s", body);
    }
}

static void new_key(struct torture_client *client, const char *kind, char ret[48])
{
    snprintf(ret, 48, "%s-%u-%llu", kind, client->index, (unsigned long long)client->keys++);
}

/* -- what they want ---------------------------------------------------------------------------- */

static void order(struct torture_client *client, uint32_t item)
{
    char key[48], path[128], body[128];
    new_key(client, "order", key);
    snprintf(path, sizeof path, "/v1/items/i%u/orders", item);
    snprintf(body, sizeof body, "{\"user_id\":\"u%u\",\"quantity\":%u}",
             torture_below(&client->random, client->all->is->accounts),
             1 + torture_below(&client->random, 3));
    ask(client, path, key, body);
}

static void change(struct torture_client *client, uint32_t account)
{
    char key[48], path[128], body[128];
    new_key(client, "change", key);
    snprintf(path, sizeof path, "/v1/accounts/u%u/transactions", account);
    snprintf(body, sizeof body, "{\"amount\":%d,\"reason\":\"torture\"}",
             1 + (int)torture_below(&client->random, 200) -
                 (torture_below(&client->random, 2) == 0 ? 201 : 0));
    ask(client, path, key, body);
}

static void transfer(struct torture_client *client)
{
    char key[48], body[128];
    uint32_t n = client->all->is->accounts, from = torture_below(&client->random, n);
    new_key(client, "move", key);
    snprintf(body, sizeof body, "{\"from\":\"u%u\",\"to\":\"u%u\",\"amount\":%u}", from,
             (from + 1 + torture_below(&client->random, n - 1)) % n,
             1 + torture_below(&client->random, 100));
    ask(client, "/v1/transfers", key, body);
}

static void finish_order(struct torture_client *client, const char *how)
{
    char key[48], path[128];
    uint32_t kept = client->n_orders < TORTURE_ORDERS_KEPT ? client->n_orders : TORTURE_ORDERS_KEPT;
    if (kept == 0)
        return;
    new_key(client, how, key);
    snprintf(path, sizeof path, "/v1/orders/%s/%s",
             client->orders[torture_below(&client->random, kept)], how);
    ask(client, path, key, "{}");
}

static void look(struct torture_client *client)
{
    char key[48], path[128];
    const struct torture_settings *is = client->all->is;
    bool item = torture_below(&client->random, 2) == 0;
    new_key(client, "look", key);
    snprintf(path, sizeof path, item ? "/v1/items/i%u" : "/v1/accounts/u%u",
             torture_below(&client->random, item ? is->items : is->accounts));
    attempt(client, "GET", path, key, NULL);
}

static void want_something(struct torture_client *client)
{
    const struct torture_settings *is = client->all->is;
    uint32_t chance = torture_below(&client->random, 100);
    if (torture_below(&client->random, AGAIN_IN) == 0 && client->last_key[0] != '\0')
        ask(client, client->last_path, client->last_key, client->last_body);
    else if (chance < 45)
        order(client, torture_below(&client->random, is->items));
    else if (chance < 65)
        change(client, torture_below(&client->random, is->accounts));
    else if (chance < 77)
        transfer(client);
    else if (chance < 85)
        finish_order(client, "payment");
    else if (chance < 93)
        finish_order(client, "cancellation");
    else
        look(client);
    if (is->think_ms > 0)
        steady_sleep_ms(torture_below(&client->random, is->think_ms + 1));
}

static void *live(void *arg)
{
    struct torture_client *client = arg;
    const struct torture_settings *is = client->all->is;
    while (atomic_load(&client->all->phase) == TORTURE_STRIKES)
        want_something(client);
    for (uint32_t i = 0; i < is->items && may_go_on(client); i++)
        order(client, i);
    for (uint32_t i = 0; i < is->accounts && may_go_on(client); i++)
        change(client, i);
    atomic_fetch_sub(&client->all->busy, 1);
    return NULL;
}

int torture_clients_start(struct torture_clients *clients, uint64_t seed)
{
    atomic_store(&clients->phase, TORTURE_STRIKES);
    for (clients->n = 0; clients->n < clients->is->clients; clients->n++) {
        struct torture_client *client = &clients->clients[clients->n];
        *client = (struct torture_client){
            .all = clients, .index = clients->n, .random = splitmix(seed ^ (clients->n + 1))};
        atomic_fetch_add(&clients->busy, 1);
        if (pthread_create(&client->thread, NULL, live, client) != 0) {
            atomic_fetch_sub(&clients->busy, 1);
            return -1;
        }
    }
    return 0;
}

void torture_clients_join(struct torture_clients *clients)
{
    atomic_store(&clients->phase, TORTURE_NO_MORE);
    atomic_store(&clients->stop, true);
    for (uint32_t i = 0; i < clients->n; i++)
        pthread_join(clients->clients[i].thread, NULL);
}
