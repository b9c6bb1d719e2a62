/* hazards: makes each lock fail on purpose, with real servers, and reports what was lost. */
#include "beside.h"
#include "exit_status.h"
#include "hazard_options.h"
#include "hazard_report.h"
#include "lockkit.h"
#include "output.h"
#include "steady.h"
#include "json_memory.h"

#include <argp.h>
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char program[] = "hazards";
const char *argp_program_version = "hazards " LK_VERSION;
static volatile sig_atomic_t stop;

static void on_signal(int signal)
{
    (void)signal;
    stop = 1;
}

/* -- choosing and running ---------------------------------------------------------------------- */

static void choose(const struct hazard_options *options, struct lab_report *report)
{
    for (size_t i = 0; hazard_list[i] != NULL; i++) {
        const struct hazard *hazard = hazard_list[i];
        for (const struct hazard_case *one = hazard->cases; one->guard != NULL; one++) {
            if (!hazard_options_want(options, hazard, one))
                continue;
            assert(report->n_results < LAB_RESULTS_MAX);
            report->results[report->n_results++] =
                (struct lab_result){.hazard = hazard, .one = one};
        }
    }
}

/* The order of the runs. The results stay in the catalogue's order. Shuffled after Fisher and
 * Yates, with Knuth's MMIX generator. A seed other than 0 tests that no run depends on the one
 * before it. */
static void shuffle(const struct lab_report *report, int order[LAB_RESULTS_MAX])
{
    uint64_t state = report->seed;
    for (int i = 0; i < report->n_results; i++)
        order[i] = i;
    for (int i = report->n_results - 1; i > 0 && report->seed != 0; i--) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int j = (int)((state >> 33) % (uint64_t)(i + 1));
        int swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
}

/* Progress is shown on a terminal, unless the runs are narrated. */
static bool shows_progress(const struct hazard_options *options)
{
    return !options->narrate && isatty(STDERR_FILENO);
}

static void clear_progress(const struct hazard_options *options)
{
    if (shows_progress(options))
        fputs("\r\033[K", stderr);
}

static void show_progress(const struct hazard_options *options, const struct lab_report *report,
                          int i, const struct lab_result *result)
{
    if (!shows_progress(options))
        return;
    clear_progress(options);
    fprintf(stderr,
            options->language == ZH ? "%d / %d：%.30s，%.30s" : "%d of %d: %.30s under %.30s",
            i + 1, report->n_results, result->hazard->id, result->one->guard);
    fflush(stderr);
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
        .stop = &stop,
    };
    int64_t start_us = steady_us();
    for (int i = 0; i < options->repeat && !stop; i++) {
        int failed = hazard_run_once(world, result->hazard, result->one, &how, run);
        if (stop) /* a run that was interrupted proves nothing */
            break;
        if (failed == 0)
            failed = lab_result_add(result, run);
        if (failed != 0) {
            clear_progress(options);
            fprintf(stderr, "hazards: %s under %s: %s\n", result->hazard->id, result->one->guard,
                    run->message);
            return -1;
        }
    }
    result->took_us = steady_us() - start_us;
    if (!lab_result_agrees(result)) {
        clear_progress(options);
        lab_report_mismatch(result, options->language, stderr);
    }
    return 0;
}

/* If one case fails to run, the others still run. */
static int run_all(const struct hazard_options *options, struct lab_report *report)
{
    static struct hazard_run run;
    struct world world;
    int order[LAB_RESULTS_MAX], result = 0;
    if (world_open(&world, options->seckilld, options->clock_shim) != 0)
        return -1;
    shuffle(report, order);
    for (int i = 0; i < report->n_results && !stop; i++) {
        show_progress(options, report, i, &report->results[order[i]]);
        if (run_case(&world, options, &report->results[order[i]], &run) != 0)
            result = -1;
    }
    clear_progress(options);
    world_close(&world);
    return result;
}

/* -- output ------------------------------------------------------------------------------------ */

static int write_html(const struct lab_report *report, const char *path)
{
    FILE *out = output_open(program, path);
    if (out == NULL)
        return -1;
    lab_report_to_html(report, out);
    return output_close(program, path, out);
}

static void list_hazard(const struct hazard_options *options, const struct hazard *hazard)
{
    printf("%-24s %s\n", hazard->id, hazard->title[options->language]);
    for (const struct hazard_case *one = hazard->cases; one->guard != NULL; one++) {
        const char *as = one->as[options->language];
        if (hazard_options_want(options, hazard, one))
            printf("  %-24s %-*s%s\n", one->guard, as != NULL ? 9 : 0,
                   lab_outcome_word(one->expected, options->language), as != NULL ? as : "");
    }
}

static int list(const struct hazard_options *options, const struct lab_report *wanted)
{
    if (options->json != NULL)
        return output_json(program, options->json, lab_list_to_json(options)) == 0 ? EXIT_SUCCESS
                                                                                   : EXIT_FAILURE;
    const struct hazard *last = NULL; /* the cases of a hazard are adjacent */
    for (int i = 0; i < wanted->n_results; i++) {
        const struct hazard *hazard = wanted->results[i].hazard;
        if (hazard == last)
            continue;
        last = hazard;
        if (options->markdown)
            lab_row_to_markdown(hazard, options, stdout);
        else
            list_hazard(options, hazard);
    }
    return EXIT_SUCCESS;
}

static int run(const struct hazard_options *options, struct lab_report *report)
{
    int status = run_all(options, report) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    if (status == EXIT_SUCCESS && lab_mismatches(report) != 0)
        status = EXIT_BROKEN;
    if (stop)
        status = EXIT_INTERRUPTED;
    bool data_on_stdout = options->json != NULL && strcmp(options->json, "-") == 0;
    FILE *out = data_on_stdout ? stderr : stdout;
    report->language = options->language;
    lab_report_to_text(report, out);
    if (options->json != NULL &&
        output_json(program, options->json, lab_report_to_json(report)) != 0)
        status = EXIT_FAILURE;
    if (options->html != NULL && write_html(report, options->html) != 0)
        status = EXIT_FAILURE;
    const char *const files[] = {options->json, options->html};
    if (status != EXIT_FAILURE && options->language == EN) /* it is told in English */
        output_tell(out, files, sizeof files / sizeof *files);
    return status;
}

static int list_or_run(const struct hazard_options *options, bool lists)
{
    struct lab_report *report = calloc(1, sizeof *report);
    if (report == NULL) {
        fprintf(stderr, "hazards: out of memory\n");
        return EXIT_FAILURE;
    }
    report->seed = options->seed;
    report->repeat = options->repeat;
    choose(options, report);
    int status = EXIT_USAGE;
    if (report->n_results == 0)
        fprintf(stderr, "hazards: no case of these hazards has these guards\n");
    else
        status = lists ? list(options, report) : run(options, report);
    lab_report_free(report);
    free(report);
    return status;
}

/* -- start --------------------------------------------------------------------------------------
 */

int main(int argc, char **argv)
{
    struct hazard_options options;
    char path[4096], shim[4096], name[32], json_to_stdout[] = "--json=-";
    output_check_at_exit(program);
    json_memory_or_end(program);
    if (argc >= 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        puts(argp_program_version);
        return EXIT_SUCCESS;
    }
    bool lists = argc >= 2 && strcmp(argv[1], "list") == 0;
    if (argc < 2 || (!lists && strcmp(argv[1], "run") != 0)) {
        bool help = argc >= 2 && strcmp(argv[1], "--help") == 0;
        if (argc >= 2 && !help)
            fprintf(stderr, "hazards: unknown command '%s'\n", argv[1]);
        fprintf(help ? stdout : stderr,
                "Usage: hazards list [OPTION...] | run [OPTION...]\n"
                "Makes each lock fail on purpose, with real servers, and says what was lost.\n"
                "'hazards list --help' and 'hazards run --help' tell more.\n");
        return help ? EXIT_SUCCESS : EXIT_USAGE;
    }
    if (lists && argc == 3 && strcmp(argv[2], "--json") == 0)
        argv[2] = json_to_stdout;
    snprintf(name, sizeof name, "hazards %s", argv[1]);
    argv[1] = name;
    hazard_options_parse(lists, argc - 1, argv + 1, &options);
    const char *const files[] = {options.json, options.html};
    if (output_check_files(program, files, sizeof files / sizeof *files) != 0)
        return EXIT_FAILURE;
    if (lists)
        return list_or_run(&options, true);
    options.seckilld =
        beside(program, "seckilld", "--seckilld", options.seckilld, X_OK, path, sizeof path);
    options.clock_shim = beside(program, "libclockshim.so", NULL, NULL, R_OK, shim, sizeof shim);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    return options.seckilld == NULL || options.clock_shim == NULL ? EXIT_FAILURE
                                                                  : list_or_run(&options, false);
}
