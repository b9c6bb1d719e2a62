#include "exactness.h"
#include "shop_client.h"
#include "process.h"
#include "program.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INSTANCES = 2,
    GUARD_NAME_MAX = 32,
    GUARDS_MAX = 32,
    ENDS_WITHIN_MS = 400000,
    ANSWER_WITHIN_MS = 20000
};
enum { SALES_MAX = 10 /* tried until one without a guard oversells */ };

static const struct exactness *exactness;
static struct sandbox *sandbox;
static struct all_servers servers;
static struct sandbox_server *instances[INSTANCES];
static char urls[2 * SANDBOX_TEXT_MAX], report_file[SANDBOX_TEXT_MAX + 16];
static char guards[GUARDS_MAX][GUARD_NAME_MAX];
static size_t n_guards;

static int open_all(void **state)
{
    (void)state;
    n_guards = 0;
    if (sandbox_open(&sandbox) != 0 || (!exactness->only && !all_servers_open(sandbox, &servers)))
        return -1;
    snprintf(report_file, sizeof report_file, "%s/report.json", sandbox_dir(sandbox));
    for (int i = 0; i < INSTANCES; i++) {
        const char *more[ALL_ARGS_MAX + 1], *args[ALL_ARGS_MAX + 1];
        const char *const own[] = {
            "--instance", i == 0 ? "one" : "two", "--lanes", "off", "--wait-ms", "20000"};
        size_t n = 0;
        exactness->store(sandbox, &servers, more);
        while (more[n])
            n++;
        for (size_t j = 0; j < sizeof own / sizeof own[0]; j++)
            more[n++] = own[j];
        more[n] = NULL;
        if (!exactness->only)
            all_servers_args(&servers, more, args);
        instances[i] =
            sandbox_seckilld(sandbox, shop_binary("seckilld"), exactness->only ? more : args);
        if (!instances[i])
            return -1;
    }
    snprintf(urls, sizeof urls, "%s,%s", instances[0]->url, instances[1]->url);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

/* -- the load generator ------------------------------------------------------------------------ */

/* Runs a workload and returns the report's only run. *ret_report is to be released with
 * json_decref(). */
static json_t *load(const char *workload, const char *guard, json_t **ret_report)
{
    char requests[16];
    int64_t size = test_size(160, 2000);
    if (strcmp(workload, "sale") == 0)
        size *= 2; /* more than half of them are refused, which is quick */
    snprintf(requests, sizeof requests, "%d", (int)size);
    const char *const argv[] = {shop_binary("loadgen"),
                                workload,
                                "--url",
                                urls,
                                "--guards",
                                guard,
                                "--requests",
                                requests,
                                "--buyers",
                                requests,
                                "--stock",
                                "100",
                                "--accounts",
                                "3",
                                "--connections",
                                "16",
                                "--timeout-ms",
                                "30000",
                                "--json",
                                report_file,
                                "--quiet",
                                NULL};
    int status;
    remove(report_file);
    if (!program_ends(program_start(argv, NULL, NULL), ENDS_WITHIN_MS, &status))
        fail_msg("%s under %s does not end", workload, guard);
    *ret_report = json_load_file(report_file, 0, NULL);
    if (!*ret_report)
        fail_msg("%s under %s: no report, wait status 0x%x", workload, guard, status);
    return json_array_get(json_object_get(*ret_report, "runs"), 0);
}

static void is_exact(const char *workload, const char *guard)
{
    json_t *report, *run = load(workload, guard, &report);
    const json_t *verdict = json_object_get(run, "verdict");
    int64_t accepted = json_integer_value(json_object_get(run, "accepted"));
    bool sale = strcmp(workload, "sale") == 0;
    if (!json_is_true(json_object_get(verdict, "safe")) ||
        (sale ? accepted != 100 : accepted == 0)) {
        char *text = json_dumps(run, JSON_COMPACT);
        fail_msg("%s under %s: %.2000s", workload, guard, text);
    }
    json_decref(report);
}

/* -- tests ------------------------------------------------------------------------------------- */

/* Reads the list of guards again. arg gets the name of a guard whose servers do not answer. */
static bool all_answer(void *arg)
{
    char *silent = arg;
    const char *only = exactness->only ? exactness->only : "";
    json_t *document = client_get(instances[0]->port, "/v1/guards"), *guard;
    size_t i;
    silent[0] = '\0';
    n_guards = 0;
    json_array_foreach(json_object_get(document, "guards"), i, guard)
    {
        const char *name = json_string_value(json_object_get(guard, "name"));
        if (!json_is_true(json_object_get(guard, "claims_safe")) ||
            strncmp(name, only, strlen(only)) != 0 || n_guards == GUARDS_MAX)
            continue;
        if (!json_is_true(json_object_get(guard, "servers_answer")))
            snprintf(silent, GUARD_NAME_MAX, "%s", name);
        snprintf(guards[n_guards++], GUARD_NAME_MAX, "%s", name);
    }
    json_decref(document);
    return silent[0] == '\0';
}

/* No safe guard is skipped silently. */
static void servers_of_all_safe_guards_answer(void **state)
{
    (void)state;
    char silent[GUARD_NAME_MAX];
    if (!wait_until(all_answer, silent, ANSWER_WITHIN_MS)) /* a busy machine needs some time */
        fail_msg("the servers of %s do not answer", silent);
    assert_true(n_guards < GUARDS_MAX && n_guards >= (exactness->only ? 1 : 20));
}

static void sale_is_exact_under_every_safe_guard(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_guards; i++)
        is_exact("sale", guards[i]);
}

static void accounts_are_exact_under_every_safe_guard(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_guards; i++)
        is_exact("accounts", guards[i]);
}

static void transfers_are_exact_under_every_safe_guard(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_guards; i++)
        is_exact("transfers", guards[i]);
}

/* Shows that the requests overlap and that the store does not hide it. */
static void the_same_sale_loses_without_a_guard(void **state)
{
    (void)state;
    int64_t lost = 0;
    for (int i = 0; i < SALES_MAX && lost == 0; i++) {
        json_t *report, *run = load("sale", "none", &report);
        lost = json_integer_value(json_object_get(json_object_get(run, "verdict"), "lost_updates"));
        json_decref(report);
    }
    assert_true(lost > 0);
}

/* Runs last, as a test: cmocka's exit status ignores a failed tear-down. */
static void services_drain_and_end_well(void **state)
{
    (void)state;
    for (int i = 0; i < INSTANCES; i++)
        assert_true(shop_stop(instances[i]));
    if (exactness->afterwards)
        exactness->afterwards(&servers);
}

int exactness_main(const struct exactness *what)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_of_all_safe_guards_answer),
        cmocka_unit_test(sale_is_exact_under_every_safe_guard),
        cmocka_unit_test(accounts_are_exact_under_every_safe_guard),
        cmocka_unit_test(transfers_are_exact_under_every_safe_guard),
        cmocka_unit_test(the_same_sale_loses_without_a_guard),
        cmocka_unit_test(services_drain_and_end_well),
    };
    exactness = what;
    return cmocka_run_group_tests(tests, open_all, close_all);
}
