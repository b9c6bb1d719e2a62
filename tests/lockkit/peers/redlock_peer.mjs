// Node's redlock, which contends with lockkit: see ../../lib/peers/contest.h.
//
//     node redlock_peer.mjs redlock4|redlock5 URL[,URL...] NAME FILE TURNS SEEN
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import Redis from 'ioredis';

const PATIENCE_MS = 240000, LEASE_MS = 30000;
const [version, servers, name, path, turns, seen] = process.argv.slice(2);
const module = createRequire(import.meta.url)(version);
const Redlock = module.default ?? module;
const nodes = servers.split(',').map((url) => new Redis(url, { password: process.env.LOCKKIT_REDIS_AUTH }));
const redlock = new Redlock(nodes, { retryCount: 0 });
const release = (lock) => (version === 'redlock4' ? redlock.release(lock) : lock.release());
const file = fs.openSync(path, 'r+');

const read = () => {
    const digits = Buffer.alloc(10);
    fs.readSync(file, digits, 0, 10, 0);
    return Number(digits.toString());
};

// Its own retries are not used: version 5 keeps the votes of a refused attempt until its last retry
// and treats them as another holder's.
const acquire = async () => {
    for (;;) {
        try {
            return await redlock.acquire([name], LEASE_MS);
        } catch (error) {
            if (!['LockError', 'ExecutionError'].includes(error.name))
                throw error;
            await sleep(5 * Math.random());
        }
    }
};

const deadline = Date.now() + PATIENCE_MS;
let made = 0, moved = 0, last;
while (made < Number(turns) || moved < Number(seen)) {
    if (Date.now() > deadline)
        throw new Error(`out of time after ${made} turns, ${moved} of ours seen`);
    const lock = await acquire();
    const number = read();
    moved += last !== undefined && number !== last;
    await sleep(made % 4 ? 1 : 12);
    last = number + 1;
    fs.writeSync(file, String(last).padStart(10, '0'), 0);
    await release(lock);
    made++;
    await sleep(1);
}
console.log(made, 0);
for (const node of nodes)
    node.disconnect();
