/* The text of app/openapi.json, built into the binary. */
#ifndef OPENAPI_H
#define OPENAPI_H

#include <stddef.h>

extern const char openapi_json[];
extern const size_t openapi_json_bytes;

#endif
