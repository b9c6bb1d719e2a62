/* The text of GET /metrics. */
#include "http_metrics.h"
#include "problem.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct http_metrics metrics;

static char *text_of(void)
{
    const struct http_gauges gauges = {.connections_open = 3, .in_flight = 2};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    http_metrics_write(&metrics, &gauges, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static int clear(void **state)
{
    (void)state;
    memset(&metrics, 0, sizeof(metrics));
    return 0;
}

TEST_FIXTURE(clear, NULL);

TEST_THAT(durations_are_counted_up_to_their_bounds)
{
    static const int64_t durations_us[] = {0, 100, 101, 5000, 10000000, 10000001, 99000000};
    for (size_t i = 0; i < sizeof(durations_us) / sizeof(durations_us[0]); i++)
        http_metrics_count(&metrics, &routes[1], 200, durations_us[i]);
    static const char *const lines[] = {
        "_bucket{method=\"GET\",route=\"/v1/items/{id}\",le=\"0.0001\"} 2\n",
        "_bucket{method=\"GET\",route=\"/v1/items/{id}\",le=\"0.00025\"} 3\n",
        "_bucket{method=\"GET\",route=\"/v1/items/{id}\",le=\"0.0025\"} 3\n",
        "_bucket{method=\"GET\",route=\"/v1/items/{id}\",le=\"0.005\"} 4\n",
        "_bucket{method=\"GET\",route=\"/v1/items/{id}\",le=\"10\"} 5\n",
        "_bucket{method=\"GET\",route=\"/v1/items/{id}\",le=\"+Inf\"} 7\n",
        "_sum{method=\"GET\",route=\"/v1/items/{id}\"} 119.005202\n",
        "_count{method=\"GET\",route=\"/v1/items/{id}\"} 7\n"};
    char *text = text_of();
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (strstr(text, lines[i]) == NULL)
            fail_msg("missing %s in\n%s", lines[i], text);
    free(text);
}

TEST_THAT(requests_are_counted_by_route_and_status)
{
    http_metrics_count(&metrics, &routes[1], 200, 1);
    http_metrics_count(&metrics, &routes[1], 404, 1);
    http_metrics_count(&metrics, &routes[1], 404, 1);
    http_metrics_count(&metrics, NULL, 404, 1);
    http_metrics_count(&metrics, NULL, 418, 1);
    static const char *const lines[] = {
        "total{method=\"GET\",route=\"/v1/items/{id}\",status=\"200\"} 1\n",
        "total{method=\"GET\",route=\"/v1/items/{id}\",status=\"404\"} 2\n",
        "total{method=\"\",route=\"other\",status=\"404\"} 1\n",
        "total{method=\"\",route=\"other\",status=\"0\"} 1\n",
        "\nseckill_http_connections_open 3\n",
        "\nseckill_http_in_flight 2\n"};
    char *text = text_of();
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (strstr(text, lines[i]) == NULL)
            fail_msg("missing %s in\n%s", lines[i], text);
    free(text);
}

TEST_THAT(status_of_every_problem_is_counted_as_itself)
{
    for (int i = 1; i < PROBLEM_COUNT; i++) {
        char line[64];
        const int status = problem_info((enum problem)i)->status;
        clear(NULL);
        http_metrics_count(&metrics, NULL, status, 1);
        snprintf(line, sizeof(line), "total{method=\"\",route=\"other\",status=\"%d\"} 1\n",
                 status);
        char *text = text_of();
        if (strstr(text, line) == NULL)
            fail_msg("missing %s in\n%s", line, text);
        free(text);
    }
}

/* HELP and TYPE of a metric come before its samples. */
TEST_THAT(every_metric_is_announced)
{
    http_metrics_count(&metrics, &routes[0], 200, 1);
    char *text = text_of(), *save;
    char announced[128] = "";
    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "# TYPE ", 7) == 0)
            snprintf(announced, sizeof(announced), "%.*s", (int)strcspn(line + 7, " "), line + 7);
        else if (line[0] != '#')
            assert_int_equal(strncmp(line, announced, strlen(announced)), 0);
    }
    free(text);
}
