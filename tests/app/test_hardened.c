/* The service as it is built for users: what an overflow could bend is read-only or checked. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>

static void expect(const char *what, const char *command)
{
    char text[512];
    const char *build = getenv("BUILD");
    snprintf(text, sizeof text, "program=%s/seckilld; %s", build ? build : "build", command);
    if (system(text) != 0)
        fail_msg("%s: %s", what, text);
}

TEST_THAT(stacks_buffers_and_tables_are_guarded)
{
    expect("stack protector", "nm -D $program | grep -q ' U __stack_chk_fail'");
    expect("checked copies", "nm -D $program | grep -q ' U __snprintf_chk'");
    expect("tables are bound at start", "readelf -d $program | grep -q BIND_NOW");
    expect("and read-only then", "readelf -lW $program | grep -q GNU_RELRO");
    expect("any address", "readelf -hW $program | grep -q 'DYN '");
    expect("no code on the stack", "! readelf -lW $program | grep GNU_STACK | grep -q RWE");
}
