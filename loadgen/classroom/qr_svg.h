/* A QR code as a picture. */
#ifndef QR_SVG_H
#define QR_SVG_H

/* SVG, dark modules on white with the quiet zone of four modules that readers need. The caller
 * frees it. NULL: the text is too long for a code, or no memory. */
char *qr_svg(const char *text);

#endif
