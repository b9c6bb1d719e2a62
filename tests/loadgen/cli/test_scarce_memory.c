/* The Nth allocation of each command fails, once or for ever, for many N. The command ends in time,
 * says that it failed unless it did all its work, and never blames the service. */
#include "check_command.h"
#include "compare_command.h"
#include "http_load_command.h"
#include "json_memory.h"
#include "judged_command.h"
#include "process.h"
#include "scarce.h"
#include "shop.h"
#include "tests.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 500, PIECES_MAX = 200000, ARGS_MAX = 40, PATH_BYTES = 300, LATEST_MS = 30000 };

static struct shop shop;
static char json[PATH_BYTES], other[PATH_BYTES], html[PATH_BYTES], csv[PATH_BYTES],
    history[PATH_BYTES], messages[PATH_BYTES], verdict[PATH_BYTES];

static int open_shop(void **state)
{
    const struct {
        char *path;
        const char *name;
    } files[] = {{json, "a.json"},     {other, "b.json"},      {html, "a.html"},    {csv, "a.csv"},
                 {history, "h.jsonl"}, {messages, "messages"}, {verdict, "verdict"}};
    (void)state;
    if (shop_open(&shop, (const char *const[]){"--guard", "mutex", NULL}) != 0)
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        snprintf(files[i].path, PATH_BYTES, "%.200s/%s", sandbox_dir(shop.sandbox), files[i].name);
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

struct outcome {
    int status, refused;
    char text[8192]; /* of stderr */
};

static void redirect(int to, const char *path, int *ret_kept)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    *ret_kept = dup(to);
    assert_true(fd >= 0 && *ret_kept >= 0 && dup2(fd, to) == to);
    close(fd);
}

static void restore(int to, int kept)
{
    dup2(kept, to);
    close(kept);
}

static void read_messages(struct outcome *ret)
{
    FILE *file = fopen(messages, "r");
    assert_non_null(file);
    ret->text[fread(ret->text, 1, sizeof ret->text - 1, file)] = '\0';
    fclose(file);
}

/* Runs a command whose nth allocation fails; 0: none. */
static struct outcome run_without(const struct command *command, const struct options *options,
                                  int n, bool goes_on)
{
    static struct outcome outcome;
    int out, err;
    fflush(stdout);
    redirect(STDOUT_FILENO, command->run == check_command ? verdict : "/dev/null", &out);
    redirect(STDERR_FILENO, messages, &err);
    scarce_from(n, goes_on);
    outcome.status = command->run(options);
    outcome.refused = scarce_end();
    fflush(stdout);
    restore(STDOUT_FILENO, out);
    restore(STDERR_FILENO, err);
    read_messages(&outcome);
    return outcome;
}

/* The same in a process of its own, which a failed allocation of jansson may end. */
static struct outcome run_apart(const struct command *command, const struct options *options, int n,
                                bool goes_on)
{
    struct outcome outcome = {0};
    int status = 0, *refused = mmap(NULL, sizeof *refused, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(refused != MAP_FAILED);
    *refused = 1; /* if it ends at once */
    pid_t pid = fork();
    if (pid == 0) {
        json_memory_or_end(command->name);
        outcome = run_without(command, options, n, goes_on);
        *refused = outcome.refused;
        _exit(outcome.status);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.refused = *refused;
    munmap(refused, sizeof *refused);
    read_messages(&outcome);
    return outcome;
}

/* What the run has written does not convict the service, even if answers are missing in it. */
static void check_history(const char *name, int n)
{
    struct history read;
    char message[512];
    const struct options options = {.history = history};
    const struct command check = {.name = "check", .run = check_command};
    if (history_read(history, &read, message, sizeof message) != 0)
        return; /* it says so: the run failed before its first request */
    history_free(&read);
    struct outcome outcome = run_without(&check, &options, 0, false);
    if (outcome.status == EXIT_BROKEN)
        fail_msg("%s: allocation %d: its history is judged: %s", name, n, outcome.text);
}

/* The verdict of "check" stands on stdout. */
static bool is_undecided(void)
{
    char text[64] = "";
    FILE *file = fopen(verdict, "r");
    if (file != NULL && fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    if (file != NULL)
        fclose(file);
    unlink(verdict);
    return strncmp(text, "NOT DECIDED", strlen("NOT DECIDED")) == 0;
}

static void judge(const char *name, int n, bool goes_on, const struct outcome *outcome,
                  int64_t took_ms)
{
    if (outcome->status != 0 && outcome->status != 1)
        fail_msg("%s: allocation %d%s: exit status %d: %s", name, n,
                 goes_on ? " and all later" : "", outcome->status, outcome->text);
    if (outcome->status == 1 && outcome->text[0] == '\0' && !is_undecided())
        fail_msg("%s: allocation %d%s: failed without a message", name, n,
                 goes_on ? " and all later" : "");
    if (took_ms > LATEST_MS)
        fail_msg("%s: allocation %d%s: %lld ms", name, n, goes_on ? " and all later" : "",
                 (long long)took_ms);
}

/* The steps between N grow: later allocations of a run are mostly alike. */
static int next(int n)
{
    return n + 1 + (int)test_size(n / 4, n / 60);
}

typedef struct outcome run_one(const struct command *command, const struct options *options, int n,
                               bool goes_on);

static void run_each(const struct command *command, const struct options *options, run_one *run,
                     bool goes_on)
{
    int refused = 1, failures = 0, runs = 0, n = 1;
    for (; refused > 0; n = next(n), runs++) {
        int64_t start_ms = test_now_ms();
        struct outcome outcome = run(command, options, n, goes_on);
        refused = outcome.refused;
        failures += outcome.status != 0;
        judge(command->name, n, goes_on, &outcome, test_now_ms() - start_ms);
        if (options->history != NULL && command->run != check_command)
            check_history(command->name, n);
        assert_true(n < PIECES_MAX);
    }
    print_message("%s: %d runs up to allocation %d, %d failed\n", command->name, runs, n, failures);
    assert_true(failures > 0);
}

static void parse(const struct command *command, const char *const *args, struct options *ret)
{
    char *argv[ARGS_MAX + 1] = {(char *)(uintptr_t)command->name};
    int argc = 1;
    for (; args[argc - 1] != NULL; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    memset(ret, 0, sizeof *ret);
    options_parse(command, argc, argv, ret);
    ret->patience_ms = PATIENCE_MS;
}

static void run_without_each(const struct command *command, const char *const *args)
{
    struct options options;
    parse(command, args, &options);
    assert_int_equal(run_without(command, &options, 0, false).status, 0);
    for (int goes_on = 0; goes_on < 2; goes_on++) {
        run_each(command, &options, run_without, goes_on);
        run_each(command, &options, run_apart, goes_on);
    }
}

#define COMMAND(name, argp, run) (&(const struct command){name, "", "", &(argp), run})
#define ARGS(...)                ((const char *const[]){__VA_ARGS__, NULL})

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(a_judged_command_without_memory_says_so)
{
    const char *url = shop.service->url;
    run_without_each(COMMAND("sale", options_load_argp, judged_sale),
                     ARGS("--url", url, "--stock", "5", "--buyers", "10", "--connections", "4",
                          "--guards", "mutex,sql-row", "--json", json, "--html", html, "--csv", csv,
                          "--history", history, "--timeout-ms", "2000", "--duplicates", "20",
                          "--abandon", "10"));
}

TEST_THAT(a_command_that_changes_balances_without_memory_says_so)
{
    const char *url = shop.service->url;
    run_without_each(COMMAND("accounts", options_load_argp, judged_accounts),
                     ARGS("--url", url, "--requests", "12", "--connections", "4", "--accounts", "2",
                          "--pairs", "2", "--json", json, "--timeout-ms", "2000"));
    run_without_each(COMMAND("transfers", options_load_argp, judged_transfers),
                     ARGS("--url", url, "--requests", "12", "--connections", "4", "--accounts", "3",
                          "--history", history, "--timeout-ms", "2000"));
}

TEST_THAT(a_plain_load_without_memory_says_so)
{
    char live[PATH_BYTES];
    snprintf(live, sizeof live, "%.200s/livez", shop.service->url);
    run_without_each(COMMAND("http", http_load_command_argp, http_load_command),
                     ARGS(live, "--requests", "30", "--connections", "4", "--json", other,
                          "--timeout-ms", "2000"));
}

TEST_THAT(files_are_judged_without_memory_or_not_at_all)
{
    struct options options;
    parse(COMMAND("accounts", options_load_argp, judged_accounts),
          ARGS("--url", shop.service->url, "--requests", "40", "--connections", "4", "--history",
               history, "--json", json, "--quiet"),
          &options);
    assert_int_equal(judged_accounts(&options), 0);
    run_without_each(COMMAND("check", options_check_argp, check_command), ARGS(history));
    run_without_each(COMMAND("compare", options_compare_argp, compare_command), ARGS(json, json));
}
