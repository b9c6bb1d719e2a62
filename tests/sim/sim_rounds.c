/* Many seeds, each in a process of its own, and twice. */
#include "sim_rounds.h"
#include "sim_shrink.h"
#include "sim_threads.h"
#include "sim_watch.h"
#include "sim_world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A run takes a tenth of a second of the processor, a few with sanitizers. A run that takes more
 * than CPU_S goes round in circles; one that lasts longer than WALL_S sleeps in real time. */
enum { JOBS_MAX = 64, CPU_S = 20, WALL_S = 1800, CANARY_EVERY = 50 };

static struct sim_sum sum;
static const struct sim_less as_drawn;

/* Of a pair of runs of one seed. */
struct job {
    uint64_t seed;
    pid_t pid;
    struct sim_result result[2];
};

static bool is_canary(uint64_t seed)
{
    return seed % CANARY_EVERY == 0;
}

static void draw(uint64_t seed, struct sim_settings *ret)
{
    sim_begin(seed, 0);
    if (is_canary(seed))
        sim_settings_canary(ret, seed);
    else
        sim_settings_draw(ret, seed);
}

static void run_seed(uint64_t seed, const struct sim_less *less, struct sim_result *ret,
                     FILE *timeline)
{
    struct sim_settings settings;
    draw(seed, &settings);
    sim_less_apply(less, &settings);
    sim_begin(seed + ((uint64_t)less->run << 32), settings.steps_per_switch);
    if (timeline)
        sim_settings_print(&settings, timeline);
    sim_world_run(&settings, ret, timeline);
}

void sim_limit_cpu(unsigned seconds)
{
    const struct rlimit limit = {.rlim_cur = seconds, .rlim_max = seconds + 1};
    if (setrlimit(RLIMIT_CPU, &limit) != 0)
        abort();
}

static void in_child(uint64_t seed, const struct sim_less *less, bool watched,
                     struct sim_result *ret)
{
    alarm(WALL_S);
    sim_limit_cpu(CPU_S);
    snprintf(ret->broken, sizeof ret->broken, "the process ended");
    if (!freopen("/dev/null", "w", stderr))
        _exit(1);
    struct sim_result result;
    sim_watch_begin(watched);
    run_seed(seed, less, &result, NULL);
    *ret = result;
    _exit(0);
}

/* *ret is in shared memory. */
static void run_child(uint64_t seed, const struct sim_less *less, bool watched,
                      struct sim_result *ret)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        in_child(seed, less, watched, ret);
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        snprintf(ret->broken, sizeof ret->broken, "no end after %d s of the processor", CPU_S);
    else if (WIFSIGNALED(status))
        snprintf(ret->broken, sizeof ret->broken, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
}

/* A planted mistake is sought (plants.py): each seed runs once, until one breaks a promise. */
static bool until_broken(void)
{
    return getenv("SIM_UNTIL_BROKEN") != NULL;
}

static void start(struct job *job, uint64_t seed)
{
    job->seed = seed;
    pid_t middle = fork();
    if (middle != 0) { /* the job is in shared memory: only the parent writes it */
        job->pid = middle;
        return;
    }
    for (int i = 0; i < (until_broken() ? 1 : 2); i++)
        run_child(seed, &as_drawn, i == 0, &job->result[i]);
    _exit(0);
}

static void fail(const struct job *job, const char *what)
{
    if (sum.broken + sum.differing == 1)
        sum.first_failed = job->seed;
    printf("seed %" PRIu64 ": %s\n  TEST_SEED=%" PRIu64 " runs it again and prints its timeline\n",
           job->seed, what, job->seed);
    fflush(stdout);
}

static void finish(struct job *job)
{
    const struct sim_result *first = &job->result[0], *second = &job->result[1];
    sum.seeds++;
    sum.deals += first->deals;
    sum.looks += first->looks;
    sum.virtual_s += (double)first->virtual_us / 1e6;
    for (int i = 0; i < SIM_EVENTS; i++) {
        sum.events[i] += first->events[i];
        sum.runs_with[i] += first->events[i] > 0;
    }
    if (is_canary(job->seed)) {
        sum.canaries++;
        sum.canaries_caught += first->events[SIM_FORK] > 0;
    }
    if (first->broken[0] != '\0') {
        if (sum.broken++ == 0)
            sum.first_broken = job->seed;
        fail(job, first->broken);
    } else if (!until_broken() && first->hash != second->hash) {
        sum.differing++;
        fail(job, "two runs differ");
    }
    job->pid = 0;
}

int __real_clock_gettime(clockid_t clock, struct timespec *ret);

double sim_real_s(void)
{
    struct timespec now;
    __real_clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The next seed whose settings are of that, if it is not NULL. */
static uint64_t first_of(const char *only, uint64_t seed, uint64_t end)
{
    struct sim_settings settings;
    for (; only && seed < end; seed++) {
        draw(seed, &settings);
        if (sim_settings_are_of(&settings, only))
            break;
    }
    return seed;
}

static void run_all(struct job *jobs, int n_jobs, uint64_t next, uint64_t end, double until_s)
{
    const char *only = getenv("SIM_ONLY");
    int running = 0;
    while (next < end || running > 0) {
        if (sim_real_s() >= until_s || (until_broken() && sum.broken > 0))
            end = next;
        for (int i = 0; i < n_jobs && (next = first_of(only, next, end)) < end; i++)
            if (jobs[i].pid == 0) {
                memset(&jobs[i], 0, sizeof jobs[i]);
                sum.last = next;
                start(&jobs[i], next++);
                running++;
            }
        pid_t pid = running > 0 ? wait(NULL) : 0;
        if (pid < 0)
            abort();
        for (int i = 0; i < n_jobs; i++)
            if (jobs[i].pid == pid && pid > 0) {
                finish(&jobs[i]);
                running--;
            }
    }
}

static void print_counts(const char *name, const uint64_t *counts, FILE *out)
{
    fprintf(out, ",\n  \"%s\": {", name);
    for (int i = 0; i < SIM_EVENTS; i++)
        fprintf(out, "%s\n    \"%s\": %" PRIu64, i ? "," : "", sim_event_texts[i], counts[i]);
    fprintf(out, "\n  }");
}

void sim_sum_print(const struct sim_sum *is, FILE *out)
{
    fprintf(out,
            "{\n  \"seeds\": %" PRIu64 ", \"last\": %" PRIu64
            ", \"seconds\": %.1f, \"deals\": %" PRIu64 ", \"looks\": %" PRIu64
            ", \"virtual_seconds\": %.0f,\n  \"broken\": %" PRIu64 ", \"differing\": %" PRIu64
            ", \"canaries\": %" PRIu64 ", \"canaries_caught\": %" PRIu64,
            is->seeds, is->last, is->seconds, is->deals, is->looks, is->virtual_s, is->broken,
            is->differing, is->canaries, is->canaries_caught);
    print_counts("events", is->events, out);
    print_counts("runs_with", is->runs_with, out);
    fprintf(out, "\n}\n");
}

void sim_rounds(uint64_t from, uint64_t seeds, int n_jobs, double most_s, struct sim_sum *ret)
{
    struct job *jobs = mmap(NULL, JOBS_MAX * sizeof *jobs, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (jobs == MAP_FAILED || n_jobs < 1 || n_jobs > JOBS_MAX)
        abort();
    memset(&sum, 0, sizeof sum);
    double begin_s = sim_real_s();
    run_all(jobs, n_jobs, from, from + seeds, begin_s + most_s);
    sum.seconds = sim_real_s() - begin_s;
    munmap(jobs, JOBS_MAX * sizeof *jobs);
    *ret = sum;
}

/* -- one seed --------------------------------------------------------------------------------- */

static struct sim_result *tried; /* in shared memory */

static bool breaks(uint64_t seed, const struct sim_less *less)
{
    memset(tried, 0, sizeof *tried);
    run_child(seed, less, true, tried);
    return tried->broken[0] != '\0';
}

/* The run is to end the process. Returns its exit code. */
static int tell(uint64_t seed, const struct sim_less *less)
{
    struct sim_result result;
    sim_watch_begin(true);
    run_seed(seed, less, &result, stdout);
    printf("\n  %s\n  %s, hash %016" PRIx64 "\n",
           result.broken[0] ? "UNSAFE: a promise is broken." : "SAFE: nothing was lost.",
           result.broken[0] ? result.broken : "nothing broken", result.hash);
    fflush(stdout);
    return result.broken[0] != '\0';
}

/* False: that run breaks nothing. */
bool sim_shrink_seed(uint64_t seed, const struct sim_less *begin, double most_s,
                     struct sim_shrunk *ret)
{
    struct sim_settings drawn;
    draw(seed, &drawn);
    tried = mmap(NULL, sizeof *tried, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tried == MAP_FAILED)
        abort();
    const bool failed = breaks(seed, begin);
    if (failed)
        sim_shrink(&drawn, begin, breaks, most_s, ret);
    munmap(tried, sizeof *tried);
    return failed;
}

void sim_tell_shrunk(uint64_t seed, const struct sim_less *begin, double most_s)
{
    struct sim_shrunk shrunk;
    char text[SIM_LESS_TEXT_MAX];
    int status;
    fflush(stdout);
    if (!sim_shrink_seed(seed, begin, most_s, &shrunk))
        return;
    sim_less_print(&shrunk.less, text);
    printf("\nseed %" PRIu64 ", shrunk in %u runs:\n  TEST_SEED=%" PRIu64
           " TEST_LESS=%s runs it again\n",
           seed, shrunk.runs, seed, text);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(tell(seed, &shrunk.less));
    waitpid(pid, &status, 0);
}

int sim_replay(uint64_t seed, const struct sim_less *less, double shrink_s)
{
    if (shrink_s > 0)
        sim_tell_shrunk(seed, less, shrink_s);
    return shrink_s > 0 ? 0 : tell(seed, less);
}

/* Equal addresses in each process, so that nothing of a run hangs on them. */
void sim_without_random_addresses(char **argv)
{
    int now = personality(0xffffffff);
    if (now != -1 && !(now & ADDR_NO_RANDOMIZE) &&
        personality((unsigned)now | ADDR_NO_RANDOMIZE) != -1)
        execv("/proc/self/exe", argv);
}
