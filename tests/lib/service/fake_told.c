/* The fake service's answers to GET, true or false as the defects say: audit, ledger rows, values.
 */
#include "fake_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If the lie is about this kind of object, adds 1 to the member that it names. */
static void lie_about(const struct fake_service *service, const char *kind, json_t *object)
{
    const char *lie = service->options.defects.lie;
    if (lie == NULL || strncmp(lie, kind, strlen(kind)) != 0)
        return;
    const char *name = lie + strlen(kind);
    json_t *value = json_object_get(object, name);
    if (json_is_integer(value))
        json_object_set_new(object, name, json_integer(json_integer_value(value) + 1));
    else if (json_is_string(value))
        json_object_set_new(object, name, json_string("somebody-else-0"));
}

/* Makes the row that of an audit without findings. */
static void cleanse(json_t *row, const struct resource *resource)
{
    static const char *const breaches[] = {"oversold",   "lost_updates", "lost_amount",
                                           "duplicates", "negative",     "broken"};
    for (size_t i = 0; i < sizeof breaches / sizeof *breaches; i++)
        json_object_set_new(row, breaches[i], json_integer(0));
    json_object_set_new(row, "forks", json_array());
    json_object_set_new(row, "ledger_sum", json_integer(resource->current - resource->initial));
}

/* Returns a new list of the rows, numbered again. */
static json_t *told_ledger(const struct fake_service *service)
{
    const struct fake_defects *defects = &service->options.defects;
    const char *lie = defects->lie == NULL ? "" : defects->lie;
    size_t nth = defects->lie_nth > 0 ? (size_t)defects->lie_nth : 3, i;
    json_t *told = json_array(), *row;
    json_array_foreach(service->ledger, i, row)
    {
        json_t *copy = json_copy(row);
        bool chosen = i + 1 == nth;
        if (defects->hides_excess && json_integer_value(json_object_get(row, "after")) < 0) {
            json_decref(copy);
            continue;
        }
        if (chosen && strcmp(lie, "row.twice") == 0)
            json_array_append_new(told, json_copy(row));
        if (chosen && strcmp(lie, "row.added") == 0) {
            json_t *added = json_copy(row);
            json_object_set_new(added, "txn_id", json_string("somebody-else-0"));
            json_array_append_new(told, added);
        }
        if (chosen)
            lie_about(service, "row.", copy);
        if (chosen && strcmp(lie, "row.missing") == 0)
            json_decref(copy);
        else
            json_array_append_new(told, copy);
    }
    json_array_foreach(told, i, row)
    {
        json_object_set_new(row, "id", json_integer((json_int_t)i + 1));
    }
    return told;
}

void fake_tell_ledger(struct fake_service *service, const char *query, struct toy_reply *reply)
{
    json_t *told = told_ledger(service), *rows = json_array(), *row;
    const long long last = (long long)json_array_size(told);
    const int held = service->options.defects.held_row;
    const char *from = strstr(query, "after="), *at_most = strstr(query, "limit=");
    const long long limit = at_most != NULL ? atoll(at_most + strlen("limit=")) : 100;
    long long after = from != NULL ? atoll(from + strlen("after=")) : 0;
    if (strstr(query, "after=end") != NULL)
        after = last;
    long long end = after;
    size_t i;
    json_array_foreach(told, i, row)
    {
        bool shown = held == 0 || (long long)i + 1 < held;
        if (shown && (long long)i >= after && (long long)i - after < limit) {
            json_array_append(rows, row);
            end = (long long)i + 1;
        }
    }
    char next[24];
    snprintf(next, sizeof next, "%lld", end);
    json_t *answer = json_pack("{so ss sb}", "rows", rows, "next", next, "more", end < last);
    char *text = json_dumps(answer, 0);
    fake_answer(service, reply, 200, text);
    free(text);
    json_decref(answer);
    json_decref(told);
}

void fake_tell_value(struct fake_service *service, const char *kind, const char *id,
                     const char *text, struct toy_reply *reply)
{
    (void)text;
    const struct resource *resource = fake_find(service, kind, id, false);
    bool is_item = strcmp(kind, "item") == 0;
    if (resource == NULL) {
        fake_answer(service, reply, 404, "{}");
        return;
    }
    json_int_t sold = service->options.defects.hides_excess && resource->sold > resource->initial
                          ? resource->initial
                          : resource->sold;
    json_t *shown = json_pack("{sI sI sI}", is_item ? "stock" : "balance", resource->current,
                              "version", resource->version, "sold", sold);
    if (service->options.defects.hides_excess && resource->current < 0) {
        json_object_set_new(shown, "stock", json_integer(0));
        json_object_set_new(shown, "version", json_integer(resource->version + resource->current));
    }
    lie_about(service, "shown.", shown);
    char *dump = json_dumps(shown, 0);
    fake_answer(service, reply, 200, dump);
    free(dump);
    json_decref(shown);
}

static json_t *audit_of(const struct fake_service *service, const struct resource *resource)
{
    int64_t lost = resource->initial + resource->ledger_sum - resource->current;
    int64_t over = resource->sold - resource->initial;
    bool is_item = strncmp(resource->name, "item:", 5) == 0;
    struct resource told = *resource;
    if (service->options.defects.hides_excess && told.current < 0) {
        told.sold += told.current;
        told.ledger_sum -= told.current;
        told.current = 0;
        over = 0;
        resource = &told;
        lost = 0;
    }
    json_t *row = json_pack(
        "{ss sI sI sI sI sI sI sI sI sI sI sI sO}", "resource", resource->name, "initial",
        resource->initial, "current", resource->current, "ledger_sum", resource->ledger_sum, "sold",
        resource->sold, "restocked", (json_int_t)0, "oversold",
        is_item && over > 0 ? over : (json_int_t)0, "lost_updates", resource->lost_updates,
        "lost_amount", llabs(lost), "duplicates", resource->duplicates, "negative",
        (json_int_t)(resource->current < 0), "broken", (json_int_t)0, "forks", resource->forks);
    if (service->options.defects.bad_audit)
        json_object_del(row, "lost_updates");
    if (service->options.defects.clean_audit)
        cleanse(row, resource);
    lie_about(service, "audit.", row);
    return row;
}

static int by_name(const void *a, const void *b)
{
    const struct resource *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

void fake_tell_audit(struct fake_service *service, const char *name, struct toy_reply *reply)
{
    json_t *rows = json_array();
    const struct resource *sorted[RESOURCES_MAX];
    for (int i = 0; i < service->n_resources; i++)
        sorted[i] = &service->resources[i];
    qsort(sorted, (size_t)service->n_resources, sizeof *sorted, by_name);
    for (int i = 0; i < service->n_resources; i++)
        if (name == NULL || strcmp(sorted[i]->name, name) == 0)
            json_array_append_new(rows, audit_of(service, sorted[i]));
    json_t *answer = json_pack("{sb so}", "ok", 1, "resources", rows);
    char *text = json_dumps(answer, 0);
    fake_answer(service, reply, 200, text);
    free(text);
    json_decref(answer);
}
