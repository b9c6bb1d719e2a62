/* Answers, proper and improper, and what the standard (RFC 9110, RFC 9112) says of them. */
#ifndef HTTP_ANSWERS_H
#define HTTP_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>

#define OK_LINE "HTTP/1.1 200 OK\r\n"

#define BAD(its_name, its_text)                                                                    \
    {                                                                                              \
        .name = its_name, .text = its_text, .status = ANSWER_BAD                                   \
    }
#define CUT(its_name, its_text)                                                                    \
    {                                                                                              \
        .name = its_name, .text = its_text, .status = ANSWER_CUT                                   \
    }

enum { ANSWER_BAD = 0, ANSWER_CUT = -1 /* ends early */ };

static const struct answer {
    const char *name, *text;
    bool is_head;
    int status; /* what is expected */
    const char *body;
    bool closes;
    size_t surplus;
} answers[] = {
    {"length", OK_LINE "Content-Length: 5\r\n\r\nhello", .status = 200, .body = "hello"},
    {"no body", OK_LINE "Content-Length: 0\r\n\r\n", .status = 200, .body = ""},
    {"no reason", "HTTP/1.1 404\r\nContent-Length: 1\r\n\r\nx", .status = 404, .body = "x"},
    {"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", .status = 200, .body = "ok"},
    {"odd case and blanks", OK_LINE "cOnTeNt-LeNgTh: \t 2 \t \r\n\r\nok", .status = 200,
     .body = "ok"},
    {"same length twice", OK_LINE "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", .status = 200,
     .body = "ok"},
    {"chunked", OK_LINE "Transfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n6\r\npedia \r\n0\r\n\r\n",
     .status = 200, .body = "Wikipedia "},
    {"chunk extensions and trailers",
     OK_LINE
     "Transfer-Encoding: chunked\r\n\r\n00A;name=\"value\";x\r\n0123456789\r\n1 ; y\r\n!\r\n"
     "0;last\r\nChecksum: 9\r\nContent-Length: 77\r\n\r\n",
     .status = 200, .body = "0123456789!"},
    {"codings before chunked",
     OK_LINE "Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", .status = 200,
     .body = "x"},
    {"chunked overrides length, then closes",
     OK_LINE "Content-Length: 99\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
     .status = 200, .body = "x", .closes = true},
    {"coding that is not chunked goes to the close",
     OK_LINE "Transfer-Encoding: chunked, gzip\r\n\r\n1\r\nx", .status = 200, .body = "1\r\nx",
     .closes = true},
    {"interim answers",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 9\r\n"
     "Connection: close\r\n\r\n" OK_LINE "Content-Length: 2\r\n\r\nok",
     .status = 200, .body = "ok"},
    {"HEAD", OK_LINE "Content-Length: 500\r\n\r\n", .is_head = true, .status = 200, .body = ""},
    {"HEAD chunked", OK_LINE "Transfer-Encoding: chunked\r\n\r\n", .is_head = true, .status = 200,
     .body = ""},
    {"204", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", .status = 204, .body = ""},
    {"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", .status = 304, .body = ""},
    {"close", OK_LINE "Connection: foo, Close\r\nContent-Length: 2\r\n\r\nok", .status = 200,
     .body = "ok", .closes = true},
    {"up to the close", OK_LINE "X: y\r\n\r\nall of it", .status = 200, .body = "all of it",
     .closes = true},
    {"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nall of it", .status = 200, .body = "all of it",
     .closes = true},
    {"HTTP/1.0 with length", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", .status = 200,
     .body = "ok", .closes = true},
    {"HTTP/1.0 keep-alive",
     "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", .status = 200,
     .body = "ok"},
    {"folded unknown header", OK_LINE "X: y\r\n  z\r\n\tw\r\nContent-Length: 2\r\n\r\nok",
     .status = 200, .body = "ok"},
    {"surplus", OK_LINE "Content-Length: 2\r\n\r\nokHTTP/1.1", .status = 200, .body = "ok",
     .surplus = 8},
    {"surplus after chunks", OK_LINE "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n\r\n",
     .status = 200, .body = "", .surplus = 2},

    CUT("cut in the head", OK_LINE "Content-Le"),
    CUT("cut in the body", OK_LINE "Content-Length: 5\r\n\r\nhell"),
    CUT("cut in a chunk", OK_LINE "Transfer-Encoding: chunked\r\n\r\n5\r\nhell"),
    CUT("cut before the last chunk", OK_LINE "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"),
    CUT("cut in the trailers", OK_LINE "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n"),
    CUT("only interim", "HTTP/1.1 100 Continue\r\n\r\n"),
    CUT("nothing", ""),

    BAD("not HTTP", "SSH-2.0-OpenSSH_9.2\r\n"),
    BAD("HTTP/2", "HTTP/2 200\r\n\r\n"),
    BAD("HTTP/0.9", "<html>hello</html>\n"),
    BAD("empty first line", "\r\n" OK_LINE "Content-Length: 0\r\n\r\n"),
    BAD("status too short", "HTTP/1.1 20\r\n\r\n"),
    BAD("status too long", "HTTP/1.1 2000 OK\r\n\r\n"),
    BAD("status out of range", "HTTP/1.1 600 X\r\n\r\n"),
    BAD("status below range", "HTTP/1.1 099 X\r\n\r\n"),
    BAD("switching protocols", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
    BAD("no colon", OK_LINE "Content-Length 5\r\n\r\nhello"),
    BAD("blank before colon", OK_LINE "Content-Length : 5\r\n\r\nhello"),
    BAD("empty name", OK_LINE ": 5\r\n\r\n"),
    BAD("folded first line", OK_LINE " X: y\r\n\r\n"),
    BAD("folded length", OK_LINE "Content-Length: 1\r\n 0\r\n\r\n0123456789"),
    BAD("two lengths", OK_LINE "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok"),
    BAD("length list", OK_LINE "Content-Length: 2, 2\r\n\r\nok"),
    BAD("negative length", OK_LINE "Content-Length: -1\r\n\r\n"),
    BAD("signed length", OK_LINE "Content-Length: +2\r\n\r\nok"),
    BAD("hexadecimal length", OK_LINE "Content-Length: 0x2\r\n\r\nok"),
    BAD("empty length", OK_LINE "Content-Length:\r\n\r\n"),
    BAD("overflowing length", OK_LINE "Content-Length: 18446744073709551618\r\n\r\nok"),
    BAD("chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    BAD("no chunk size", OK_LINE "Transfer-Encoding: chunked\r\n\r\n;x\r\nab\r\n0\r\n\r\n"),
    BAD("negative chunk size", OK_LINE "Transfer-Encoding: chunked\r\n\r\n-1\r\nab\r\n0\r\n\r\n"),
    BAD("blank before chunk size",
        OK_LINE "Transfer-Encoding: chunked\r\n\r\n 2\r\nab\r\n0\r\n\r\n"),
    BAD("overflowing chunk size",
        OK_LINE "Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\nab\r\n0\r\n\r\n"),
    BAD("chunk longer than its size",
        OK_LINE "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n"),
    BAD("folded first trailer",
        OK_LINE "X: y\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n0\r\n x\r\n\r\n"),
    BAD("malformed trailer", OK_LINE "Transfer-Encoding: chunked\r\n\r\n0\r\nnonsense\r\n\r\n"),
};
enum { ANSWERS = sizeof answers / sizeof answers[0] };

#undef BAD
#undef CUT

#endif
