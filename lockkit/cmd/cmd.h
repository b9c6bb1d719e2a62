/* The lockkit command line: what its subcommands share. Uses lockkit.h as any program would; no
 * part of the library. */
#ifndef LOCKKIT_CMD_H
#define LOCKKIT_CMD_H

#include "lockkit.h"

#include <argp.h>

/* Exit statuses besides the command's own. 64 and above: sysexits.h; 126, 127: as a shell's. */
enum {
    CMD_OK = 0,
    CMD_FAILED = 1,   /* release: nobody held it; bench: something went wrong */
    CMD_USAGE = 64,   /* wrong arguments, unknown guard, not offered by it */
    CMD_AWAY = 69,    /* the lock server is away, or its answer was lost */
    CMD_BROKEN = 70,  /* the lock server talks nonsense; out of memory */
    CMD_TIMEOUT = 75, /* not had in time */
    CMD_LOST = 76,    /* the lock was lost while the command ran */
    CMD_NO_EXEC = 126,
    CMD_NOT_FOUND = 127,
    CMD_SIGNALLED = 128 /* plus the signal's number */
};

/* Which locks: every subcommand that talks to a server has these flags, as a child of its argp
 * whose input is the struct. Unset, LOCKKIT_GUARD and LOCKKIT_ENDPOINTS of the environment count.
 */
struct cmd_target {
    const char *guard, *endpoints;
};
extern const struct argp cmd_target_argp;
/* Opens a client or ends the program with a message and a status: also when the guard is one within
 * a process, of no use between commands. */
lk_client *cmd_open(const struct cmd_target *target, const lk_options *options);

/* Ends the program with argp's usage message when text is no such number. */
int64_t cmd_number(struct argp_state *state, const char *flag, const char *text, int64_t min,
                   int64_t max);
/* The keys that a subcommand is told of, at most max of them. */
enum { CMD_KEYS_MAX = 64 };
struct cmd_keys {
    const char *at[CMD_KEYS_MAX];
    size_t n, max;
};
/* Ends the program with argp's usage message when there are too many, or it cannot be a key. */
void cmd_add_key(struct argp_state *state, struct cmd_keys *keys, const char *key);
/* Parses with the given doc; argv[0] is "lockkit NAME". */
void cmd_parse(const struct argp *argp, int argc, char **argv, void *input);

/* "lockkit: what: why" on stderr, or the message as it is; return the exit status for it. */
int cmd_fail(const char *what, lk_status status);
int cmd_fail_with(const char *message, lk_status status);
/* cmd_fail() with what the client knows about it. */
int cmd_fail_at(lk_client *client, const char *what, lk_status status);

int cmd_acquire(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_release(int argc, char **argv);
int cmd_guards(int argc, char **argv);
int cmd_bench(int argc, char **argv);

#endif
