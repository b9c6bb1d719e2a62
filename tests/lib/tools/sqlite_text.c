/* In a file of its own, because postgres_sql.h has the same names. */
#include "sqlite_text.h"
#include "sqlite_sql.h"

#include <string.h>

const char *sqlite_text(const char *name)
{
    static const struct {
        const char *name, *text;
    } texts[] = {
#define TEXT_OF(use, name, text) {#name, text},
        SQLITE_SQL_MAP(TEXT_OF)
#undef TEXT_OF
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i].name, name) == 0)
            return texts[i].text;
    return NULL;
}
