// One fault for all tiles of the arena, through the routes of the lab. The holders are held in the
// instance that serves this page; the other instance goes on selling.
import { ask, post } from "./stream.js";
import { setWire } from "./wire.js";

const LOOK_MS = 200, GRACE_MS = 2000, HELD_MS = 60000, BACK_MS = 60000, HEIR_MS = 60000; // longer than a session of ZooKeeper lives
const FREEZE_MIN_MS = 2500, FREEZE_BEYOND_MS = 1500; // its lease
const BEFORE = 2; // orders that this instance writes before one is held: each instance has three at least

// Inside the store's write transaction, which on SQLite is one for all sales: to hold one stops all.
const INSIDE = ["sql-row", "sql-atomic"];

const soon = () => new Promise((later) => setTimeout(later, LOOK_MS));
const forget = (id) => ask(`/v1/lab/pauses/${id}`, { method: "DELETE" }).catch(() => {});
const armed = new Set(); // ids of pauses: forgotten when the page is left
let wireIsCut = false;

async function add(point, match, action, after = 0) {
  const { id } = await post("/v1/lab/pauses", { point, match, action, after });
  armed.add(id);
  return id;
}

async function pausesById() {
  return new Map((await ask("/v1/lab/pauses")).pauses.map((pause) => [pause.id, pause]));
}

const ofRedis = (tile) => tile.guard.startsWith("redis-") || tile.guard === "redlock";

// Why a fault does not touch this guard; null: it does.
export function spared(fault, tile) {
  if (fault === "cut") return ofRedis(tile) ? null : "noRedis";
  if (fault === "flush" && !tile.onServer) return "noServerLock";
  return INSIDE.includes(tile.guard) ? "inside" : null;
}

// Before the sale: in each tile one who is about to write will be held.
export async function arm(fault, tiles) {
  for (const tile of tiles) {
    tile.hold = tile.held = tile.note = null;
    if (fault === "none") continue;
    const why = spared(fault, tile);
    if (why) tile.tell(why);
    else if (fault !== "cut") tile.hold = await add("checked", tile.resource, "hold", BEFORE);
  }
}

async function letGo(tile) {
  const id = tile.hold;
  tile.hold = null;
  armed.delete(id);
  await forget(id);
}

async function caught(fault, tile, key) {
  const at = performance.now();
  if (fault === "kill") { // at once: the leases run
    tile.held = { key, at };
    return tile.tell("held");
  }
  const [{ version }, note] = await Promise.all([tile.look(), add("rejected", key, "note")]);
  Object.assign(tile, { held: { key, at, version }, note });
  tile.tell("held");
  if (fault !== "flush") return undefined;
  const answer = await ask(`/v1/lab/locks/${tile.resource}`, { method: "DELETE" }).catch(() => null);
  return tile.tell(answer === null ? "notDeleted" : answer.was_held ? "deleted" : "noLock");
}

// Who is held goes on when another has written, or when nobody can be expected to. The page looks at
// the rows all the time.
async function goOn(tile, lease_ms) {
  const wrote = tile.item.version > tile.held.version;
  if (!wrote && performance.now() < tile.held.at + lease_ms + GRACE_MS) return;
  tile.tell(wrote ? "another" : "nobody");
  await letGo(tile);
}

async function step(fault, tile, pause, late, lease_ms) {
  if (!tile.held && pause?.n_held > 0) return caught(fault, tile, pause.held[0]);
  if (tile.held) return fault === "kill" ? undefined : goOn(tile, lease_ms);
  if (!late) return undefined;
  tile.tell("tooLate");
  return letGo(tile);
}

// Until each armed tile has held one and let it go; kill: until each has one.
async function hold(fault, tiles, lease_ms, isOver) {
  const until = performance.now() + HELD_MS, busy = (tile) => tile.hold !== null && !(fault === "kill" && tile.held);
  while (tiles.some(busy)) {
    const pauses = await pausesById(), late = isOver() || performance.now() > until;
    await Promise.all(tiles.filter(busy).map((tile) => step(fault, tile, pauses.get(tile.hold), late, lease_ms)));
    await soon();
  }
}

// Redis does not answer for longer than a lease, from when each of its guards has sold something.
async function freeze(tiles, lease_ms, isOver) {
  const struck = tiles.filter(ofRedis);
  while (!isOver() && struck.some((tile) => !(tile.item?.sold > 0))) await soon();
  await setWire(true);
  wireIsCut = true;
  for (const tile of struck) tile.tell("frozen");
  await new Promise((later) => setTimeout(later, Math.max(FREEZE_MIN_MS, lease_ms + FREEZE_BEYOND_MS)));
  await setWire(false);
  wireIsCut = false;
  for (const tile of struck) tile.tell("thawed");
}

const instance = async () => (await ask("/v1/guards")).instance;

async function untilReplaced(dead) {
  const until = performance.now() + BACK_MS;
  while ((await instance().catch(() => dead)) === dead) {
    if (performance.now() > until) throw new Error("faultNotBack");
    await soon();
  }
}

function order(resource, key) {
  return ask(`/v1/items/${resource.slice("item:".length)}/orders`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify({ user_id: "heir", quantity: 1 }),
  });
}

// An order once the sale is over. patient: of a holder that was killed. If its lock ends by itself, by
// its lease or its session, the order is sent again until then.
export async function sendHeir(tile, patient) {
  const begun = performance.now(), once = () => order(tile.resource, `${tile.runId}-heir`)
    .then(() => ({ ok: true, problem: "" }), (error) => ({ ok: false, problem: error.problem ?? "noAnswer" }));
  const again = ({ ok, problem }) => !ok && problem !== "sold-out" && patient && tile.ends && performance.now() < begun + HEIR_MS;
  do tile.heir = await once(); while (again(tile.heir) && (await soon(), true));
  const ms = Math.round(performance.now() - begun);
  tile.tell(tile.heir.ok ? "heir" : tile.heir.problem === "sold-out" ? "heirSoldOut" : "heirStuck", tile.heir.ok ? { ms } : {});
}

// The instance dies by SIGKILL with the holders inside, and the load with it.
async function kill(tiles) {
  const dead = await instance(), nothing = `${tiles[0].runId}-killer`;
  await post("/v1/lab/pauses", { point: "submitted", match: nothing, action: "kill" });
  await order("item:nothing", nothing).catch(() => {});
  armed.clear();
  for (const tile of tiles) tile.hold = null;
  await untilReplaced(dead);
  for (const tile of tiles) if (tile.held) tile.tell("killed");
}

// While the sale runs; isOver(): it has ended. Returns when the fault is over.
export async function strike(fault, tiles, lease_ms, isOver) {
  if (fault === "none") return;
  if (fault === "cut") return freeze(tiles, lease_ms, isOver);
  await hold(fault, tiles, lease_ms, isOver);
  if (fault === "kill") await kill(tiles);
}

// After the sale: was the late write of who was held refused? All pauses end.
export async function findOut(tiles) {
  const pauses = await pausesById();
  for (const tile of tiles) {
    if (tile.note !== null && pauses.get(tile.note)?.passed > 0) tile.tell("lateRefused");
    tile.note = null;
  }
  await disarm();
}

export async function disarm() {
  const ids = [...armed];
  armed.clear();
  await Promise.all(ids.map(forget));
}

// The page is left: nobody is to be held for ever.
export function abandon() {
  for (const id of armed) fetch(`/v1/lab/pauses/${id}`, { method: "DELETE", keepalive: true });
  if (wireIsCut) fetch("/v1/lab/wire", { method: "POST", keepalive: true, headers: { "Content-Type": "application/json" }, body: "{\"wished\":false}" });
}
