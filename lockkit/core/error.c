/* Texts of outcomes and causes, and the one way to fill an lk_error. */
#include "provider.h"

#include <stdarg.h>
#include <stdio.h>

const char *lk_status_text(lk_status status)
{
    static const char *const texts[] = {
#define STATUS_TEXT(name, text) [LK_##name] = text,
        LK_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    };
    size_t i = (size_t)status;
    return i < sizeof texts / sizeof texts[0] ? texts[i] : "no such status";
}

const char *lk_loss_text(lk_loss loss)
{
    static const char *const texts[] = {
#define LOSS_TEXT(name, text) [LK_LOSS_##name] = text,
        LK_LOSS_MAP(LOSS_TEXT)
#undef LOSS_TEXT
    };
    size_t i = (size_t)loss;
    return i < sizeof texts / sizeof texts[0] ? texts[i] : "no such cause";
}

const char *lk_pending_text(lk_pending what)
{
    static const char *const texts[] = {
#define PENDING_TEXT(name, text) [LK_PENDING_##name] = text,
        LK_PENDING_MAP(PENDING_TEXT)
#undef PENDING_TEXT
    };
    size_t i = (size_t)what;
    return i < sizeof texts / sizeof texts[0] ? texts[i] : "no such state";
}

lk_status lk_fail(lk_error *error, lk_status status, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
        error->status = status;
    }
    return status;
}
