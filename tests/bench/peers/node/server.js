// The flash sale as it is usually written for Node: fastify, better-sqlite3, ioredis, redlock.
// One process, one file, and what the libraries' own pages advise: WAL, prepared statements, the
// stock read under the lock, an absolute value written back, order and idempotency row in the same
// transaction. It does what the reference service does for an order, without ledger and fence.
//
//     node server.js FILE REDIS_PORT FULL|NORMAL redlock|redlock-tuned|none|conditional
//
// prints its URL and ends with SIGTERM; `node server.js versions` prints what it is made of.
import Database from 'better-sqlite3';
import Fastify from 'fastify';
import Redis from 'ioredis';
import Redlock from 'redlock';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { setImmediate as otherRequests } from 'node:timers/promises';

const version = (name) => createRequire(import.meta.url)(`${name}/package.json`).version;
if (process.argv[2] === 'versions') {
    const sqlite = new Database(':memory:').prepare('SELECT sqlite_version()').pluck().get();
    console.log(`node ${process.versions.node}, SQLite ${sqlite}, ` +
        ['fastify', 'better-sqlite3', 'ioredis', 'redlock'].map((n) => `${n} ${version(n)}`).join(', '));
    process.exit();
}

const [file, redisPort, synchronous, way] = process.argv.slice(2);
const STOCK = 1_000_000_000;
const LEASE_MS = 10_000;

const db = new Database(file);
db.pragma('journal_mode = WAL');
db.pragma(`synchronous = ${synchronous}`);
db.exec(`CREATE TABLE items (id TEXT PRIMARY KEY, initial INTEGER, stock INTEGER);
         CREATE TABLE orders (id TEXT PRIMARY KEY, item_id TEXT, user_id TEXT, quantity INTEGER);
         CREATE TABLE idempotency (key TEXT PRIMARY KEY, body TEXT)`);
db.prepare('INSERT INTO items VALUES (?, ?, ?)').run('1', STOCK, STOCK);

const findAnswer = db.prepare('SELECT body FROM idempotency WHERE key = ?').pluck();
const readStock = db.prepare('SELECT stock FROM items WHERE id = ?').pluck();
const writeStock = db.prepare('UPDATE items SET stock = ? WHERE id = ?');
const takeStock = db.prepare(
    'UPDATE items SET stock = stock - ? WHERE id = ? AND stock >= ? RETURNING stock').pluck();
const addOrder = db.prepare('INSERT INTO orders VALUES (?, ?, ?, ?)');
const addAnswer = db.prepare('INSERT INTO idempotency VALUES (?, ?)');

const redis = new Redis(Number(redisPort), '127.0.0.1', { password: process.env.LOCKKIT_REDIS_AUTH });
// "redlock" is the library as it comes: 10 tries, 200 ms apart, give or take 100. "redlock-tuned"
// asks every 20 ms, which was best of 5 to 400 ms here, and for so long that none is refused.
const redlock = new Redlock(
    [redis], way === 'redlock-tuned' ? { retryDelay: 20, retryJitter: 10, retryCount: 1000 } : {});

class SoldOut extends Error {}

const record = (key, itemId, order, stockAfter) => {
    const id = randomUUID();
    const body = JSON.stringify({ order_id: id, item_id: itemId, ...order, state: 'reserved',
                                  stock_after: stockAfter });
    addOrder.run(id, itemId, order.user_id, order.quantity);
    addAnswer.run(key, body);
    return body;
};

const sellAbsolute = db.transaction((key, itemId, order, stock) => {
    writeStock.run(stock - order.quantity, itemId);
    return record(key, itemId, order, stock - order.quantity);
});

const sellConditionally = db.transaction((key, itemId, order) => {
    const after = takeStock.get(order.quantity, itemId, order.quantity);
    if (after === undefined)
        throw new SoldOut();
    return record(key, itemId, order, after);
});

// Whatever a handler awaits between its read and its write (a price, the user's limit, a log) lets
// the other requests in. Here it is one turn of the event loop, the least there can be.
const readDecideWrite = async (key, itemId, order) => {
    const stock = readStock.get(itemId);
    await otherRequests();
    if (stock < order.quantity)
        throw new SoldOut();
    return sellAbsolute(key, itemId, order, stock);
};

const underLock = async (key, itemId, order) => {
    const lock = await redlock.acquire([`lock:item:${itemId}`], LEASE_MS);
    try {
        return await readDecideWrite(key, itemId, order);
    } finally {
        await redlock.release(lock);
    }
};

const sell = { redlock: underLock, 'redlock-tuned': underLock, none: readDecideWrite,
               conditional: async (...order) => sellConditionally(...order) }[way];

const app = Fastify();
const orderSchema = {
    body: { type: 'object', required: ['user_id', 'quantity'], additionalProperties: false,
            properties: { user_id: { type: 'string', maxLength: 64 },
                          quantity: { type: 'integer', minimum: 1 } } },
    headers: { type: 'object', required: ['idempotency-key'] },
};

app.post('/v1/items/:id/orders', { schema: orderSchema }, async (request, reply) => {
    const key = request.headers['idempotency-key'];
    reply.type('application/json');
    const answered = findAnswer.get(key);
    if (answered !== undefined)
        return reply.code(201).header('Idempotent-Replayed', 'true').send(answered);
    try {
        return reply.code(201).send(await sell(key, request.params.id, request.body));
    } catch (error) {
        const status = error instanceof SoldOut ? 409 : error.name === 'LockError' ? 503 : 500;
        return reply.code(status).send(JSON.stringify({ title: error.message }));
    }
});

app.get('/audit', async () => db.prepare(`SELECT initial, stock, (SELECT sum(quantity) FROM orders)
                                          AS sold FROM items`).get());

console.log(await app.listen({ host: '127.0.0.1', port: 0 }));
