/*
 * Several locks at once. One order for all callers makes a circle of waiters impossible: the
 * ordered-resource rule (Havender, «Avoiding deadlock in multitasking systems», IBM Systems
 * Journal 7/2, 1968).
 */
#include "client.h"

#include <string.h>

static lk_client *client_of(lk_client *client, const lk_request *request)
{
    return client ? client : request->client;
}

/* Fills order[] with the indices of requests by ascending key; false if two keys are equal. */
static bool sort_by_key(const lk_request *requests, size_t n, size_t *order)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0; at--) {
            int compared = strcmp(requests[order[at - 1]].key, requests[i].key);
            if (compared == 0)
                return false;
            if (compared < 0)
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    return true;
}

static lk_status check_all(lk_client *client, const lk_request *requests, size_t n, size_t *order)
{
    if (n < 1 || n > LK_MANY_MAX)
        return LK_INVALID;
    for (size_t i = 0; i < n; i++) {
        lk_status status = core_check(client_of(client, &requests[i]), &requests[i]);
        if (status != LK_OK)
            return status;
    }
    return sort_by_key(requests, n, order) ? LK_OK : LK_INVALID;
}

/* The leases of the first locks ran during the wait for the later ones. */
static bool all_held(const lk_hold *holds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lk_check(&holds[i], NULL) != LK_OK)
            return false;
    return true;
}

lk_status lk_acquire_many(lk_client *client, const lk_request *requests, size_t n, lk_hold *holds)
{
    size_t order[LK_MANY_MAX], granted = 0;
    lk_status status = check_all(client, requests, n, order);
    for (size_t i = 0; i < n; i++)
        hold_set_state(&holds[i], HOLD_NONE);
    if (status != LK_OK)
        return status;
    lk_client *first = client_of(client, &requests[0]);
    int64_t deadline_us = core_deadline_us(first, requests[0].wait_ms);
    for (; granted < n; granted++) {
        const lk_request *request = &requests[order[granted]];
        /* wait_ms 0 means one attempt each; otherwise no key is begun after the deadline. */
        if (granted > 0 && requests[0].wait_ms > 0 && client_now_us(first) >= deadline_us) {
            status = LK_TIMEOUT;
            break;
        }
        status =
            core_acquire(client_of(client, request), request, deadline_us, &holds[order[granted]]);
        if (status != LK_OK)
            break;
    }
    if (status == LK_OK && !all_held(holds, n))
        status = LK_TIMEOUT;
    if (status != LK_OK)
        while (granted > 0)
            lk_release(&holds[order[--granted]]);
    return status;
}
