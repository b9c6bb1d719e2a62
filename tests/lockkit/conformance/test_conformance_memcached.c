/* Claims x memcached: see conformance.h. */
#include "conformance.h"

int main(int argc, char **argv)
{
    return conformance_main(argc, argv, &family_memcached);
}
