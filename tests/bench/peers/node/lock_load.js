// Callers that lock and unlock with ioredis and redlock as fast as they can, one client for all.
//
//     node lock_load.js REDIS_PORT CALLERS own|one RUN_MS RETRY_MS     RETRY_MS 0: the library's own
//     node lock_load.js versions
//
// prints {"pairs_per_s", "jain", "wait_p99_us"} after a warm-up of a third as long.
import { createRequire } from 'node:module';
import Redis from 'ioredis';
import Redlock from 'redlock';

if (process.argv[2] === 'versions') {
    const version = (name) => createRequire(import.meta.url)(`${name}/package.json`).version;
    console.log(`node ${process.versions.node}, ioredis ${version('ioredis')}, redlock ${version('redlock')}`);
    process.exit();
}
const [port, callers, keys, runMs, retryMs] = process.argv.slice(2);
const n = Number(callers);
const redis = new Redis(Number(port), '127.0.0.1', { password: process.env.LOCKKIT_REDIS_AUTH });
const redlock = new Redlock([redis], Number(retryMs) === 0 ? { retryCount: 1_000_000 } : {
    retryDelay: Number(retryMs), retryJitter: Number(retryMs) / 2, retryCount: 1_000_000 });

const run = async (ms) => {
    const pairs = Array(n).fill(0), waits = [];
    const start = performance.now(), end = start + ms;
    const caller = async (i) => {
        const key = `lock:node:${keys === 'one' ? 0 : i}`;
        while (performance.now() < end) {
            const asked = performance.now();
            const lock = await redlock.acquire([key], 30_000);
            const granted = performance.now();
            await redlock.release(lock);
            waits.push(granted - asked); // also of one that the end found waiting
            pairs[i] += granted < end;
        }
    };
    await Promise.all(pairs.map((_, i) => caller(i)));
    const sum = pairs.reduce((a, b) => a + b, 0), squares = pairs.reduce((a, b) => a + b * b, 0);
    waits.sort((a, b) => a - b);
    return { pairs_per_s: sum * 1000 / ms, jain: squares ? sum * sum / (n * squares) : 0,
             wait_p99_us: (waits[Math.floor(waits.length * 0.99)] ?? 0) * 1000 };
};

await run(Number(runMs) / 3);
console.log(JSON.stringify(await run(Number(runMs))));
await redis.quit();
