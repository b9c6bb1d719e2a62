/* The main() of a test program that has no other. */
#include "tests.h"

int main(void)
{
    return tests_run();
}
