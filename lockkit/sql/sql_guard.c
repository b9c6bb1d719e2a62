#include "sql_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one row of an answer, or none. */
struct answer {
    bool found;
    int64_t number;
};

static int take_answer(void *arg, const lk_sql_row *row)
{
    *(struct answer *)arg = (struct answer){.found = true, .number = row->number[0]};
    return 1;
}

static lk_status ask(lk_sql_guard *guard, int statement, struct answer *ret, const char *key,
                     const char *token, int64_t number)
{
    *ret = (struct answer){.found = false};
    return lk_sql_run(guard->sql, statement,
                      (lk_sql_arg[]){{.text = key}, {.text = token}, {.number = number}},
                      take_answer, ret);
}

/* LK_LOST when the statement found no row that is the token's. */
static lk_status ask_own(lk_sql_guard *guard, int statement, const lk_hold *hold, int64_t number)
{
    struct answer answer;
    lk_status status = ask(guard, statement, &answer, hold->key, hold->token, number);
    return status == LK_OK && !answer.found ? LK_LOST : status;
}

/* -- acquiring -------------------------------------------------------------------------------- */

lk_status lk_sql_guard_try(void *self, lk_attempt *attempt)
{
    lk_sql_guard *guard = self;
    lk_hold *hold = attempt->hold;
    struct answer answer;
    lk_make_token_unique(&guard->n_tokens, hold);
    lk_status status = ask(guard, LK_SQL_ACQUIRE, &answer, hold->key, hold->token, hold->lease_ms);
    if (status != LK_OK)
        return status;
    if (!answer.found)
        return LK_BUSY;
    hold->fence = (uint64_t)answer.number;
    return LK_OK;
}

/* A row is found once and for all: each token is written once. Where none is found, the attempt
 * that would write it may still wait in the server, unless that is settled. */
lk_status lk_sql_guard_release(void *self, lk_hold *hold)
{
    lk_sql_guard *guard = self;
    struct answer answer;
    lk_status settled = lk_sql_settle(guard->sql, LK_SQL_END);
    lk_status status = ask(guard, LK_SQL_RELEASE, &answer, hold->key, hold->token, 0);
    if (status == LK_OK && !answer.found)
        return settled == LK_OK ? LK_LOST : settled;
    return status == LK_OK && answer.number != 1 ? LK_LOST : status;
}

lk_status lk_sql_guard_renew(void *self, lk_hold *hold, int64_t lease_ms)
{
    return ask_own(self, LK_SQL_RENEW, hold, lease_ms);
}

lk_status lk_sql_guard_raise_fence(void *self, const char *key, uint64_t seen)
{
    lk_sql_guard *guard = self;
    if (seen > LK_SQL_FENCE_MAX)
        return LK_INVALID;
    return lk_sql_run(guard->sql, LK_SQL_RAISE,
                      (lk_sql_arg[]){{.text = key}, {.number = (int64_t)seen}}, NULL, NULL);
}

/* -- from outside ----------------------------------------------------------------------------- */

lk_status lk_sql_guard_confirm(void *self, const lk_hold *hold)
{
    return ask_own(self, LK_SQL_CONFIRM, hold, 0);
}

static void fill_info(lk_lock_info *info, const lk_sql_row *row)
{
    snprintf(info->key, sizeof info->key, "%s", row->text[0]);
    snprintf(info->token, sizeof info->token, "%s", row->text[1]);
    info->holders = info->token[0] != '\0';
    info->left_ms = row->number[2] < 0 ? INT64_MAX : row->number[2];
    info->fence = (uint64_t)row->number[3];
}

static int take_info(void *arg, const lk_sql_row *row)
{
    fill_info(arg, row);
    return 1;
}

lk_status lk_sql_guard_inspect(void *self, const char *key, lk_lock_info *ret)
{
    lk_sql_guard *guard = self;
    return lk_sql_run(guard->sql, LK_SQL_INSPECT, (lk_sql_arg[]){{.text = key}}, take_info, ret);
}

struct listing {
    int (*each)(void *arg, const lk_lock_info *info);
    void *arg;
};

static int list_one(void *arg, const lk_sql_row *row)
{
    struct listing *listing = arg;
    lk_lock_info info = {.left_ms = INT64_MAX};
    fill_info(&info, row);
    return listing->each(listing->arg, &info);
}

lk_status lk_sql_guard_list(void *self, const char *prefix,
                            int (*each)(void *arg, const lk_lock_info *info), void *arg)
{
    lk_sql_guard *guard = self;
    struct listing listing = {.each = each, .arg = arg};
    return lk_sql_run(guard->sql, LK_SQL_LIST, (lk_sql_arg[]){{.text = prefix}}, list_one,
                      &listing);
}

lk_status lk_sql_guard_force_release(void *self, const char *key)
{
    struct answer answer;
    lk_status status = ask(self, LK_SQL_FORCE, &answer, key, "", 0);
    return status == LK_OK && !answer.found ? LK_LOST : status;
}

lk_status lk_sql_guard_ping(void *self)
{
    lk_sql_guard *guard = self;
    return lk_sql_run(guard->sql, LK_SQL_PING, NULL, NULL, NULL);
}

/* -- opening ---------------------------------------------------------------------------------- */

lk_status lk_sql_guard_open(const lk_context *context, const lk_sql_set *set, void **ret_self,
                            lk_error *error)
{
    lk_sql_guard *guard = calloc(1, sizeof *guard);
    if (guard == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a SQL guard");
    lk_status status = lk_sql_open(context, set, &guard->sql, error);
    if (status != LK_OK)
        free(guard);
    else
        *ret_self = guard;
    return status;
}

void lk_sql_guard_close(void *self)
{
    lk_sql_guard *guard = self;
    lk_sql_close(guard->sql);
    free(guard);
}
