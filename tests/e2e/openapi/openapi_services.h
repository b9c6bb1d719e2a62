/* The services that are asked, and the tape that keeps their answers. */
#ifndef TEST_OPENAPI_SERVICES_H
#define TEST_OPENAPI_SERVICES_H

#include "openapi_document.h"
#include "shop.h"
#include "tape.h"

#include <stdio.h>
#include <sys/stat.h>

static struct shop shop;
/* With tokens; without --demo; store and lock server away. */
static struct sandbox_server *guarded, *plain, *postgres, *away;
static struct tape tape;
static char tape_file[SANDBOX_TEXT_MAX + 32];

/* Hashes of the tokens that the test sends. */
static const char token_lines[] =
    "operator ops 119839091550791e10e3afbeadcee388dab8f1965ee4b8fd06500e0ff9c05981\n"
    "buyer u1 b271eb8ca96fddb27bbbfd16a9036e7c64a8ff87f08cd5b34eb0bb69cc26d532\n";

static int open_services(void **state)
{
    char token[SANDBOX_TEXT_MAX + 32], db[SANDBOX_TEXT_MAX + 32];
    (void)state;
    if (shop_open(&shop, (const char *const[]){"--demo", "--wait-ms", "20000", "--queue-max", "128",
                                               "--close-orders-ms", "3600000", NULL}) != 0)
        return -1;
    snprintf(token, sizeof token, "%s/token", sandbox_dir(shop.sandbox));
    FILE *out = fopen(token, "w");
    if (out == NULL || fputs(token_lines, out) < 0 || fclose(out) != 0 || chmod(token, 0600) != 0)
        return -1;
    snprintf(db, sizeof db, "sqlite:%s/guarded.db", sandbox_dir(shop.sandbox));
    const char *const guarded_args[] = {"--redis",  shop.redis->url, "--db", db,
                                        "--tokens", token,           NULL};
    guarded = sandbox_seckilld(shop.sandbox, shop_binary("seckilld"), guarded_args);
    postgres = sandbox_postgres(shop.sandbox, NULL);
    snprintf(db, sizeof db, "sqlite:%s/plain.db", sandbox_dir(shop.sandbox));
    const char *const plain_args[] = {"--redis", shop.redis->url, "--db", db, NULL};
    plain = sandbox_seckilld(shop.sandbox, shop_binary("seckilld"), plain_args);
    if (guarded == NULL || plain == NULL || postgres == NULL)
        return -1;
    const char *const away_args[] = {"--redis",   shop.redis->url, "--db",   postgres->url,
                                     "--wait-ms", "500",           "--demo", NULL};
    away = sandbox_seckilld(shop.sandbox, shop_binary("seckilld"), away_args);
    snprintf(tape_file, sizeof tape_file, "%s/tape", sandbox_dir(shop.sandbox));
    document = json_load_file(DOCUMENT, 0, NULL);
    return away != NULL && document != NULL && tape_open(&tape, tape_file) ? 0 : -1;
}

static int close_services(void **state)
{
    (void)state;
    tape_close(&tape);
    json_decref(document);
    shop_close(&shop);
    return 0;
}

#endif
