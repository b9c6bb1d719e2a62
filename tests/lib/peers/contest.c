#include "contest.h"
#include "lock_world.h"
#include "process.h"
#include "program.h"
#include "tests.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TURNS = 60, /* least number of the peer's turns */
    SEEN = 10,  /* turns of the peer that must find the number changed, if our side writes */
    PATIENCE_MS = 300000,
    MOMENT_US = 1000,
    LONG_EVERY = 4,  /* every fourth turn of each side is long ... */
    LONG_US = 12000, /* ... so that a side that is not excluded enters meanwhile */
    PATH_BYTES = SANDBOX_TEXT_MAX + 32,
    DIGITS = 10
};

struct outcome {
    int ours, theirs; /* turns */
    int seen;         /* turns of ours that found the number changed since the last */
    int lost;         /* writes that another write overwrote unseen */
    int torn;         /* readers' turns in which the number changed */
};

struct match {
    const struct contest *contest;
    lk_client *client;
    lk_request request;
    char number[PATH_BYTES], output[PATH_BYTES], messages[PATH_BYTES]; /* files */
    int file;
    int last; /* the number after our last turn */
    struct outcome outcome;
};

/* -- our side --------------------------------------------------------------------------------- */

static int read_number(int file)
{
    char digits[DIGITS + 1] = {0};
    return pread(file, digits, DIGITS, 0) == DIGITS ? atoi(digits) : -1;
}

static bool write_number(int file, int number)
{
    char digits[DIGITS + 2];
    snprintf(digits, sizeof digits, "%010d", number);
    return pwrite(file, digits, DIGITS, 0) == DIGITS;
}

static void moment(int64_t us)
{
    lk_env_system()->sleep_us(NULL, us);
}

static lk_status make_turn(struct match *match)
{
    lk_hold hold;
    struct outcome *outcome = &match->outcome;
    lk_status status = lk_acquire(match->client, &match->request, &hold);
    if (status != LK_OK)
        return status;
    int number = read_number(match->file);
    outcome->seen += number != match->last;
    match->last = number;
    moment(outcome->ours % LONG_EVERY == 0 ? LONG_US : MOMENT_US);
    if (match->request.mode == LK_SHARED)
        outcome->torn += read_number(match->file) != number;
    else if (!write_number(match->file, ++match->last))
        status = LK_PROTOCOL;
    lk_status released = lk_release(&hold);
    outcome->ours++;
    moment(MOMENT_US);
    return status == LK_OK ? released : status;
}

/* Makes turns until the peer has ended. Returns its status as of waitpid(2). */
static int make_turns(struct match *match, pid_t peer)
{
    int status;
    lk_status turn = LK_OK;
    int64_t deadline_ms = test_now_ms() + PATIENCE_MS;
    while (waitpid(peer, &status, WNOHANG) == 0) {
        if (turn != LK_OK || test_now_ms() > deadline_ms) {
            kill(peer, SIGKILL);
            waitpid(peer, &status, 0);
            fail_msg("after %d turns: %s", match->outcome.ours, lk_status_text(turn));
        }
        turn = make_turn(match);
    }
    return status;
}

/* Holds the lock until the peer has ended. */
static int hold_meanwhile(struct match *match, pid_t peer, lk_hold *hold)
{
    int status;
    bool ended = program_ends(peer, PATIENCE_MS, &status);
    lk_status still = lk_confirm(hold);
    assert_int_equal(lk_release(hold), LK_OK);
    assert_int_equal(still, LK_OK);
    if (!ended)
        fail_msg("%s did not get its turn while we held the lock", match->contest->peer);
    return status;
}

/* -- the peer --------------------------------------------------------------------------------- */

static pid_t start_peer(const struct match *match)
{
    const struct contest *contest = match->contest;
    char server[WORLD_ENDPOINTS_MAX], command[WORLD_ENDPOINTS_MAX + 4 * PATH_BYTES];
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    bool we_write = contest->mode != LK_SHARED && !contest->walks_in;
    world->endpoints(server, sizeof server, 0);
    snprintf(command, sizeof command, "exec %s '%s' '%s' '%s' %d %d", contest->peer, server,
             contest->name != NULL ? contest->name : CONTEST_KEY, match->number, TURNS,
             we_write ? SEEN : 0);
    return program_start(argv, match->output, match->messages);
}

static void show(const char *path)
{
    char text[4096];
    FILE *file = fopen(path, "re");
    size_t n = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = '\0';
    fprintf(stderr, "%s", text);
    if (file != NULL)
        fclose(file);
}

static void take_report(struct match *match, int status)
{
    int torn = 0;
    FILE *file = fopen(match->output, "re");
    bool whole = file != NULL && fscanf(file, "%d %d", &match->outcome.theirs, &torn) == 2;
    if (file != NULL)
        fclose(file);
    match->outcome.torn += torn;
    if (status == 0 && whole)
        return;
    show(match->messages);
    fail_msg("%s: wait status %d", match->contest->peer, status);
}

/* -- both -------------------------------------------------------------------------------------- */

static void begin(struct match *match, const struct contest *contest, lk_client *client)
{
    const char *dir = sandbox_dir(world_sandbox);
    *match = (struct match){
        .contest = contest,
        .client = client,
        .request = {.key = CONTEST_KEY, .mode = contest->mode, .wait_ms = PATIENCE_MS},
    };
    snprintf(match->number, sizeof match->number, "%s/number", dir);
    snprintf(match->output, sizeof match->output, "%s/peer.out", dir);
    snprintf(match->messages, sizeof match->messages, "%s/peer.err", dir);
    match->file = open(match->number, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(match->file >= 0);
    assert_true(write_number(match->file, 0));
}

static void expect_walk_in(struct match *match)
{
    lk_hold hold;
    assert_int_equal(lk_acquire(match->client, &match->request, &hold), LK_OK);
    int status = hold_meanwhile(match, start_peer(match), &hold);
    take_report(match, status);
    print_message("turns: theirs %d, all in one of ours\n", match->outcome.theirs);
    assert_true(match->outcome.theirs >= TURNS);
}

static void expect_exclusion(struct match *match)
{
    const struct contest *contest = match->contest;
    struct outcome *outcome = &match->outcome;
    int status = make_turns(match, start_peer(match));
    take_report(match, status);
    outcome->lost = (contest->mode != LK_SHARED ? outcome->ours : 0) +
                    (contest->peer_reads ? 0 : outcome->theirs) - read_number(match->file);
    print_message("turns: ours %d, theirs %d, seen %d; lost %d, torn %d\n", outcome->ours,
                  outcome->theirs, outcome->seen, outcome->lost, outcome->torn);
    assert_true(outcome->theirs >= TURNS);
    assert_true(contest->peer_reads || outcome->seen > 0);
    assert_int_equal(outcome->torn, 0);
    if (contest->planted)
        assert_true(outcome->lost > 0);
    else
        assert_int_equal(outcome->lost, 0);
}

void contest_as_promised(void **state)
{
    const struct contest *contest = *state;
    struct match match;
    world->wipe();
    lk_client *client = world_warm(world_client(contest->guard, &world_patient));
    begin(&match, contest, client);
    if (contest->walks_in)
        expect_walk_in(&match);
    else
        expect_exclusion(&match);
    close(match.file);
    lk_close(client);
}
