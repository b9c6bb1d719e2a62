/* The width of a text on a terminal. */
#ifndef TEXT_WIDTH_H
#define TEXT_WIDTH_H

#include <stddef.h>
#include <string.h>

/* Columns of its widest line. Counts characters, not bytes; colour sequences have no width. */
static inline size_t columns_of(const char *text)
{
    size_t widest = 0, width = 0;
    for (; *text != '\0'; text++) {
        if (*text == '\033' && strchr(text, 'm') != NULL)
            text = strchr(text, 'm');
        else if (*text == '\n')
            width = 0;
        else if ((*text & 0xc0) != 0x80)
            width++;
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* Joins the lines of a text in place: a line break and the blanks around it become one blank. */
static inline char *one_line(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++)
        if (*from == ' ' || *from == '\n') {
            if (to == text || to[-1] != ' ')
                *to++ = ' ';
        } else {
            *to++ = *from;
        }
    *to = '\0';
    return text;
}

#endif
