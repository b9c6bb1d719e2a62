/* A server for raw requests, and their texts. */
#ifndef TESTS_APP_HTTP_RAW_RIG_H
#define TESTS_APP_HTTP_RAW_RIG_H

#include "http_fixture.h"
#include "http_framing.h"
#include "tests.h"

#define GET  "GET /livez HTTP/1.1\r\n"
#define HOST "Host: t\r\n"
#define POST                                                                                       \
    "POST /v1/items/1/orders HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"            \
    "Idempotency-Key: k1\r\n"
#define BODY "{\"user_id\":\"u1\"}" /* 16 bytes */

static struct fixture fixture;

static int start(void **state)
{
    fixture_defaults(&fixture);
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

#endif
