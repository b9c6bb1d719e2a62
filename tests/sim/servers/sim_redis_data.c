#include "sim_redis_data.h"

#include <stdlib.h>
#include <string.h>

static void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static char *copy_text(const char *text)
{
    return text ? need(strdup(text)) : NULL;
}

struct sim_redis_key *sim_redis_find(struct sim_redis_data *data, const char *name, int64_t now_ms)
{
    for (size_t i = 0; i < data->n; i++) {
        struct sim_redis_key *key = &data->keys[i];
        if (strcmp(key->name, name) != 0)
            continue;
        if (key->until_ms < 0 || key->until_ms >= now_ms)
            return key;
        sim_redis_remove(data, key);
        return NULL;
    }
    return NULL;
}

struct sim_redis_key *sim_redis_make(struct sim_redis_data *data, const char *name,
                                     enum sim_redis_type type)
{
    data->keys = need(realloc(data->keys, (data->n + 1) * sizeof data->keys[0]));
    data->keys[data->n] =
        (struct sim_redis_key){.name = copy_text(name), .type = type, .until_ms = -1};
    return &data->keys[data->n++];
}

static void free_key(const struct sim_redis_key *key)
{
    for (size_t i = 0; i < key->n; i++) {
        free(key->items[i].name);
        free(key->items[i].text);
    }
    free(key->items);
    free(key->name);
}

void sim_redis_remove(struct sim_redis_data *data, const struct sim_redis_key *key)
{
    size_t i = (size_t)(key - data->keys);
    free_key(key);
    data->keys[i] = data->keys[--data->n];
}

void sim_redis_clear(struct sim_redis_data *data)
{
    while (data->n > 0)
        sim_redis_remove(data, &data->keys[data->n - 1]);
}

void sim_redis_copy(struct sim_redis_data *to, const struct sim_redis_data *from)
{
    sim_redis_clear(to);
    for (size_t i = 0; i < from->n; i++) {
        const struct sim_redis_key *key = &from->keys[i];
        struct sim_redis_key *copy = sim_redis_make(to, key->name, key->type);
        copy->until_ms = key->until_ms;
        for (size_t j = 0; j < key->n; j++)
            sim_redis_add(copy, key->items[j].name, key->items[j].text)->score =
                key->items[j].score;
    }
}

struct sim_redis_item *sim_redis_item(const struct sim_redis_key *key, const char *name)
{
    for (size_t i = 0; i < key->n; i++)
        if (strcmp(key->items[i].name, name) == 0)
            return &key->items[i];
    return NULL;
}

struct sim_redis_item *sim_redis_add(struct sim_redis_key *key, const char *name, const char *text)
{
    key->items = need(realloc(key->items, (key->n + 1) * sizeof key->items[0]));
    key->items[key->n] = (struct sim_redis_item){.name = copy_text(name), .text = copy_text(text)};
    return &key->items[key->n++];
}

void sim_redis_set_text(struct sim_redis_item *item, const char *text)
{
    char *copy = copy_text(text);
    free(item->text);
    item->text = copy;
}

void sim_redis_take(struct sim_redis_key *key, size_t i)
{
    free(key->items[i].name);
    free(key->items[i].text);
    memmove(&key->items[i], &key->items[i + 1], (--key->n - i) * sizeof key->items[0]);
}
