/* The proxy is the sandbox's. */
#include "../../loadgen/sandbox_proxy.h"
