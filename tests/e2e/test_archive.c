/* "seckilld archive", "audit" and "export --journal" on a store that the service filled, a month of
 * it by a clock that was behind: other auditors accept the books before and after, with the archive
 * and without. */
#include "journal_judges.h"
#include "program.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TEXT = 512, BEHIND_DAYS = 40 };

static struct sandbox *sandbox, *behind;
static struct reply reply;
static char db[TEXT], archive[TEXT], said[TEXT], month[16];

/* An order that is paid; its id is left in ret. */
static void sell(struct client *client, const char *key, const char *user)
{
    char body[64], path[TEXT], payment[64], id[80] = "";
    snprintf(body, sizeof body, "{\"user_id\":\"%s\"}", user);
    snprintf(payment, sizeof payment, "%s-p", key);
    client_call(client, "POST", "/v1/items/1/orders", key, body, SHOP_WAIT_MS, &reply);
    assert_int_equal(reply.status, 201);
    const char *at = strstr(reply.body, "\"order_id\":\"");
    assert_non_null(at);
    assert_int_equal(1, sscanf(at, "\"order_id\":\"%79[^\"]", id));
    snprintf(path, sizeof path, "/v1/orders/%s/payment", id);
    client_call(client, "POST", path, payment, "{}", SHOP_WAIT_MS, &reply);
    assert_int_equal(reply.status, 201);
}

static struct sandbox_server *serve(struct sandbox *in)
{
    const char *const args[] = {"--db", db, "--guard", "mutex", NULL};
    struct sandbox_server *service = sandbox_seckilld(in, shop_binary("seckilld"), args);
    assert_non_null(service);
    return service;
}

static void put(struct client *client, const char *path, const char *body)
{
    assert_int_equal(client_call(client, "PUT", path, NULL, body, SHOP_WAIT_MS, &reply), 201);
}

/* A service whose wall clock is behind. Servers get the environment that there is when their
 * sandbox is opened. */
static struct sandbox_server *serve_behind(void)
{
    char path[TEXT];
    const int64_t us = -BEHIND_DAYS * INT64_C(86400000000);
    snprintf(path, sizeof path, "%s/clock", sandbox_dir(sandbox));
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(1, fwrite(&us, sizeof us, 1, out));
    assert_int_equal(0, fclose(out));
    setenv("CLOCKSHIM_FILE", path, 1);
    setenv("LD_PRELOAD", shop_binary("libclockshim.so"), 1);
    assert_int_equal(0, sandbox_open(&behind));
    struct sandbox_server *service = serve(behind);
    unsetenv("LD_PRELOAD");
    unsetenv("CLOCKSHIM_FILE");
    return service;
}

/* Runs a command of seckilld. Returns its exit status; what it says is in reply.body. */
static int run(const char *command, const char *one, const char *two)
{
    char setting[TEXT + 8];
    int status = -1;
    snprintf(setting, sizeof setting, "--db=%s", db);
    const char *argv[] = {shop_binary("seckilld"), command, setting, one, two, NULL};
    assert_true(program_ends(program_start(argv, said, NULL), SHOP_WAIT_MS, &status));
    FILE *in = fopen(said, "r");
    assert_non_null(in);
    const size_t n = fread(reply.body, 1, sizeof reply.body - 1, in);
    reply.body[n] = '\0';
    fclose(in);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_said(const char *text)
{
    if (strstr(reply.body, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", reply.body, text);
}

static void fill(void)
{
    struct sandbox_server *service = serve_behind();
    struct client client = {.port = service->port, .fd = -1};
    put(&client, "/v1/items/1", "{\"stock\":100,\"price\":30}");
    put(&client, "/v1/accounts/a", "{\"balance\":1000}");
    put(&client, "/v1/accounts/b", "{\"balance\":500}");
    sell(&client, "old-1", "a");
    sell(&client, "old-2", "b");
    client_close(&client);
    assert_true(shop_stop(service));
    service = serve(sandbox);
    client = (struct client){.port = service->port, .fd = -1};
    sell(&client, "new-1", "a");
    client_close(&client);
    assert_true(shop_stop(service));
}

/* With the archive, too: what the file of the journal has. */
static void expect_whole_journal(void)
{
    char given[TEXT + 16], path[TEXT + 16];
    int status;
    snprintf(given, sizeof given, "--archive=%s", archive);
    assert_int_equal(0, run("export", "--journal", given));
    expect_said("\"reset\"");
    assert_null(strstr(reply.body, "\"carried\""));
    snprintf(path, sizeof path, "%s.beancount", said);
    assert_int_equal(0, rename(said, path));
    const char *const hledger[] = {"/usr/bin/hledger", "-f", path, "check", NULL};
    const char *const beancount[] = {"/usr/bin/bean-check", "--no-cache", path, NULL};
    assert_true(program_ends(program_start(hledger, said, NULL), SHOP_WAIT_MS, &status));
    assert_int_equal(0, status);
    assert_true(program_ends(program_start(beancount, said, NULL), SHOP_WAIT_MS, &status));
    assert_int_equal(0, status);
}

TEST_THAT(books_are_accepted_before_and_after)
{
    char given[TEXT + 16], before[32];
    snprintf(given, sizeof given, "--archive=%s", archive);
    snprintf(before, sizeof before, "--before=%s", month);
    fill();
    assert_true(journal_accepted(db, sandbox_dir(sandbox)));
    assert_int_equal(0, run("archive", before, archive));
    expect_said(
        "11 rows from before"); /* three resets, two orders; each movement of money has two */
    assert_int_equal(0, run("archive", before, archive));
    expect_said("nothing to move");
    assert_true(journal_accepted(db, sandbox_dir(sandbox)));
    expect_whole_journal();
    assert_int_equal(0, run("audit", NULL, NULL));
    expect_said("ok");
    assert_int_equal(0, run("audit", given, NULL));
    expect_said("faults: 0");
}

TEST_THAT(a_key_of_a_moved_order_never_acts_again)
{
    struct sandbox_server *service = serve(sandbox);
    struct client client = {.port = service->port, .fd = -1};
    client_call(&client, "POST", "/v1/items/1/orders", "old-1", "{\"user_id\":\"a\"}", SHOP_WAIT_MS,
                &reply);
    assert_int_equal(reply.status, 201);
    assert_true(reply.replayed);
    assert_int_equal(97, client_number(service->port, "/v1/items/1", "stock"));
    client_close(&client);
    assert_true(shop_stop(service));
}

TEST_THAT(what_is_asked_wrongly_changes_nothing)
{
    static const char *const wrong[] = {"--before=2099-01", "--before=20261", "--before=2026-13",
                                        "--before=2026-1-"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(2, run("archive", wrong[i], archive));
    assert_int_equal(2, run("archive", archive, NULL));
    assert_int_equal(1, run("audit", "--archive=/nowhere/archive.db", NULL));
}

static int open_sandbox(void **state)
{
    const time_t now = time(NULL);
    struct tm today;
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    gmtime_r(&now, &today);
    strftime(month, sizeof month, "%Y-%m", &today);
    snprintf(db, sizeof db, "sqlite:%s/store.db", sandbox_dir(sandbox));
    snprintf(archive, sizeof archive, "%s/archive.db", sandbox_dir(sandbox));
    snprintf(said, sizeof said, "%s/said", sandbox_dir(sandbox));
    return 0;
}

static int close_sandbox(void **state)
{
    (void)state;
    sandbox_close(behind);
    sandbox_close(sandbox);
    return 0;
}

GROUP_FIXTURE(open_sandbox, close_sandbox);
