/* lockkit: locks on the command line. See lockkit.1. */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"acquire", "runs a command while holding locks", cmd_acquire},
    {"status", "shows who holds what", cmd_status},
    {"release", "frees a lock by hand, whoever holds it", cmd_release},
    {"guards", "the kinds of locks built in, and what each claims", cmd_guards},
    {"bench", "what a lock costs on your servers", cmd_bench},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void usage(FILE *out)
{
    fprintf(out, "Usage: lockkit COMMAND [OPTION...]\nLocks on the command line.\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(out,
            "\n'lockkit COMMAND --help' shows its options and examples; 'lockkit --version'.\n");
}

/* So that no connection takes the place of a standard stream that is closed. */
static void hold_standard_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* At exit, because argp ends the program itself after --help. */
static void check_output(void)
{
    errno = 0;
    int flushed = fflush(stdout);
    if (flushed == 0 && ferror(stdout) == 0)
        return;
    fprintf(stderr, "lockkit: cannot write the standard output: %s\n",
            strerror(errno != 0 ? errno : EIO));
    _exit(CMD_BROKEN);
}

int main(int argc, char **argv)
{
    static char name[64];
    hold_standard_streams();
    atexit(check_output);
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0)) {
        usage(stdout);
        return CMD_OK;
    }
    if (argc >= 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        printf("lockkit %s\n", LK_VERSION);
        return CMD_OK;
    }
    for (int i = 0; argc >= 2 && i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            snprintf(name, sizeof name, "lockkit %s", commands[i].name);
            argv[1] = name;
            return commands[i].run(argc - 1, argv + 1);
        }
    fprintf(stderr, argc >= 2 ? "lockkit: unknown command '%s'\n" : "lockkit: no command\n",
            argc >= 2 ? argv[1] : "");
    usage(stderr);
    return CMD_USAGE;
}

/* -- what the subcommands share --------------------------------------------------------------- */

int cmd_fail_with(const char *message, lk_status status)
{
    static const struct {
        int exit_status;
        const char *advice;
    } of[] = {
        [LK_TIMEOUT] = {CMD_TIMEOUT, "'lockkit status KEY' shows who holds it"},
        [LK_LOST] = {CMD_LOST, "another process may have held it at the same time: check the work"},
        [LK_UNKNOWN] = {CMD_AWAY, "try again; the lease ends what may be left"},
        [LK_UNAVAILABLE] = {CMD_AWAY, "start the server, or name another with -e"},
        [LK_PROTOCOL] = {CMD_BROKEN, "check that -e names a server of this guard"},
        [LK_INVALID] = {CMD_USAGE, NULL},
        [LK_UNSUPPORTED] = {CMD_USAGE, "'lockkit guards' shows what each guard offers"},
        [LK_NO_MEMORY] = {CMD_BROKEN, NULL}};
    fprintf(stderr, "lockkit: %s\n", message);
    if (of[status].advice)
        fprintf(stderr, "lockkit: %s\n", of[status].advice);
    return of[status].exit_status;
}

int cmd_fail(const char *what, lk_status status)
{
    char message[LK_MESSAGE_MAX];
    snprintf(message, sizeof message, "%.200s: %s", what, lk_status_text(status));
    return cmd_fail_with(message, status);
}

int cmd_fail_at(lk_client *client, const char *what, lk_status status)
{
    char reason[LK_MESSAGE_MAX], message[2 * LK_MESSAGE_MAX];
    bool away = status == LK_UNAVAILABLE || status == LK_UNKNOWN || status == LK_PROTOCOL;
    lk_last_error(client, reason, sizeof reason);
    if (!away || reason[0] == '\0')
        return cmd_fail(what, status);
    snprintf(message, sizeof message, "%.200s: %s: %s", what, lk_status_text(status), reason);
    return cmd_fail_with(message, status);
}

lk_client *cmd_open(const struct cmd_target *target, const lk_options *options)
{
    lk_client *client;
    lk_error error;
    lk_status status = lk_open(target->guard, target->endpoints, options, &client, &error);
    if (status == LK_OK && !(lk_client_provider(client)->caps & LK_CAP_DISTRIBUTED)) {
        lk_close(client);
        status = LK_UNSUPPORTED;
        snprintf(error.message, sizeof error.message,
                 "guard %s does not exclude other processes: use one that claims 'distributed'",
                 target->guard);
    }
    if (status != LK_OK)
        exit(cmd_fail_with(error.message, status));
    return client;
}

int64_t cmd_number(struct argp_state *state, const char *flag, const char *text, int64_t min,
                   int64_t max)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < min || number > max)
        argp_error(state, "%s: '%s' is not a whole number from %lld to %lld", flag, text,
                   (long long)min, (long long)max);
    return number;
}

static const char *from_environment(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

static error_t parse_target(int key, char *arg, struct argp_state *state)
{
    struct cmd_target *target = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        target->guard = from_environment("LOCKKIT_GUARD", "redis-token");
        target->endpoints = from_environment("LOCKKIT_ENDPOINTS", "redis://127.0.0.1:6379");
        return 0;
    case 'g':
        target->guard = arg;
        return 0;
    case 'e':
        target->endpoints = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option target_options[] = {
    {NULL, 0, NULL, 0, "Which locks:", 1},
    {"guard", 'g', "GUARD", 0, "Kind of lock, see 'lockkit guards' (default redis-token)", 1},
    {"endpoints", 'e', "E", 0, "Its servers (default redis://127.0.0.1:6379)", 1},
    {0}};
const struct argp cmd_target_argp = {.options = target_options, .parser = parse_target};

void cmd_add_key(struct argp_state *state, struct cmd_keys *keys, const char *key)
{
    if (keys->n == keys->max)
        argp_error(state, "at most %zu keys", keys->max);
    if (!lk_key_valid(key))
        argp_error(state,
                   "'%.40s%s' cannot be a key: that is 1 to %d printable ASCII characters, without "
                   "spaces or braces",
                   key, strlen(key) > 40 ? "..." : "", LK_KEY_MAX);
    keys->at[keys->n++] = key;
}

void cmd_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    argp_err_exit_status = CMD_USAGE;
    argp_parse(argp, argc, argv, 0, NULL, input);
}
