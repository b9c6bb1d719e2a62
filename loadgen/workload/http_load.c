#include "http_load.h"
#include "exit_status.h"
#include "template.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The request to one target: path and Host differ. */
struct message {
    char head_text[LOAD_REQUEST_MAX]; /* up to the empty line, without Content-Length */
    struct template head, body;
    size_t fixed; /* bytes of fixed_text if all requests are equal; else 0 */
    char fixed_text[LOAD_REQUEST_MAX];
};

struct http_load {
    const struct load_options *options;
    bool has_body;
    struct message messages[LOAD_TARGETS_MAX];
};

enum { PLACE_HEAD, PLACE_BODY };

static bool is_method(const char *method)
{
    for (const char *c = method; *c != '\0'; c++)
        if (!isupper((unsigned char)*c) && *c != '-')
            return false;
    return *method != '\0';
}

static bool is_header(const char *header)
{
    size_t name = strcspn(header, ": \t");
    return name > 0 && header[name] == ':' && strpbrk(header, "\r\n") == NULL;
}

static bool has_host(const struct http_load_request *request)
{
    for (const char *const *header = request->headers; header != NULL && *header != NULL; header++)
        if (strncasecmp(*header, "Host:", 5) == 0)
            return true;
    return false;
}

const char *http_load_method(const struct http_load_request *request)
{
    return request->method != NULL ? request->method : request->body != NULL ? "POST" : "GET";
}

static void write_head(const struct http_load_request *request, const struct load_target *target,
                       FILE *out)
{
    fprintf(out, "%s %s HTTP/1.1\r\n", http_load_method(request), target->path);
    for (const char *const *header = request->headers; header != NULL && *header != NULL; header++)
        fprintf(out, "%s\r\n", *header);
    if (!has_host(request))
        fprintf(out, "Host: %s\r\n", target->host);
}

/* Head, length of the body, body. Returns the length, or 0 when it does not fit. */
static size_t expand(const struct http_load *load, const struct message *message, uint64_t seq,
                     char *out, size_t size)
{
    char body[LOAD_REQUEST_MAX];
    uint64_t seed = load->options->seed;
    long head = template_expand(&message->head, seed, seq, PLACE_HEAD, out, size);
    long length = template_expand(&message->body, seed, seq, PLACE_BODY, body, sizeof body);
    if (head < 0 || length < 0)
        return 0;
    size_t room = size - (size_t)head;
    int n = load->has_body ? snprintf(out + head, room, "Content-Length: %ld\r\n\r\n", length)
                           : snprintf(out + head, room, "\r\n");
    if (n < 0 || (size_t)n + (size_t)length >= room)
        return 0;
    memcpy(out + head + n, body, (size_t)length);
    return (size_t)head + (size_t)n + (size_t)length;
}

static int compose(struct http_load *load, const struct http_load_request *request, int target,
                   char *message, size_t size)
{
    struct message *composed = &load->messages[target];
    FILE *head = fmemopen(composed->head_text, sizeof composed->head_text, "w");
    if (head == NULL) {
        snprintf(message, size, "out of memory");
        return EXIT_FAILURE;
    }
    write_head(request, &load->options->targets[target], head);
    bool fits = ftell(head) < LOAD_REQUEST_MAX;
    fits = fclose(head) == 0 && fits;
    const char *body = request->body == NULL ? "" : request->body;
    if (template_compile(composed->head_text, &composed->head, message, size) != 0 ||
        template_compile(body, &composed->body, message, size) != 0)
        return EXIT_USAGE;
    size_t length =
        fits ? expand(load, composed, UINT64_MAX, composed->fixed_text, sizeof composed->fixed_text)
             : 0;
    if (length == 0) {
        snprintf(message, size, "the request has more than %d bytes: shorten body or headers",
                 LOAD_REQUEST_MAX - 1);
        return EXIT_USAGE;
    }
    if (template_is_plain(&composed->head) && template_is_plain(&composed->body))
        composed->fixed = length;
    return 0;
}

int http_load_open(const struct http_load_request *request, const struct load_options *options,
                   struct http_load **ret, char *message, size_t size)
{
    if (request->method != NULL && !is_method(request->method)) {
        snprintf(message, size, "method '%s': capital letters expected", request->method);
        return EXIT_USAGE;
    }
    for (const char *const *header = request->headers; header != NULL && *header != NULL; header++)
        if (!is_header(*header)) {
            snprintf(message, size, "header '%s': 'Name: value' on one line expected", *header);
            return EXIT_USAGE;
        }
    struct http_load *load = calloc(1, sizeof *load);
    if (load == NULL) {
        snprintf(message, size, "out of memory");
        return EXIT_FAILURE;
    }
    load->options = options;
    load->has_body = request->body != NULL;
    int status = 0;
    for (int i = 0; i < options->n_targets && status == 0; i++)
        status = compose(load, request, i, message, size);
    if (status == 0)
        *ret = load;
    else
        free(load);
    return status;
}

static size_t write_request(void *ctx, uint64_t seq, const struct load_target *target, char *out,
                            size_t size)
{
    const struct http_load *load = ctx;
    const struct message *message = &load->messages[target - load->options->targets];
    if (message->fixed == 0)
        return expand(load, message, seq, out, size);
    memcpy(out, message->fixed_text, message->fixed); /* size is at least LOAD_REQUEST_MAX */
    return message->fixed;
}

static int64_t take_outcome(void *ctx, uint64_t seq, const struct load_answer *answer)
{
    (void)ctx;
    (void)seq;
    (void)answer; /* the engine counts */
    return -1;
}

struct load_workload http_load_workload(struct http_load *load)
{
    return (struct load_workload){.request = write_request, .outcome = take_outcome, .ctx = load};
}

void http_load_close(struct http_load *load)
{
    free(load);
}
