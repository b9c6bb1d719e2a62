/* The command line: what is taken, and that everything else is a usage error. */
#include "options.h"
#include "http_load_command.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS_MAX = 16, USAGE = 2 };

static const struct command sale = {"sale", "", "doc", &options_load_argp, NULL};
static const struct command demo = {"demo", "", "doc", &options_demo_argp, NULL};
static const struct command serve = {"serve", "", "doc", &options_serve_argp, NULL};

static const struct command compare = {"compare", "", "doc", &options_compare_argp, NULL};
static const struct command http = {"http", "", "doc", &http_load_command_argp, NULL};

/* Splits at spaces. */
static int split(char *text, char **argv)
{
    int n = 0;
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[n++] = word;
    argv[n] = NULL;
    return n;
}

static struct options parse(const struct command *command, const char *line)
{
    static char text[1000], *argv[ARGS_MAX + 1];
    static struct options options;
    snprintf(text, sizeof text, "loadgen-%s %s", command->name, line);
    int argc = split(text, argv);
    options_parse(command, argc, argv, &options);
    return options;
}

/* In a child, because a usage error ends the program; its message is not shown. */
static int status_of(const struct command *command, const char *line)
{
    int status = -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            _exit(3);
        parse(command, line);
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define URL "--url http://127.0.0.1:8080 "

TEST_THAT(defaults_are_a_burst_of_2000_buyers_on_64_connections)
{
    struct options options = parse(&sale, URL);
    assert_int_equal(options.n_targets, 1);
    assert_int_equal(options.targets[0].port, 8080);
    assert_int_equal(options.connections, 64);
    assert_int_equal(options.buyers, 2000);
    assert_int_equal(options.stock, 100);
    assert_false(options.mode_given);
    assert_int_equal(options.n_guards, 0);
    assert_string_equal(options.command, "loadgen-sale --url http://127.0.0.1:8080");
}

TEST_THAT(lists_and_units_are_understood)
{
    struct options options =
        parse(&sale, "--url http://127.0.0.1:1,http://127.0.0.1:2 --guards none,redis-token "
                     "--duration 500ms --mode rate --rate 12.5 --expect none=unsafe --json -");
    assert_int_equal(options.n_targets, 2);
    assert_int_equal(options.targets[1].port, 2);
    assert_int_equal(options.n_guards, 2);
    assert_string_equal(options.guards[1], "redis-token");
    assert_int_equal(options.duration_ms, 500);
    assert_int_equal(options.mode, LOAD_RATE);
    assert_true(options.rate == 12.5);
    assert_string_equal(options.run_id, "");
    assert_string_equal(parse(&sale, URL "--run-id a_B-3456789abcd").run_id, "a_B-3456789abcd");
    assert_int_equal(options.n_expectations, 1);
    assert_false(options.expectations[0].safe);
    assert_string_equal(options.json, "-");
    options = parse(&sale, URL "--mode ramp --rate 500 --rate-from 10 --duration 9s --warmup 2s");
    assert_int_equal(options.mode, LOAD_RAMP);
    assert_true(options.ramp_from == 10);
    assert_int_equal(options.warmup_ms, 2000);
    assert_int_equal(options.arrivals, LOAD_EVEN);
    assert_false(options.allow_dropped);
    options = parse(&sale, URL "--mode ramp --rate 5 --duration 9s --arrivals poisson "
                               "--allow-dropped");
    assert_int_equal(options.arrivals, LOAD_POISSON);
    assert_true(options.allow_dropped);
    options = parse(&compare, "a b --fail-if p99,rate,p99");
    assert_int_equal(options.n_fail_if, 2);
    options = parse(&sale, URL "--threshold p(99)<50ms --threshold oversold==0 --abort-after 2s");
    assert_int_equal(options.n_thresholds, 2);
    assert_int_equal(options.abort_after_ms, 2000);
    assert_int_equal(parse(&sale, URL "--duration 2m").duration_ms, 120000);
    assert_int_equal(parse(&sale, URL "--mode rate --rate 50000 --duration 80s").requests, 0);
    assert_int_equal(
        parse(&sale, URL "--mode rate --rate 50000 --duration 2m --requests 9").requests, 9);
    assert_int_equal(parse(&sale, URL "--guards a,b,c,d,e --repeat 24").repeat, 24);
    assert_int_equal(parse(&sale, URL "--duration 3").duration_ms, 3000);
}

TEST_THAT(whatever_is_not_understood_is_a_usage_error)
{
    static const char *const wrong[] = {
        "",
        URL "--threshold p(99)50ms",
        URL "--threshold speed>1",
        URL "--abort-after 5s",
        URL "--mode ramp --rate 5",
        URL "--mode ramp --duration 5s",
        URL "--mode rate --rate 5 --rate-from 1",
        URL "--mode rate --rate 5 --duration 5s --warmup 5s",
        URL "--mode burst --warmup 1s",
        URL "--mode rate",
        URL "--mode rate --rate 50000 --duration 2m",
        URL "--mode rate --rate 50000 --duration 2m --arrivals poisson",
        URL "--mode ramp --rate 100000 --duration 2m",
        URL "--guards a,b,c,d,e --repeat 25",
        URL "--mode rate --rate 5 --arrivals normal",
        URL "--mode closed --arrivals poisson",
        URL "--arrivals poisson",
        URL "--rate 5",
        URL "--rate x --mode rate",
        URL "--connections 0",
        URL "--connections 2 --threads 3",
        URL "--requests -1",
        URL "--requests 99999999999999999999",
        URL "--stock 1.5",
        URL "--duration 5y",
        URL "--duration -1s",
        URL "--duration nan",
        URL "--duplicates 91",
        URL "--run-id 0123456789abcdef",
        URL "--run-id a/b",
        URL "--run-id a --repeat 2",
        URL "--run-id a --guards none,mutex",
        URL "--abandon x",
        URL "--seed -1",
        URL "--expect none",
        URL "--expect none=perhaps",
        URL "--guards none,,mutex",
        URL "--guards a-name-that-is-longer-than-any-guard",
        URL "--token-file /nonexistent/token",
        URL "stray",
        "--url http://127.0.0.1:8080/v1",
        "--url http://127.0.0.1:8080,http://127.0.0.1:8081/v1",
        "--url ftp://127.0.0.1",
        "--url http://127.0.0.1:99999",
        "--url http://127.0.0.1:1,http://127.0.0.1:2 --connections 1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int status = status_of(&sale, wrong[i]);
        if (status != USAGE)
            print_error("'%s' ends with %d\n", wrong[i], status);
        assert_int_equal(status, USAGE);
    }
    assert_int_equal(status_of(&demo, "--url http://127.0.0.1:1"), USAGE);
    assert_int_equal(status_of(&serve, "--guards none"), USAGE);
    assert_int_equal(status_of(&compare, ""), USAGE);
    assert_int_equal(status_of(&compare, "a.json"), USAGE);
    assert_int_equal(status_of(&compare, "a.json b.json a2.json"), USAGE);
    assert_int_equal(status_of(&compare, "a.json b.json a2.json b2.json"), 0);
    assert_int_equal(status_of(&http, ""), USAGE);
    assert_int_equal(status_of(&http, "http://127.0.0.1:1 --threshold oversold==0"), USAGE);
    assert_int_equal(status_of(&http, "http://127.0.0.1:7 --stock 3"), USAGE);
}

TEST_THAT(help_is_not_an_error)
{
    assert_int_equal(status_of(&sale, "--help"), 0);
    assert_int_equal(status_of(&demo, "--help"), 0);
    assert_int_equal(status_of(&serve, "--usage"), 0);
}

TEST_THAT(each_command_takes_its_own_flags)
{
    struct options options = parse(&serve, "--seckilld ./s --dir d --listen 127.0.0.1:9");
    assert_string_equal(options.seckilld, "./s");
    assert_string_equal(options.dir, "d");
    assert_string_equal(options.listen, "127.0.0.1:9");
    options =
        parse(&http, "http://127.0.0.1:7/x --method PUT --header A:1 --header B:2 --threads 2");
    assert_int_equal(options.targets[0].port, 7);
    assert_string_equal(options.targets[0].path, "/x");
    assert_string_equal(options.method, "PUT");
    assert_string_equal(options.headers[1], "B:2");
    assert_null(options.headers[2]);
    assert_int_equal(options.threads, 2);
    options = parse(&demo, "--seckilld ./s --guards none --seed 9 --quiet");
    assert_int_equal(options.n_guards, 1);
    assert_int_equal(options.seed, 9);
    assert_true(options.quiet);
}

/* The options borrow the header. */
static struct options parse_header(const char *header)
{
    static char kept[300];
    char *argv[] = {"loadgen-http", "http://127.0.0.1:7/x", "--header", kept, "--quiet", NULL};
    struct options options;
    snprintf(kept, sizeof kept, "%s", header);
    options_parse(&http, 5, argv, &options);
    return options;
}

/* Reports show the command. */
TEST_THAT(credentials_are_not_kept)
{
    static const char *const headers[] = {"Authorization: Bearer T0ken", "authorization:T0ken",
                                          "Proxy-Authorization: Basic T0ken"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        struct options options = parse_header(headers[i]);
        assert_null(strstr(options.command, "T0ken"));
        assert_non_null(strstr(options.command, "uthorization: *** --quiet"));
        assert_string_equal(options.headers[0], headers[i]); /* it is sent */
    }
    assert_non_null(strstr(parse_header("Accept: text/plain").command, "Accept: text/plain"));
}

TEST_THAT(help_has_each_heading_once)
{
    static char help[16384];
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fileno(file), STDOUT_FILENO);
        parse(&sale, "--help");
        _exit(3);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    rewind(file);
    help[fread(help, 1, sizeof help - 1, file)] = '\0';
    fclose(file);
    static const char *const headings[] = {"The service:", "The load:", "Reports:"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++) {
        const char *first = strstr(help, headings[i]);
        assert_non_null(first);
        assert_null(strstr(first + 1, headings[i]));
    }
}

#define SENT(token) "Authorization: Bearer " token "\r\n"

TEST_THAT(token_is_the_first_line_of_its_file)
{
    char path[] = "/tmp/test-token-XXXXXX", line[200];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "secret-token\r\nmore\n", 19), 19);
    close(fd);
    snprintf(line, sizeof line, URL "--token-file %s", path);
    assert_string_equal(parse(&sale, line).targets[0].headers, SENT("secret-token"));
    setenv("SECKILL_TOKEN", "another", 1);
    assert_string_equal(parse(&sale, line).targets[0].headers, SENT("secret-token"));
    unsetenv("SECKILL_TOKEN");
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(status_of(&sale, line), USAGE);
    unlink(path);
}

TEST_THAT(token_of_the_environment_goes_to_services_only)
{
    setenv("SECKILL_TOKEN", "abc-._~+/=", 1);
    struct options options = parse(&sale, "--url http://127.0.0.1:1,http://127.0.0.1:2");
    for (int i = 0; i < 2; i++)
        assert_string_equal(options.targets[i].headers, SENT("abc-._~+/="));
    assert_null(strstr(options.command, "abc"));
    assert_string_equal(parse(&http, URL).targets[0].headers, "");
    setenv("SECKILL_TOKEN", "", 1);
    assert_string_equal(parse(&sale, URL).targets[0].headers, "");
    setenv("SECKILL_TOKEN", "two words", 1);
    assert_int_equal(status_of(&sale, URL), USAGE);
    unsetenv("SECKILL_TOKEN");
}
