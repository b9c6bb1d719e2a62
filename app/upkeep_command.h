/* The commands that look after a store: "seckilld backup FILE" and the like. */
#ifndef UPKEEP_COMMAND_H
#define UPKEEP_COMMAND_H

/* Runs the command that argv[1] names. Returns its exit status, or -1 if it names none. */
int upkeep_command(int argc, char **argv);

#endif
