#include "live.h"
#include "remote.h"
#include "run.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    ASK_EVERY_US = 500000, /* for the stock */
    ASK_TIMEOUT_MS = 200,
    WIDTH_MIN = 20,
    BAR_COLUMNS = 40,
    RATE_COLUMNS = 25 /* in front of the curve of rates */
};

/* -- composing --------------------------------------------------------------------------------- */

struct page {
    char *out;
    size_t used;
    int width, lines;
};

/* Appends a line, cut to the width in characters. Continuation bytes of UTF-8 do not count. */
static void line(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void line(struct page *page, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int columns = 0;
    size_t length = 0;
    for (; text[length] != '\0'; length++) {
        bool begins = (text[length] & 0xc0) != 0x80;
        if (begins && columns == page->width)
            break;
        columns += begins;
    }
    if (page->used + length + 2 > LIVE_TEXT_MAX)
        return;
    memcpy(page->out + page->used, text, length);
    page->used += length;
    page->out[page->used++] = '\n';
    page->out[page->used] = '\0';
    page->lines++;
}

/* "▁▂▅█": the newest rates that fit into the columns, relative to the highest of all. */
static void sparkline(const struct live_facts *facts, int columns, char *out, size_t size)
{
    static const char *const steps[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    enum { STEPS = sizeof steps / sizeof *steps };
    int first = facts->n_rates > columns ? facts->n_rates - columns : 0;
    double highest = 0;
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < facts->n_rates; i++)
        highest = facts->rates[i] > highest ? facts->rates[i] : highest;
    for (int i = first; i < facts->n_rates && highest > 0 && used + 4 < size; i++) {
        int step = (int)(facts->rates[i] / highest * (STEPS - 1) + 0.5);
        used += (size_t)snprintf(out + used, size - used, "%s", steps[step]);
    }
}

/* "█████░░░": how much of the stock remains. */
static void bar(double part, int columns, char *out, size_t size)
{
    int full = (int)(part * columns + 0.5);
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < columns && used + 4 < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s", i < full ? "█" : "░");
}

/* The figures come first: a narrow window cuts the bar. */
static void stock_line(struct page *page, const struct live_facts *facts)
{
    char stock[TEXT_MAX], initial[TEXT_MAX], over[TEXT_MAX], picture[BAR_COLUMNS * 4 + 1];
    char figures[4 * TEXT_MAX];
    double part = facts->initial > 0 ? (double)facts->stock / (double)facts->initial : 0;
    int64_t oversold = facts->sold > facts->initial ? facts->sold - facts->initial : 0;
    int n = snprintf(figures, sizeof figures, "  stock    %s oversold, %s of %s left",
                     text_count(over, oversold), text_count(stock, facts->stock),
                     text_count(initial, facts->initial));
    int columns = page->width - n - 2;
    bar(part < 0   ? 0
        : part > 1 ? 1
                   : part,
        columns < BAR_COLUMNS ? columns : BAR_COLUMNS, picture, sizeof picture);
    line(page, "%s  %s", figures, picture);
}

int live_compose(const struct live_facts *facts, int width, char out[LIVE_TEXT_MAX])
{
    struct page page = {.out = out, .width = width < WIDTH_MIN ? WIDTH_MIN : width};
    char a[TEXT_MAX], b[TEXT_MAX], c[TEXT_MAX], d[TEXT_MAX], curve[LIVE_RATES_MAX * 4 + 1];
    char planned[TEXT_MAX + 8] = "", until[TEXT_MAX + 8] = "";
    if (page.width > LIVE_WIDTH_MAX)
        page.width = LIVE_WIDTH_MAX;
    out[0] = '\0';
    if (facts->planned > 0)
        snprintf(planned, sizeof planned, " of %s", text_count(a, (int64_t)facts->planned));
    if (facts->duration_us > 0)
        snprintf(until, sizeof until, " of %s", text_time_us(a, facts->duration_us));
    line(&page, "%s under %s: %s%s requests done, %s%s", facts->workload, facts->guard,
         text_count(a, (int64_t)facts->completed), planned, text_time_us(b, facts->elapsed_us),
         until);
    sparkline(facts, page.width - RATE_COLUMNS, curve, sizeof curve);
    double rate = facts->n_rates > 0 ? facts->rates[facts->n_rates - 1] : 0;
    line(&page, "  rate     %10s/s  %s", text_rate(a, rate), curve);
    if (facts->p50_us >= 0)
        line(&page, "  latency  p50 %s, p99 %s, p99.9 %s", text_percentile(a, facts->p50_us),
             text_percentile(b, facts->p99_us), text_percentile(c, facts->p999_us));
    if (facts->has_stock)
        stock_line(&page, facts);
    line(&page, "  accepted %s, errors %s, retries %s, waiting to be sent %s",
         text_count(a, (int64_t)facts->accepted), text_count(b, (int64_t)facts->errors),
         text_count(c, (int64_t)facts->retries), text_count(d, (int64_t)facts->dropped));
    return page.lines;
}

/* -- drawing ----------------------------------------------------------------------------------- */

static int terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col - 1; /* a full line would wrap on some terminals */
}

void live_clear(struct live *live)
{
    if (live->lines > 0)
        fprintf(stderr, "\033[%dA\033[J", live->lines); /* up, then clear to the end */
    live->lines = 0;
    fflush(stderr);
}

static void add_rate(struct live *live, const struct load_progress *now)
{
    struct live_facts *facts = &live->facts;
    double seconds = (double)(now->elapsed_us - live->last_us) / 1e6;
    if (seconds <= 0)
        return;
    if (facts->n_rates == LIVE_RATES_MAX)
        memmove(facts->rates, facts->rates + 1, --facts->n_rates * sizeof *facts->rates);
    facts->rates[facts->n_rates++] = (double)(now->completed - live->last_completed) / seconds;
    live->last_us = now->elapsed_us;
    live->last_completed = now->completed;
}

static void ask_stock(struct live *live, const struct run *run, int64_t now_us)
{
    struct live_facts *facts = &live->facts;
    if (run->workload->resource == NULL ||
        (live->asked_us > 0 && now_us - live->asked_us < ASK_EVERY_US))
        return;
    live->asked_us = now_us;
    char path[REMOTE_PATH_MAX], *body;
    run->workload->resource(run, path);
    int status =
        load_fetch(&run->options->targets[0], "GET", path, "", NULL, ASK_TIMEOUT_MS, &body);
    json_t *item = status == 200 ? json_loads(body, 0, NULL) : NULL;
    free(body);
    if (item == NULL)
        return; /* no answer: keep the figures */
    facts->has_stock = true;
    facts->initial = json_integer_value(json_object_get(item, "initial_stock"));
    facts->stock = json_integer_value(json_object_get(item, "stock"));
    facts->sold = json_integer_value(json_object_get(item, "sold"));
    json_decref(item);
}

static int64_t percentile_if_known(const struct hist *hist, double percentile)
{
    return hist_tells(hist, percentile) ? hist_percentile(hist, percentile) : LOAD_NO_FIGURE;
}

void live_draw(struct live *live, const struct run *run, const struct load_progress *now)
{
    struct live_facts *facts = &live->facts;
    char text[LIVE_TEXT_MAX];
    uint64_t begun = now->sent - now->retries;
    bool bounded = run->options->duration_ms == 0;
    facts->workload = run->workload->name;
    facts->guard = run->guard;
    facts->elapsed_us = now->elapsed_us;
    facts->duration_us = run->options->duration_ms * 1000;
    facts->completed = now->completed;
    facts->planned = bounded ? run->tally.n : 0;
    facts->p50_us = percentile_if_known(now->latency, 50);
    facts->p99_us = percentile_if_known(now->latency, 99);
    facts->p999_us = percentile_if_known(now->latency, 99.9);
    facts->accepted = now->accepted;
    facts->errors = load_errors(now->ends, now->failed);
    facts->retries = now->retries;
    facts->dropped = now->due > begun ? now->due - begun : 0;
    add_rate(live, now);
    ask_stock(live, run, now->elapsed_us + 1);
    int lines = live_compose(facts, terminal_width(), text);
    live_clear(live);
    fputs(text, stderr);
    fflush(stderr);
    live->lines = lines;
}
