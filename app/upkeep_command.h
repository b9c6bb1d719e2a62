/* The commands that look after a store: "seckilld backup FILE" and the like. */
#ifndef UPKEEP_COMMAND_H
#define UPKEEP_COMMAND_H

#include "db.h"

/* What a command was given besides settings; NULL: nothing. Borrowed from argv. */
struct upkeep_arguments {
    const char *file, *before, *archive;
};

/* Runs the command that argv[1] names. Returns its exit status, or -1 if it names none. Takes the
 * command's arguments out of argv. */
int upkeep_command(int argc, char **argv);

/* The exit status. Prints the error, if there is one. */
int upkeep_report(db_status status, const db_error *error);

#endif
