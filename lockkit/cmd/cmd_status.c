/* lockkit status: who holds what. */
#include "cmd.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_PREFIX = 256, KEY_JSON, MS_PER_S = 1000, LEFT_MAX = 32 };

struct plan {
    struct cmd_target target;
    struct cmd_keys keys;
    const char *prefix;
    bool json;
};

struct locks {
    lk_lock_info *at;
    size_t n, room;
    bool full;    /* no memory for more */
    bool permits; /* the guard's holders share a key by their number */
};

static int add(void *arg, const lk_lock_info *info)
{
    struct locks *locks = arg;
    if (locks->n == locks->room) {
        size_t room = locks->room > 0 ? 2 * locks->room : 64;
        lk_lock_info *at = realloc(locks->at, room * sizeof *at);
        if (at == NULL) {
            locks->full = true;
            return 1;
        }
        locks->at = at;
        locks->room = room;
    }
    locks->at[locks->n++] = *info;
    return 0;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const lk_lock_info *)a)->key, ((const lk_lock_info *)b)->key);
}

/* A server may tell of a key twice. */
static void sort_and_unite(struct locks *locks)
{
    if (locks->n == 0)
        return;
    qsort(locks->at, locks->n, sizeof *locks->at, by_key);
    size_t kept = 1;
    for (size_t i = 1; i < locks->n; i++)
        if (strcmp(locks->at[i].key, locks->at[kept - 1].key) != 0)
            locks->at[kept++] = locks->at[i];
    locks->n = kept;
}

/* -- showing ---------------------------------------------------------------------------------- */

static const char *mode_of(const struct locks *locks, const lk_lock_info *info)
{
    return info->holders == 0        ? "free"
           : locks->permits          ? "permits"
           : info->mode == LK_SHARED ? "shared"
                                     : "exclusive";
}

static const char *left_of(char ret[LEFT_MAX], const lk_lock_info *info)
{
    if (info->holders == 0 || info->left_ms == INT64_MAX)
        snprintf(ret, LEFT_MAX, "-");
    else
        snprintf(ret, LEFT_MAX, "%" PRId64 ".%" PRId64 " s", info->left_ms / MS_PER_S,
                 info->left_ms % MS_PER_S / 100);
    return ret;
}

static void print_table(const struct locks *locks)
{
    int width = (int)strlen("key");
    char left[LEFT_MAX];
    for (size_t i = 0; i < locks->n; i++)
        if ((int)strlen(locks->at[i].key) > width)
            width = (int)strlen(locks->at[i].key);
    printf("%-*s  %-9s %7s %10s %16s %7s  %s\n", width, "key", "mode", "holders", "left", "fence",
           "waiters", "token");
    for (size_t i = 0; i < locks->n; i++) {
        const lk_lock_info *info = &locks->at[i];
        printf("%-*s  %-9s %7" PRIu32 " %10s %16" PRIu64 " %7" PRIu32 "  %s\n", width, info->key,
               mode_of(locks, info), info->holders, left_of(left, info), info->fence, info->waiters,
               info->token[0] != '\0' ? info->token : "-");
    }
}

static json_t *json_of(const struct locks *locks, const lk_lock_info *info)
{
    bool ends = info->holders > 0 && info->left_ms != INT64_MAX;
    return json_pack("{s:s,s:s,s:I,s:o,s:I,s:I,s:s}", "key", info->key, "mode",
                     mode_of(locks, info), "holders", (json_int_t)info->holders, "left_ms",
                     ends ? json_integer(info->left_ms) : json_null(), "fence",
                     (json_int_t)info->fence, "waiters", (json_int_t)info->waiters, "token",
                     info->token);
}

static void print_json(const struct plan *plan, const struct locks *locks)
{
    json_t *list = json_array();
    for (size_t i = 0; i < locks->n; i++)
        json_array_append_new(list, json_of(locks, &locks->at[i]));
    json_t *all = json_pack("{s:s,s:o}", "guard", plan->target.guard, "locks", list);
    json_dumpf(all, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(all);
}

/* -- asking ----------------------------------------------------------------------------------- */

static lk_status look(lk_client *client, const struct plan *plan, struct locks *locks,
                      const char **ret_what)
{
    *ret_what = "the locks held";
    if (plan->keys.n == 0)
        return lk_list(client, plan->prefix, add, locks);
    for (size_t i = 0; i < plan->keys.n; i++) {
        lk_lock_info info;
        lk_status status = lk_inspect(client, plan->keys.at[i], &info);
        *ret_what = plan->keys.at[i];
        if (status != LK_OK)
            return status;
        add(locks, &info);
    }
    return LK_OK;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct plan *plan = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &plan->target;
        return 0;
    case KEY_PREFIX:
        plan->prefix = arg;
        return 0;
    case KEY_JSON:
        plan->json = true;
        return 0;
    case ARGP_KEY_ARG:
        cmd_add_key(state, &plan->keys, arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option own_options[] = {
    {NULL, 0, NULL, 0, "What to show:", 2},
    {"prefix", KEY_PREFIX, "P", 0, "Keys that begin so and are held (default lock:)", 2},
    {"json", KEY_JSON, NULL, 0, "As JSON", 2},
    {0}};

static const struct argp_child children[] = {{&cmd_target_argp, 0, NULL, 0}, {0}};

static const struct argp status_argp = {
    .options = own_options,
    .parser = parse,
    .args_doc = "[KEY...]",
    .doc = "Shows the locks named, held or free, or all that are held now.\v"
           "Examples:\n"
           "  lockkit status\n"
           "  lockkit status -g redis-readwrite lock:catalogue\n"
           "  lockkit status --prefix lock:account: --json\n"
           "\nExit status: 0, 64 usage, 69 the lock server is away, 70 other failures.",
    .children = children};

int cmd_status(int argc, char **argv)
{
    struct plan plan = {.keys.max = CMD_KEYS_MAX, .prefix = "lock:"};
    struct locks locks = {0};
    const char *what;
    cmd_parse(&status_argp, argc, argv, &plan);
    lk_client *client = cmd_open(&plan.target, NULL);
    lk_status status = look(client, &plan, &locks, &what);
    int result = CMD_OK;
    locks.permits = lk_client_provider(client)->caps & LK_CAP_PERMITS;
    if (locks.full) {
        result = cmd_fail(what, LK_NO_MEMORY);
    } else if (status != LK_OK) {
        result = cmd_fail_at(client, what, status);
    } else {
        if (plan.keys.n == 0)
            sort_and_unite(&locks);
        if (plan.json)
            print_json(&plan, &locks);
        else
            print_table(&locks);
    }
    lk_close(client);
    free(locks.at);
    return result;
}
