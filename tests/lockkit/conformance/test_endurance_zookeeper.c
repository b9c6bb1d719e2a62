/* The guards of ZooKeeper for longer: see endurance.h. */
#include "endurance.h"

int main(void)
{
    return endurance_main(&family_zookeeper, ENDURE_ALL);
}
