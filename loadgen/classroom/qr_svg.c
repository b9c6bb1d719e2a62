#include "qr_svg.h"

#include <qrencode.h>
#include <stdio.h>
#include <stdlib.h>

enum { QUIET = 4 };

static void write_modules(const QRcode *code, FILE *out)
{
    for (int y = 0; y < code->width; y++)
        for (int x = 0; x < code->width; x++)
            if (code->data[y * code->width + x] & 1) /* the lowest bit: dark */
                fprintf(out, "M%d %dh1v1h-1z", x + QUIET, y + QUIET);
}

char *qr_svg(const char *text)
{
    char *svg = NULL;
    size_t size = 0;
    QRcode *code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M);
    FILE *out = code != NULL ? open_memstream(&svg, &size) : NULL;
    if (out != NULL) {
        const int width = code->width + 2 * QUIET;
        fprintf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\" shape-rendering=\"crispEdges\">"
                "<path fill=\"#fff\" d=\"M0 0h%dv%dh-%dz\"/><path fill=\"#000\" d=\"",
                8 * width, 8 * width, width, width, width, width, width);
        write_modules(code, out);
        fputs("\"/></svg>\n", out);
        if (fclose(out) != 0) {
            free(svg);
            svg = NULL;
        }
    }
    QRcode_free(code);
    return svg;
}
