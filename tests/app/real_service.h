/* The tests' library holds a stand-in for the service, for tests of the HTTP side alone. What is
 * tested here is the real one: it becomes part of the test itself, and the stand-in is left out. */
#ifndef REAL_SERVICE_H
#define REAL_SERVICE_H

#include "../../app/service.c"
#include "../../app/service_metrics.c"

#endif
