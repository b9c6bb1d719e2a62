/* The service built by make LAB=0 sells and contains no code of the lab. */
#include "lab.h"
#include "program.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static struct sandbox *sandbox;
static struct sandbox_server *service;
static char output[SANDBOX_TEXT_MAX + 16];

static int set_up(void **state)
{
    char store[SANDBOX_TEXT_MAX + 32];
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    snprintf(output, sizeof output, "%s/output", sandbox_dir(sandbox));
    snprintf(store, sizeof store, "sqlite:%s/shop.db", sandbox_dir(sandbox));
    service = sandbox_seckilld(sandbox, shop_binary("nolab/seckilld"),
                               (const char *const[]){"--db", store, "--guard", "mutex", NULL});
    return service != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static int ask(const char *method, const char *path, const char *key, const char *body)
{
    static struct reply reply;
    struct client client = {.port = service->port, .fd = -1};
    client_call(&client, method, path, key, body, SHOP_WAIT_MS, &reply);
    client_close(&client);
    return reply.status;
}

/* Runs a program to its end; stdout and stderr go to the file `output`. Returns its exit status. */
static int run(const char *const *argv)
{
    int status;
    assert_true(program_ends(program_start(argv, output, NULL), SHOP_WAIT_MS, &status));
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void read_output(char *ret, size_t size)
{
    FILE *file = fopen(output, "r");
    assert_non_null(file);
    ret[fread(ret, 1, size - 1, file)] = '\0';
    fclose(file);
}

GROUP_FIXTURE(set_up, tear_down);

TEST_THAT(an_order_is_sold)
{
    assert_int_equal(ask("PUT", "/v1/items/1", NULL, "{\"stock\":5}"), 201);
    assert_int_equal(ask("POST", "/v1/items/1/orders", "k1", "{\"user_id\":\"u1\"}"), 201);
    assert_int_equal(client_number(service->port, "/v1/items/1", "stock"), 4);
    assert_true(shop_audit_ok(service->port));
}

TEST_THAT(none_of_the_labs_routes_is_there)
{
    const struct config config = {.lab = true};
    const struct extra_routes *routes = lab_open(&config)->routes;
    assert_true(routes->n >= 10);
    for (size_t i = 0; i < routes->n; i++) {
        const struct extra_route *route = &routes->list[i];
        char path[64];
        const char *brace = strchr(route->path, '{');
        snprintf(path, sizeof path, "%.*s%s",
                 (int)(brace ? brace - route->path : (long)strlen(route->path)), route->path,
                 brace ? "1" : "");
        assert_int_equal(
            ask(route->method, path, NULL, strcmp(route->method, "POST") ? NULL : "{}"), 404);
    }
}

TEST_THAT(lab_is_a_usage_error)
{
    char text[4096];
    const char *const argv[] = {shop_binary("nolab/seckilld"), "--lab", "--check", NULL};
    assert_int_equal(run(argv), 2);
    read_output(text, sizeof text);
    assert_non_null(strstr(text, "built without the hazard lab"));
}

/* Counts the flags of the lab that the program lists. */
static int lab_flags_in_help(const char *program)
{
    char text[16384];
    int n = 0;
    const char *const argv[] = {shop_binary(program), "--help", NULL};
    assert_int_equal(run(argv), 0);
    read_output(text, sizeof text);
    for (const char *at = text; (at = strstr(at, "\n      --lab")) != NULL; at++)
        n++;
    return n;
}

TEST_THAT(help_does_not_offer_the_lab)
{
    assert_int_equal(lab_flags_in_help("nolab/seckilld"), 0);
    assert_true(lab_flags_in_help("seckilld") >= 3);
}

/* main() calls two functions of lab.h; these are all that a program without the lab defines. */
TEST_THAT(no_function_of_the_lab_is_linked)
{
    char command[1024], text[65536];
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    static const char *const programs[] = {"nolab/seckilld", "seckilld"};
    for (int with = 0; with < 2; with++) {
        snprintf(command, sizeof command, "nm %s | grep -E ' [tT] lab_'",
                 shop_binary(programs[with]));
        assert_int_equal(run(argv), 0);
        read_output(text, sizeof text);
        int n = 0;
        for (const char *line = text; (line = strchr(line, '\n')) != NULL; line++)
            n++;
        if (with)
            assert_true(n > 20); /* the search finds the lab's functions where they exist */
        else
            assert_int_equal(n, 2);
    }
}
