/*
 * Two kinds of malformed requests that libmicrohttpd (0.9.75) answers wrongly. Its parser refuses
 * them before it calls our handler.
 *
 *   a malformed Content-Length    It writes an answer, goes on, and writes the head once more. It
 *                                 calls our logger first. There we write the answer ourselves and
 *                                 shut the socket down.
 *   a request line without space  It closes without an answer. With MHD_USE_TURBO the socket is
 *                                 still open for writing when it calls our close callback.
 */
#include "http_internal.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

/* The head is read, and our handler is not called yet. That is true only of the connection that
 * libmicrohttpd works on now. */
static bool is_at_its_head(const struct conn *conn)
{
    return conn->request != NULL && conn->request->stage == STAGE_HEAD &&
           MHD_get_connection_info(conn->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) != NULL;
}

void malformed_length(struct http *http)
{
    struct conn *conn = http->phases[PHASE_READING].last; /* most often it is this one */
    while (conn != NULL && !is_at_its_head(conn))
        conn = conn->prev;
    if (conn == NULL)
        return;
    answer_straight(http, conn, PROBLEM_BAD_REQUEST, "Content-Length is not a number, or too large",
                    0);
    conn_shutdown(http, conn);
}

/* Nothing was sent yet: no answer, and no page of libmicrohttpd's own. */
static bool is_unanswered(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           size >= offsetof(struct tcp_info, tcpi_bytes_sent) + sizeof(info.tcpi_bytes_sent) &&
           info.tcpi_bytes_sent == 0;
}

void malformed_line(struct http *http, struct conn *conn)
{
    char byte;
    if (conn->phase != PHASE_READING || conn->request != NULL || conn->gone ||
        recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0 || !is_unanswered(conn->fd))
        return; /* in most cases: its client has closed it */
    http->metrics.refused_heads++;
    answer_straight(http, conn, PROBLEM_BAD_REQUEST, "malformed request line", 0);
}
