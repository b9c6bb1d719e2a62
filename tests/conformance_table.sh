#!/bin/sh
# One table from what the conformance programs have seen. Usage: conformance_table.sh BINARY...
for binary in "$@"; do cat "$binary.log"; done | awk '
    /^guard +servers/ { on = 1; if (headed++) next }
    /^yes: / { on = 0; legend = $0 }
    on
    END { print legend }'
