/*
 * Whom a request means, and which page sent it.
 *
 * A page of another site can make its own name resolve to this machine (DNS rebinding), and its
 * requests then come from inside. They carry that name as Host. A page can also send requests
 * without reading the answers. They carry its site as Origin.
 */
#ifndef HTTP_ORIGIN_H
#define HTTP_ORIGIN_H

#include "http_framing.h"

/* True if Host is loopback by name or address, the host of `listen` (host:port), or one of the
 * comma-separated names of `allowed`; with any port. A `listen` on all addresses (0.0.0.0, [::])
 * accepts each numeric address: rebinding needs a name. No Host (HTTP/1.0): true. */
bool origin_host_is_ours(const struct http_value *host, const char *listen, const char *allowed);

/* True without Sec-Fetch-Site, and if the browser says in it that a page of this service asks, or
 * the user. A page that asks without reading (no-cors) sends no Origin. */
bool origin_fetch_is_ours(const struct http_value *fetch_site);

/* True without an Origin, or if it is http:// or https:// with this Host. */
bool origin_is_ours(const struct http_value *origin, const struct http_value *host);

#endif
