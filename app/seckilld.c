/* The service's main: settings, start, drain, end. */
#include "answer.h"
#include "business.h"
#include "config.h"
#include "demo_sale.h"
#include "guard.h"
#include "http.h"
#include "lab.h"
#include "last_resort.h"
#include "lockkit.h"
#include "notify.h"
#include "service.h"
#include "tokens.h"
#include "upkeep_command.h"

#include <argp.h>
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static_assert(3 * GUARD_COMMAND_TIMEOUT_MS < HTTP_GRACE_MS && HTTP_GRACE_MS < 1000,
              "the service answers a request that gets no lock, before the HTTP side answers 503");

const char *argp_program_version = "seckilld " LK_VERSION; /* for --version */

enum {
    SIGNAL_BASE = 128,
    HEARD_PER_WATCHDOG = 3,
    /* seckilld.8 promises the end within --wait-ms and 10 s. Operations have --wait-ms and 3 s,
     * service_drain() 2 s more, the last answers 2 s; the rest is for closing. */
    OPERATIONS_MS = 3000,
    ANSWERS_MS = 2000,
    END_MS = 9900
};

static void exit_at_once(int signal_number)
{
    _exit(SIGNAL_BASE + signal_number);
}

static void print_start(const struct config *config, size_t tokens)
{
    char store[2 * CONFIG_TEXT_MAX];
    config_mask(config->db, store, sizeof store);
    fprintf(stderr,
            "level=info event=start instance=%s db=%s sync=%s guard=%s lanes=%s batch=%lld "
            "workers=%lld lease_ms=%lld wait_ms=%lld watchdog=%s fence=%s fence_source=%s "
            "access=%s%s%s\n",
            config->instance, store, config->sync_normal ? "normal" : "full", config->guard,
            config->lanes ? "on" : "off", (long long)config->batch, (long long)config->workers,
            (long long)config->lease_ms, (long long)config->wait_ms,
            config->watchdog ? "on" : "off", config->fence ? "on" : "off",
            config->fence_database ? "database" : "lock",
            !config->open ? "tokens"
            : tokens > 0  ? "tokens,open"
                          : "open",
            config->lab ? " lab=on" : "", config->demo ? " demo=on" : "");
}

static void tell_manager(const char *state)
{
    if (notify(state) != 0)
        fprintf(stderr, "level=warning event=notify state=%s error=\"%s\"\n", state,
                strerror(errno));
}

static void reload(struct tokens *tokens)
{
    char message[256], escaped[2 * sizeof message];
    if (tokens_load(tokens, message, sizeof message) == 0) {
        fprintf(stderr, "level=info event=reload tokens=%zu\n", tokens_count(tokens));
        return;
    }
    json_escape(escaped, sizeof escaped, message);
    fprintf(stderr, "level=error event=reload error=\"%s\" tokens=unchanged\n", escaped);
}

/* Waits for the signal to end. The service manager hears in time that requests are served. */
static int serve(struct http *http, struct tokens *tokens, const sigset_t *signals)
{
    const int64_t watchdog_ms = notify_watchdog_ms();
    const int64_t wait_ms = (watchdog_ms + HEARD_PER_WATCHDOG - 1) / HEARD_PER_WATCHDOG;
    const struct timespec wait = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};
    tell_manager("READY=1");
    for (;;) {
        if (watchdog_ms > 0 && http_turns(http, wait_ms))
            tell_manager("WATCHDOG=1");
        const int signal_number =
            watchdog_ms > 0 ? sigtimedwait(signals, NULL, &wait) : sigwaitinfo(signals, NULL);
        if (signal_number == SIGHUP)
            reload(tokens);
        else if (signal_number > 0)
            return signal_number;
    }
}

/* Finishes what was accepted. A second signal exits at once. */
static void drain(const struct config *config, struct http *http, struct service *service,
                  const sigset_t *signals, int signal_number)
{
    fprintf(stderr, "level=info event=drain signal=%d delay_ms=%lld\n", signal_number,
            (long long)config->drain_delay_ms);
    tell_manager("STOPPING=1");
    struct sigaction action = {.sa_handler = exit_at_once};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGHUP, SIG_IGN);
    pthread_sigmask(SIG_UNBLOCK, signals, NULL);
    last_resort_after(config->drain_delay_ms + config->wait_ms + END_MS);

    http_not_ready(http);
    const struct timespec delay = {.tv_sec = config->drain_delay_ms / 1000,
                                   .tv_nsec = config->drain_delay_ms % 1000 * 1000000};
    nanosleep(&delay, NULL);
    http_drain(http);
    const bool done = service_drain(service, config->wait_ms + OPERATIONS_MS);
    const bool sent = http_drained(http, ANSWERS_MS);
    if (!done || !sent)
        fprintf(stderr, "level=warning event=drain-incomplete operations=%s answers=%s\n",
                done ? "done" : "pending", sent ? "sent" : "pending");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "token") == 0)
        return tokens_make(argc - 1, argv + 1);
    struct config config;
    int status = upkeep_command(argc, argv);
    if (status < 0)
        status = config_load(argc, argv, lab_is_built, &config);
    if (status >= 0)
        return status;

    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* every thread inherits it; main takes them */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of the store, not the end */

    struct service *service;
    struct http *http;
    struct tokens *tokens = config_tokens(&config);
    if (tokens == NULL)
        return 2;
    print_start(&config, tokens_count(tokens));
    const struct lab *lab = config.lab ? lab_open(&config) : NULL;
    if (service_open(&config, &business, lab != NULL ? lab->seams : NULL, &service) != 0) {
        tokens_close(tokens);
        return 1;
    }
    struct http_limits limits = http_limits_default;
    if (lab != NULL) /* an operation may be held at a point */
        limits.grace_ms = -1;
    const struct http_options options = {
        .limits = &limits,
        .extras = {lab != NULL ? lab->routes : NULL,
                   config.demo ? demo_open(config.demo_peers) : NULL},
        .tokens = tokens,
        .events_show_keys = config.lab || config.demo,
    };
    if (http_start(&config, service, &options, &http) != 0) {
        service_close(service);
        tokens_close(tokens);
        return 1;
    }
    printf("listening on %s\n", http_url(http));
    fflush(stdout);

    const int signal_number = serve(http, tokens, &signals);
    drain(&config, http, service, &signals, signal_number);
    http_stop(http);
    service_close(service);
    http_free(http);
    tokens_close(tokens);
    fputs("level=info event=stop\n", stderr);
    return 0;
}
