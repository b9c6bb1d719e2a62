#include "config.h"
#include "config_keys.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

enum { HELP_TEXT_MAX = 256 };
enum { OPTION_KEY = 1000, OPTION_CONFIG = 2000, OPTION_PRINT, OPTION_CHECK };

struct command_line {
    struct config_draft *draft;
    const char *file;
    bool print, check;
};

static error_t take_option(int key, char *arg, struct argp_state *state)
{
    struct command_line *line = state->input;
    if (key >= OPTION_KEY && key < OPTION_KEY + (int)config_n_keys) {
        size_t index = (size_t)(key - OPTION_KEY);
        if (config_draft_set(line->draft, index, arg != NULL ? arg : "on", CONFIG_FROM_FLAG) != 0)
            argp_error(state, "--%s", line->draft->message);
        return 0;
    }
    switch (key) {
    case OPTION_CONFIG:
        line->file = arg;
        return 0;
    case OPTION_PRINT:
        line->print = true;
        return 0;
    case OPTION_CHECK:
        line->check = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument \"%s\"", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char *value_name(enum config_type type)
{
    switch (type) {
    case CONFIG_NUMBER:
        return "N";
    case CONFIG_SWITCH:
        return "on|off";
    case CONFIG_SYNC:
        return "full|normal";
    case CONFIG_SOURCE:
        return "lock|database";
    case CONFIG_FLAG:
        return NULL;
    case CONFIG_TEXT:
        break;
    }
    return "TEXT";
}

/* The meaning of a setting, and its default if it has one. */
static const char *help_text(size_t key)
{
    static char texts[CONFIG_KEYS_MAX][HELP_TEXT_MAX];
    const struct config_key *k = &config_keys[key];
    bool told = k->fallback[0] != '\0' && k->type != CONFIG_FLAG;
    snprintf(texts[key], HELP_TEXT_MAX, told ? "%s (default: %s)" : "%s", k->meaning, k->fallback);
    return texts[key];
}

static bool is_of_lab(size_t key)
{
    return strncmp(config_keys[key].name, "lab", strlen("lab")) == 0;
}

static void read_flags(int argc, char **argv, bool shows_lab, struct command_line *line)
{
    struct argp_option options[CONFIG_KEYS_MAX + 4];
    memset(options, 0, sizeof(options));
    for (size_t i = 0; i < config_n_keys; i++)
        options[i] = (struct argp_option){.name = config_keys[i].name,
                                          .key = OPTION_KEY + (int)i,
                                          .arg = value_name(config_keys[i].type),
                                          .flags = shows_lab || !is_of_lab(i) ? 0 : OPTION_HIDDEN,
                                          .doc = help_text(i)};
    struct argp_option *more = &options[config_n_keys];
    more[0] = (struct argp_option){.name = "config",
                                   .key = OPTION_CONFIG,
                                   .arg = "FILE",
                                   .doc = "settings file: lines key = value"};
    more[1] =
        (struct argp_option){.name = "print-config",
                             .key = OPTION_PRINT,
                             .doc = "print the settings in effect, and exit; passwords as ***"};
    more[2] = (struct argp_option){.name = "check",
                                   .key = OPTION_CHECK,
                                   .doc = "check the settings and the store's folder, and exit"};
    const struct argp argp = {
        .options = options,
        .parser = take_option,
        .args_doc = "\narchive --before=YYYY-MM FILE\naudit [--archive=FILE]\nbackup FILE\nexport "
                    "--journal "
                    "[--archive=FILE]\nmigrate\ntoken ROLE NAME",
        .doc = "Flash-sale and account-balance service with exchangeable locks.\v"
               "Each setting is taken from its flag, else from the environment (SECKILL_WAIT_MS "
               "for --wait-ms), else from the file, else it has its default."};
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, line);
}

int config_load(int argc, char **argv, bool shows_lab, struct config *ret)
{
    struct config_draft *draft = malloc(sizeof(*draft));
    if (draft == NULL)
        return 1;
    config_draft_defaults(draft);
    struct command_line line = {.draft = draft};
    int status = -1;
    read_flags(argc, argv, shows_lab, &line);
    if ((line.file != NULL && config_draft_file(draft, line.file) != 0) ||
        config_draft_environment(draft, environ) != 0 || config_draft_finish(draft, ret) != 0) {
        fprintf(stderr, "seckilld: %s\nTry 'seckilld --help'.\n", draft->message);
        status = 2;
    } else if (line.print) {
        config_draft_print(draft, stdout);
        status = 0;
    } else if (config_check_names(ret) != 0) {
        status = 2;
    } else if (line.check) {
        status = config_check(ret) == 0 ? 0 : 2;
        if (status == 0)
            puts("configuration ok");
    }
    if (status == 0 && fflush(stdout) != 0) {
        fprintf(stderr, "seckilld: cannot write the standard output: %s\n", strerror(errno));
        status = 1;
    }
    free(draft);
    return status;
}
