"""Python's lock clients, which contend with lockkit: see ../../lib/peers/contest.h.

    peer.py CLIENT SERVER NAME FILE TURNS SEEN
"""
import os
import sys
import threading
import time
import uuid

PATIENCE_S = 240  # less than that of contest.c
POLL_S = 0.005


class Polled:
    """A lock made of take() and give(); it polls."""

    def __init__(self, take, give):
        self.take, self.give = take, give

    def __enter__(self):
        while not self.take():
            time.sleep(POLL_S)

    def __exit__(self, *_):
        self.give()


# -- clients: (server, name) -> a lock for `with` ----------------------------------------------------


def none(server, name):
    return threading.Lock()


def kazoo(kind, patterns, timeout=None):
    def connect(server, name):
        from kazoo.client import KazooClient
        from kazoo.exceptions import LockTimeout, NoNodeError
        from kazoo.security import CREATOR_ALL_ACL

        client = KazooClient(hosts=server, default_acl=CREATOR_ALL_ACL,
                             auth_data=[("digest", os.environ["LOCKKIT_ZOOKEEPER_AUTH"])])
        client.start()
        lock = getattr(client, kind)(name, extra_lock_patterns=patterns)

        def take():
            try:
                return lock.acquire(timeout=timeout)
            except LockTimeout:
                return False
            except NoNodeError:  # ZooKeeper removed the empty parent, which kazoo makes only once
                lock.assured_path = False
                return False

        return Polled(take, lock.release)

    return connect


def kazoo_reader(patterns):
    """kazoo's ReadLock (2.8.0) waits for later writers, which wait for it. So it must give up."""
    return kazoo("ReadLock", patterns, timeout=0.05)


def redis_py(server, name):
    import redis

    return redis.Redis.from_url(server, password=os.environ.get("LOCKKIT_REDIS_AUTH")).lock(
        name, timeout=30, sleep=POLL_S)


def pymemcache(server, name):
    """Frees by a cas that expires at once: pymemcache 3.5 has no meta delete, and no login."""
    from pymemcache.client.base import Client

    class LoggedIn(Client):
        def _connect(self):
            super()._connect()
            login = os.environ["LOCKKIT_MEMCACHED_AUTH"].replace(":", " ", 1).encode()
            self.sock.sendall(b"set login 0 -1 %d\r\n%s\r\n" % (len(login), login))
            if self.sock.recv(100) != b"STORED\r\n":
                sys.exit("memcached refuses the login")

    client = LoggedIn(server)
    token = uuid.uuid4().hex.encode()

    def give():
        value, cas = client.gets(name)
        if value != token or not client.cas(name, b"", cas, expire=-1, noreply=False):
            sys.exit("the lock was not there to be freed")

    return Polled(lambda: client.add(name, token, expire=60, noreply=False), give)


def psycopg2(take_sql, give_sql):
    """Each statement commits by itself."""

    def connect(server, name):
        import psycopg2 as library

        connection = library.connect(server)
        connection.autocommit = True
        cursor = connection.cursor()

        def run(sql):
            cursor.execute(sql, {"key": name, "lease_ms": 30000})
            return cursor.fetchone()

        def give():
            if run(give_sql) is None:
                sys.exit("the lock was not there to be freed")

        return Polled(lambda: run(take_sql) is not None, give)

    return connect


NOW_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
CLIENTS = {
    "none": none,
    "kazoo": kazoo("Lock", ["lock-"]),
    "kazoo-as-it-comes": kazoo("Lock", []),
    "kazoo-writer": kazoo("WriteLock", ["__WRIT__", "__READ__"]),
    "kazoo-writer-as-it-comes": kazoo("WriteLock", []),
    "kazoo-reader": kazoo_reader(["__WRIT__"]),
    "kazoo-reader-as-it-comes": kazoo_reader([]),
    "redis-py": redis_py,
    "pymemcache": pymemcache,
    "psycopg2-advisory": psycopg2(
        "SELECT pg_advisory_lock(hashtextextended(%(key)s, 0))",
        "SELECT 1 WHERE pg_advisory_unlock(hashtextextended(%(key)s, 0))",
    ),
    "psycopg2-advisory-xact": psycopg2(
        "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended(%(key)s, 0))",
        "COMMIT; SELECT 1",
    ),
    "psycopg2-lease": psycopg2(
        f"INSERT INTO lockkit.locks AS l VALUES (%(key)s, 'theirs', {NOW_MS} + %(lease_ms)s, 1) "
        "ON CONFLICT (key) DO UPDATE SET token = 'theirs', until_ms = excluded.until_ms, "
        f"fence = l.fence + 1 WHERE l.token IS NULL OR l.until_ms <= {NOW_MS} RETURNING 1",
        "UPDATE lockkit.locks SET token = NULL WHERE key = %(key)s AND token = 'theirs' RETURNING 1",
    ),
    "psycopg2-row": psycopg2(
        "INSERT INTO lockkit.rows VALUES (%(key)s, 'theirs') ON CONFLICT DO NOTHING RETURNING 1",
        "DELETE FROM lockkit.rows WHERE key = %(key)s AND token = 'theirs' RETURNING 1",
    ),
}

# -- turns -------------------------------------------------------------------------------------------


def main(client, server, name, path, turns, seen):
    lock, reads = CLIENTS[client](server, name), "reader" in client
    made = moved = torn = 0
    last = None
    deadline = time.monotonic() + PATIENCE_S
    with open(path, "r+b", buffering=0) as file:

        def read():
            file.seek(0)
            return int(file.read(10))

        while made < turns or moved < seen:
            if time.monotonic() > deadline:
                sys.exit(f"out of time after {made} turns, {moved} of ours seen")
            with lock:
                number = read()
                moved += last is not None and number != last
                time.sleep(0.001 if made % 4 else 0.012)
                if reads:
                    torn += read() != number
                    last = number
                else:
                    last = number + 1
                    file.seek(0)
                    file.write(b"%010d" % last)
            made += 1
            time.sleep(0.001)
    print(made, torn)


main(*sys.argv[1:5], int(sys.argv[5]), int(sys.argv[6]))
