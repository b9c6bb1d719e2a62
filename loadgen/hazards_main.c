/* hazards: makes each lock fail, on purpose, with real servers, and says what was lost. */
#include "hazard_options.h"
#include "hazard_report.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_MISMATCH = 99, EXIT_INTERRUPTED = 130 };

static volatile sig_atomic_t stop;

static void on_signal(int signal)
{
    (void)signal;
    stop = 1;
}

/* -- what is to be run --------------------------------------------------------------------------
 */

static bool wants(const char *const *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return n == 0;
}

static void choose(const struct hazard_options *options, struct lab_report *report)
{
    for (size_t i = 0; hazard_list[i] != NULL; i++) {
        const struct hazard *hazard = hazard_list[i];
        if (!wants(options->hazards, options->n_hazards, hazard->id))
            continue;
        for (const struct hazard_case *one = hazard->cases; one->guard != NULL; one++) {
            if (!wants(options->guards, options->n_guards, one->guard))
                continue;
            assert(report->n_results < LAB_RESULTS_MAX);
            report->results[report->n_results++] =
                (struct lab_result){.hazard = hazard, .one = one};
        }
    }
}

/* Fisher and Yates; the generator is Knuth's MMIX one. A seed other than 0 shows that no run leans
 * on the one before it. */
static void shuffle(struct lab_report *report)
{
    uint64_t state = report->seed;
    for (int i = report->n_results - 1; i > 0 && report->seed != 0; i--) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int j = (int)((state >> 33) % (uint64_t)(i + 1));
        struct lab_result swapped = report->results[i];
        report->results[i] = report->results[j];
        report->results[j] = swapped;
    }
}

static int run_case(struct world *world, const struct hazard_options *options,
                    struct lab_result *result, struct hazard_run *run)
{
    FILE *narrate = options->json == NULL ? stdout : stderr;
    const struct run_how how = {
        .narrate = options->narrate ? narrate : NULL,
        .language = options->language,
        .step = options->step,
        .patience_ms = options->patience_ms,
    };
    int64_t start_us = run_now_us();
    for (int i = 0; i < options->repeat && !stop; i++) {
        int failed = hazard_run_once(world, result->hazard, result->one, &how, run);
        if (failed == 0)
            failed = lab_result_add(result, run);
        if (failed != 0) {
            fprintf(stderr, "hazards: %s under %s: %s\n", result->hazard->id, result->one->guard,
                    run->message);
            return -1;
        }
    }
    result->took_us = run_now_us() - start_us;
    lab_report_line(result, stderr);
    return 0;
}

static int run_all(const struct hazard_options *options, struct lab_report *report)
{
    static struct hazard_run run;
    struct world world;
    int result = 0;
    if (world_open(&world, options->seckilld, options->clock_shim) != 0)
        return -1;
    for (int i = 0; i < report->n_results && result == 0 && !stop; i++)
        result = run_case(&world, options, &report->results[i], &run);
    world_close(&world);
    return result;
}

/* -- what comes out -----------------------------------------------------------------------------
 */

static FILE *open_output(const char *path)
{
    char folder[4096];
    if (strcmp(path, "-") == 0)
        return stdout;
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0777);
        *slash = '/';
    }
    FILE *out = fopen(path, "w");
    if (out == NULL)
        fprintf(stderr, "hazards: cannot write %s: %s\n", path, strerror(errno));
    return out;
}

static int close_output(FILE *out, const char *path)
{
    bool failed = ferror(out) != 0;
    failed |= (out == stdout ? fflush(out) : fclose(out)) != 0;
    if (failed)
        fprintf(stderr, "hazards: cannot write %s\n", path);
    return failed ? -1 : 0;
}

static int write_json(json_t *json, const char *path)
{
    FILE *out = open_output(path);
    int result = -1;
    if (out != NULL && json != NULL && json_dumpf(json, out, JSON_INDENT(1)) == 0)
        result = fputc('\n', out) == EOF ? -1 : 0;
    if (out != NULL && close_output(out, path) != 0)
        result = -1;
    json_decref(json);
    return result;
}

static int write_html(const struct lab_report *report, const char *path)
{
    FILE *out = open_output(path);
    if (out == NULL)
        return -1;
    lab_report_to_html(report, out);
    return close_output(out, path);
}

static int list(const struct hazard_options *options)
{
    if (options->json != NULL)
        return write_json(lab_list_to_json(), options->json) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    for (size_t i = 0; hazard_list[i] != NULL; i++) {
        const struct hazard *hazard = hazard_list[i];
        if (options->markdown) {
            lab_row_to_markdown(hazard, stdout);
            continue;
        }
        printf("%-24s %s\n", hazard->id, hazard->title[options->language]);
        for (const struct hazard_case *one = hazard->cases; one->guard != NULL; one++) {
            const char *as = one->as[options->language];
            printf("  %-24s %-8s %s\n", one->guard, hazard_outcome_text(one->expected),
                   as != NULL ? as : "");
        }
    }
    return EXIT_SUCCESS;
}

static int run(const struct hazard_options *options)
{
    struct lab_report *report = calloc(1, sizeof *report);
    if (report == NULL)
        return EXIT_FAILURE;
    report->seed = options->seed;
    choose(options, report);
    shuffle(report);
    int status = HAZARD_EXIT_USAGE;
    if (report->n_results == 0) {
        fprintf(stderr, "hazards: no case of these hazards has these guards\n");
        goto out;
    }
    status = run_all(options, report) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    if (stop)
        status = EXIT_INTERRUPTED;
    if (status != EXIT_SUCCESS)
        goto out;
    int mismatches = lab_mismatches(report);
    fprintf(stderr, "%d cases, %d mismatches\n", report->n_results, mismatches);
    status = mismatches == 0 ? EXIT_SUCCESS : EXIT_MISMATCH;
    if (options->json != NULL && write_json(lab_report_to_json(report), options->json) != 0)
        status = EXIT_FAILURE;
    if (options->html != NULL && write_html(report, options->html) != 0)
        status = EXIT_FAILURE;
out:
    lab_report_free(report);
    free(report);
    return status;
}

/* -- start --------------------------------------------------------------------------------------
 */

/* A file beside this program, unless it is given. NULL: not there. */
static const char *find_beside(const char *name, const char *given, char *buffer, size_t size)
{
    if (given != NULL) {
        snprintf(buffer, size, "%s", given);
    } else {
        ssize_t length = readlink("/proc/self/exe", buffer, size - 32);
        buffer[length < 0 ? 0 : length] = '\0';
        char *slash = strrchr(buffer, '/');
        strcpy(slash == NULL ? buffer : slash + 1, name);
    }
    if (access(buffer, R_OK) == 0)
        return buffer;
    fprintf(stderr, "hazards: there is no %s; build it%s\n", buffer,
            given != NULL ? "" : " with make");
    return NULL;
}

int main(int argc, char **argv)
{
    struct hazard_options options;
    char path[4096], shim[4096], name[32];
    bool lists = argc >= 2 && strcmp(argv[1], "list") == 0;
    if (argc < 2 || (!lists && strcmp(argv[1], "run") != 0)) {
        bool help = argc >= 2 && strcmp(argv[1], "--help") == 0;
        fprintf(help ? stdout : stderr,
                "Usage: hazards list [--json FILE] | run [OPTION...]\n"
                "Makes each lock fail on purpose, with real servers, and says what was lost.\n"
                "'hazards run --help' tells more.\n");
        return help ? EXIT_SUCCESS : HAZARD_EXIT_USAGE;
    }
    if (lists && argc == 3 && strcmp(argv[2], "--json") == 0)
        return write_json(lab_list_to_json(), "-") == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    snprintf(name, sizeof name, "hazards %s", argv[1]);
    argv[1] = name;
    hazard_options_parse(argc - 1, argv + 1, &options);
    if (lists)
        return list(&options);
    options.seckilld = find_beside("seckilld", options.seckilld, path, sizeof path);
    options.clock_shim = find_beside("libclockshim.so", NULL, shim, sizeof shim);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    return options.seckilld == NULL || options.clock_shim == NULL ? EXIT_FAILURE : run(&options);
}
