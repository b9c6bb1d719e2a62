#include "upkeep_command.h"
#include "config.h"
#include "journal.h"
#include "lab.h"
#include "upkeep.h"

#include <stdio.h>
#include <string.h>

enum { USAGE = 2 };

static int report(db_status status, const db_error *error)
{
    if (status == DB_OK)
        return 0;
    fprintf(stderr, "seckilld: %s\n", error->message);
    return status == DB_INVALID ? USAGE : 1;
}

static int backup(const struct config *config, const char *file)
{
    db_error error;
    const db_status status = db_backup(config->db, file, &error);
    if (status == DB_OK)
        printf("%s: a copy of the store\n", file);
    return report(status, &error);
}

static int migrate(const struct config *config, const char *none)
{
    db_error error;
    db_versions versions;
    (void)none;
    const db_status status = db_migrate(config->db, &versions, &error);
    if (status == DB_OK && versions.index_made)
        printf("the store has version %lld, and now the index of refusals\n",
               (long long)versions.to);
    else if (status == DB_OK && versions.from == versions.to)
        printf("the store has version %lld: there is nothing to do\n", (long long)versions.to);
    else if (status == DB_OK)
        printf("the store had version %lld, and has %lld\n", (long long)versions.from,
               (long long)versions.to);
    return report(status, &error);
}

static int export(const struct config *config, const char *format)
{
    db_error error;
    (void)format; /* there is one */
    return report(journal_write(config->db, config->db_shared, stdout, &error), &error);
}

static const struct command {
    const char *name, *argument; /* NULL: it has none */
    int (*run)(const struct config *config, const char *argument);
} commands[] = {
    {"backup", "FILE", backup},
    {"export", "--journal", export},
    {"migrate", NULL, migrate},
};

/* "FILE" is any text that is no setting; "--journal" is itself. */
static bool is_argument(const struct command *command, const char *text)
{
    const char *wanted = command->argument;
    return wanted == NULL || (wanted[0] == '-' ? strcmp(text, wanted) == 0 : text[0] != '-');
}

/* The settings follow: those of the service, of which a command needs few. */
static int run(const struct command *command, int argc, char **argv)
{
    const int taken = command->argument != NULL ? 2 : 1;
    struct config config;
    if (argc <= taken || !is_argument(command, argv[2])) {
        fprintf(stderr, "usage: seckilld %s %s [SETTING...]\n", command->name, command->argument);
        return USAGE;
    }
    const char *argument = argv[taken]; /* of one that has none, its own name */
    argv[taken] = argv[0];
    const int status = config_load(argc - taken, argv + taken, lab_is_built, &config);
    return status >= 0 ? status : command->run(&config, argument);
}

int upkeep_command(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return run(&commands[i], argc, argv);
    return -1;
}
