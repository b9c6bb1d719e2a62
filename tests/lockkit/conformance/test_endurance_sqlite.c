/* The guards of a SQLite file for longer: see endurance.h. */
#include "endurance.h"

int main(void)
{
    return endurance_main(&family_sqlite, ENDURE_ALL);
}
