/* In the place of the lab, in a service that was built without it: make LAB=0. */
#include "lab.h"

#include <stdio.h>

const bool lab_is_built = false;

bool lab_is_possible(const struct config *config)
{
    if (config->lab)
        fputs("seckilld: lab: this program was built without the hazard lab (make LAB=0); "
              "build it with make\n",
              stderr);
    return !config->lab;
}

const struct lab *lab_open(const struct config *config)
{
    (void)config;
    return NULL;
}
