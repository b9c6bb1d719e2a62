#include "openapi.h"

/* The path is relative to the top of the source tree, where the Makefile compiles. */
__asm__(".section .rodata\n"
        ".global openapi_json\n"
        ".global openapi_json_bytes\n"
        ".type openapi_json, @object\n"
        ".type openapi_json_bytes, @object\n"
        "openapi_json:\n"
        ".incbin \"app/openapi.json\"\n"
        "openapi_json_end:\n"
        ".byte 0\n"
        ".size openapi_json, . - openapi_json\n"
        ".balign 8\n"
        "openapi_json_bytes:\n"
        ".quad openapi_json_end - openapi_json\n"
        ".size openapi_json_bytes, 8\n"
        ".previous\n");
