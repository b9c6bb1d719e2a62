"""Threads that lock and unlock with redis-py as fast as they can, one client for all.

    redis_py_lock.py REDIS_PORT CALLERS own|one RUN_MS RETRY_MS     RETRY_MS 0: the library's own
    redis_py_lock.py versions

prints {"pairs_per_s", "jain", "wait_p99_us"}.
"""
import json
import os
import sys
import threading
import time

import redis


def load(client, key, retry_s, start, end, waits):
    while time.monotonic() < start:
        time.sleep(0.001)
    while time.monotonic() < end:
        asked = time.monotonic()
        lock = client.lock(key, timeout=30, sleep=retry_s)
        lock.acquire()
        granted = time.monotonic()
        lock.release()
        waits.append((granted - asked, granted < end))  # the last: found waiting by the end


def main(port, callers, keys, run_ms, retry_ms):
    client = redis.Redis(port=port, password=os.environ.get("LOCKKIT_REDIS_AUTH"))
    client.ping()
    waits = [[] for _ in range(callers)]
    start = time.monotonic() + 0.1
    threads = [threading.Thread(target=load, args=(
        client, f"lock:py:{0 if keys == 'one' else i}", retry_ms / 1000 if retry_ms else 0.1,
        start, start + run_ms / 1000, waits[i])) for i in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pairs = [sum(in_time for _, in_time in w) for w in waits]
    squares = sum(p * p for p in pairs)
    every = sorted(wait for of_one in waits for wait, _ in of_one)
    print(json.dumps({
        "pairs_per_s": sum(pairs) * 1000 / run_ms,
        "jain": sum(pairs) ** 2 / (callers * squares) if squares else 0,
        "wait_p99_us": every[int(len(every) * 0.99)] * 1e6 if every else 0}))


if sys.argv[1] == "versions":
    print(f"redis-py {redis.__version__}, Python {sys.version.split()[0]}")
else:
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
