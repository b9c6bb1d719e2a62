#include "upkeep_command.h"
#include "archive_command.h"
#include "config.h"
#include "journal.h"
#include "lab.h"
#include "upkeep.h"

#include <stdio.h>
#include <string.h>

enum { USAGE = 2 };

int upkeep_report(db_status status, const db_error *error)
{
    if (status == DB_OK)
        return 0;
    fprintf(stderr, "seckilld: %s\n", error->message);
    return status == DB_INVALID ? USAGE : 1;
}

static int backup(const struct config *config, const struct upkeep_arguments *arguments)
{
    db_error error;
    const db_status status = db_backup(config->db, arguments->file, &error);
    if (status == DB_OK)
        printf("%s: a copy of the store\n", arguments->file);
    return upkeep_report(status, &error);
}

static int migrate(const struct config *config, const struct upkeep_arguments *none)
{
    db_error error;
    db_versions versions;
    (void)none;
    const db_status status = db_migrate(config->db, &versions, &error);
    if (status == DB_OK && versions.index_made && versions.from == versions.to)
        printf("the store has version %lld, and now the index of refusals\n",
               (long long)versions.to);
    else if (status == DB_OK && versions.from == versions.to)
        printf("the store has version %lld: there is nothing to do\n", (long long)versions.to);
    else if (status == DB_OK)
        printf("the store had version %lld, and has %lld\n", (long long)versions.from,
               (long long)versions.to);
    return upkeep_report(status, &error);
}

static int export(const struct config *config, const struct upkeep_arguments *arguments)
{
    db_error error;
    return upkeep_report(
        journal_write(config->db, config->db_shared, arguments->archive, stdout, &error), &error);
}

/* What a command takes besides settings, and what it cannot do without. */
enum { FILE_NAME = 1, JOURNAL = 2, BEFORE = 4, ARCHIVE = 8 };

static const struct command {
    const char *name, *usage;
    int takes, needs;
    int (*run)(const struct config *config, const struct upkeep_arguments *arguments);
} commands[] = {
    {"archive", "--before=YYYY-MM FILE", BEFORE | FILE_NAME, BEFORE | FILE_NAME, archive_command},
    {"audit", "[--archive=FILE]", ARCHIVE, 0, audit_command},
    {"backup", "FILE", FILE_NAME, FILE_NAME, backup},
    {"export", "--journal [--archive=FILE]", JOURNAL | ARCHIVE, JOURNAL, export},
    {"migrate", "", 0, 0, migrate},
};

/* The value of "--name=value"; NULL if the text is something else. */
static const char *value_of(const char *text, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(text, name, length) == 0 ? text + length : NULL;
}

/* Returns which argument of the command the text is; 0: a setting. */
static int take(const struct command *command, const char *text, struct upkeep_arguments *ret)
{
    const char *before = value_of(text, "--before="), *archive = value_of(text, "--archive=");
    int which = 0;
    if (before != NULL)
        which = BEFORE;
    else if (archive != NULL)
        which = ARCHIVE;
    else if (strcmp(text, "--journal") == 0)
        which = JOURNAL;
    else if (text[0] != '-' && ret->file == NULL)
        which = FILE_NAME;
    which &= command->takes;
    if (which == BEFORE)
        ret->before = before;
    else if (which == ARCHIVE)
        ret->archive = archive;
    else if (which == FILE_NAME)
        ret->file = text;
    return which;
}

/* Settings are those of the service, of which a command needs few. */
static int run(const struct command *command, int argc, char **argv)
{
    struct upkeep_arguments arguments = {0};
    struct config config;
    int given = 0, settings = 1;
    argv[1] = argv[0];
    for (int i = 2; i < argc; i++) {
        const int which = take(command, argv[i], &arguments);
        given |= which;
        if (which == 0)
            argv[++settings] = argv[i];
    }
    argv[settings + 1] = NULL;
    if ((command->needs & ~given) != 0) {
        fprintf(stderr, "usage: seckilld %s %s [SETTING...]\n", command->name, command->usage);
        return USAGE;
    }
    const int status = config_load(settings, argv + 1, lab_is_built, &config);
    return status >= 0 ? status : command->run(&config, &arguments);
}

int upkeep_command(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return run(&commands[i], argc, argv);
    return -1;
}
