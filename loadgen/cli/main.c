/* loadgen: drives the service from outside and reports what was lost, in units and money. */
#include "check_command.h"
#include "json_memory.h"
#include "judged_command.h"
#include "demo.h"
#include "output.h"
#include "follow_command.h"
#include "http_load_command.h"
#include "lockkit.h"
#include "compare_command.h"
#include "levels_command.h"
#include "serve.h"
#include "site_command.h"

#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOAD_NOTES                                                                                 \
    "\nExit status: 0 every guard was as it claims, 1 failure, 2 usage, 99 a guard was not as it " \
    "claims (an unguarded one must lose), 130 interrupted."

static const struct command commands[] = {
    {"sale", "one item, many buyers: oversold, undersold",
     "Sells one item to many buyers at the same time and checks that exactly the stock was sold.\v"
     "Examples:\n"
     "  loadgen sale --url http://127.0.0.1:8080\n"
     "  loadgen sale --url http://127.0.0.1:8080 --guards none,redis-token\n"
     "  loadgen sale --url http://[::1]:8081,http://[::1]:8082 --guards mutex\n"
     "  loadgen sale --url http://127.0.0.1:8080 --mode rate --rate 500\n" LOAD_NOTES,
     &options_load_argp, judged_sale},
    {"accounts", "many changes to few balances: lost updates, lost amount",
     "Changes a few balances from many connections and checks that no change was lost.\v"
     "Examples:\n"
     "  loadgen accounts --url http://127.0.0.1:8080 --pairs 200\n"
     "  loadgen accounts --url http://127.0.0.1:8080 --duplicates 30\n" LOAD_NOTES,
     &options_load_argp, judged_accounts},
    {"transfers", "money moving between accounts: sum conserved, none negative",
     "Moves money between a few accounts in both directions at once and checks that none was lost "
     "or made.\v"
     "Example:\n"
     "  loadgen transfers --url http://127.0.0.1:8080 --duration 10s\n" LOAD_NOTES,
     &options_load_argp, judged_transfers},
    {"demo", "everything private: the same sale under several guards",
     "Starts a private Redis and two instances of the service, runs the same sale and the same "
     "balance changes under several guards, prints the verdicts and stops everything.\v"
     "Example:\n  loadgen demo --html report.html\n" LOAD_NOTES,
     &options_demo_argp, demo_run},
    {"serve", "a service to play with, with private lock servers",
     "Starts three private Redis, memcached, ZooKeeper and PostgreSQL, and two instances of the "
     "service, with a sample item and account; Ctrl-C stops them all.\v"
     "Examples:\n  loadgen serve --listen 127.0.0.1:8080\n"
     "  loadgen serve --follow --site build/site\n",
     &options_serve_argp, serve_run},
    {"check", "the checkers on a history that a run has written",
     "Looks for breaches in a history: answers that fit no order of the requests "
     "(linearizability), "
     "changes lost or made twice, stock oversold, money that does not add up, fences that fall, "
     "answers to one key that differ.\v"
     "Example:\n"
     "  loadgen accounts --url http://127.0.0.1:8080 --guards none --history h.jsonl\n"
     "  curl -s http://127.0.0.1:8080/v1/audit > audit.json\n"
     "  loadgen check h.jsonl --audit audit.json\n",
     &options_check_argp, check_command},
    {"compare", "two reports side by side: ratios, with their noise",
     "Shows what two reports have in common: medians over their runs, ratios with their intervals, "
     "and whether the difference is more than noise. Runs of one report are made in turn with "
     "--repeat.\v"
     "Example:\n"
     "  loadgen sale --url http://127.0.0.1:8080 --repeat 10 --json before.json\n"
     "  loadgen sale --url http://127.0.0.1:8081 --repeat 10 --json after.json\n"
     "  loadgen compare before.json after.json --fail-if rate,p99\n"
     "In turn, for a machine that changes its pace:\n"
     "  for i in 1 2 3 4 5 6 7 8; do\n"
     "    loadgen sale --url http://127.0.0.1:8080 --json a$i.json\n"
     "    loadgen sale --url http://127.0.0.1:8081 --json b$i.json\n"
     "    pairs=\"$pairs a$i.json b$i.json\"\n"
     "  done\n"
     "  loadgen compare $pairs\n",
     &options_compare_argp, compare_command},
    {"levels", "all schedules of the levels, each run on the real service",
     "Starts the service with a private Redis. Moves the requests of each level in every order "
     "that "
     "can happen, and records each run with its ledger rows. 'loadgen site' makes a game of it.\v"
     "Example:\n  loadgen levels --json levels.json\n",
     &options_levels_argp, levels_command},
    {"site", "static pages that play what the lab has recorded",
     "Makes the museum: pages that open without a server and play the runs of the lab, step by "
     "step. "
     "A scene whose recording contradicts it is an error.\v"
     "Example:\n"
     "  hazards run --json lab.json\n"
     "  loadgen demo --json demo.json\n"
     "  loadgen levels --json levels.json\n"
     "  loadgen site --lab lab.json --demo demo.json --levels levels.json --out site\n",
     &options_site_argp, site_command},
    {"follow", "the museum for a class: phones go along with the presenter",
     "Serves the museum's pages to the phones of a class. They go along with the page of the "
     "presenter, and vote. The last line has the presenter's address, with a key: tell nobody.\v"
     "Examples:\n"
     "  loadgen follow --site build/site\n"
     "  loadgen follow --site build/site --listen 192.168.1.5:8090\n",
     &options_follow_argp, follow_command},
    {"http", "plain load on any HTTP server, no verdict",
     "Sends the same request again and again to any HTTP server and shows rate and latency.\v"
     "Examples:\n"
     "  loadgen http http://127.0.0.1:8080/livez --duration 10s\n"
     "  loadgen http http://127.0.0.1:8080/livez --mode rate --rate 1000\n"
     "  loadgen http http://127.0.0.1:8080/v1/items/1/orders \\\n"
     "    --header 'Idempotency-Key: {{uuid}}' \\\n"
     "    --header 'Content-Type: application/json' \\\n"
     "    --body '{\"user_id\":\"u{{seq}}\",\"quantity\":1}'\n"
     "  loadgen http http+unix:///run/service.sock\n"
     "Placeholders in path, headers and body: {{seq}}, {{uuid}}, {{random}},\n{{random A B}}.\n",
     &http_load_command_argp, http_load_command},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

const char *argp_program_version = "loadgen " LK_VERSION;

static atomic_bool stop;

/* The first Ctrl-C ends the load and shows the results. A second one ends the program. */
static void on_signal(int signal)
{
    (void)signal;
    atomic_store(&stop, true);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void usage(FILE *out)
{
    fprintf(out, "Usage: loadgen COMMAND [OPTION...]\n"
                 "Drives a flash-sale service from outside and says what was lost.\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\n'loadgen COMMAND --help' tells more and shows examples.\n");
}

int main(int argc, char **argv)
{
    static struct options options;
    char name[64];
    output_check_at_exit("loadgen");
    json_memory_or_end("loadgen");
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0)) {
        usage(stdout);
        return EXIT_SUCCESS;
    }
    if (argc >= 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        puts(argp_program_version);
        return EXIT_SUCCESS;
    }
    for (int i = 0; argc >= 2 && i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            snprintf(name, sizeof name, "loadgen %s", commands[i].name);
            argv[1] = name;
            options_parse(&commands[i], argc - 1, argv + 1, &options);
            const char *const files[] = {options.json, options.html, options.csv};
            if (output_check_files(name, files, sizeof files / sizeof *files) != 0)
                return EXIT_FAILURE;
            options.stop = &stop;
            catch_signals();
            return commands[i].run(&options);
        }
    if (argc >= 2)
        fprintf(stderr, "loadgen: unknown command '%s'\n", argv[1]);
    usage(stderr);
    return EXIT_USAGE;
}
