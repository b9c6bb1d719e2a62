// What goes wrong on purpose in a sale, through the routes of the lab: a holder is held just before
// its write until another one has written, and then let go.
import { shortFences } from "./facts.js";
import { ask, heardFrom, post } from "./stream.js";
import { reason, text } from "./text.js";
import { setWire } from "./wire.js";

const LOOK_MS = 100, GRACE_MS = 2000, OUTCOME_MS = 10000, BACK_MS = 60000, HEARD_MS = 3000;
const CUT_MIN_MS = 1000, BY_HAND_MS = 60000;
const REFUSED_MS = 12000; // who stood in line already gives up after --wait-ms
const AFTER_CUT_MS = 10000; // who was refused comes again
let wire = null; // while it is cut: {restored}

const soon = () => new Promise((later) => setTimeout(later, LOOK_MS));
const add = async (point, match, action) => (await post("/v1/lab/pauses", { point, match, action })).id;
const forget = (id) => ask(`/v1/lab/pauses/${id}`, { method: "DELETE" }).catch(() => {}); // it may be forgotten already
const lockOf = (item) => ask(`/v1/lab/locks/item:${item}`);

async function pauseOf(id) {
  const { pauses } = await ask("/v1/lab/pauses");
  return pauses.find((pause) => pause.id === id);
}

// From now on the next one that is about to write is held. Before a sale, so that somebody is.
export const arm = () => add("checked", "", "hold");

// The Idempotency-Key of who is held; undefined when the sale ended before.
async function heldOne(id, pane) {
  while (pane.underWay) {
    const pause = await pauseOf(id);
    if (pause?.n_held > 0) return pause.held[0];
    await soon();
  }
}

export const wireIsCut = () => wire !== null;

export function restore() {
  wire.restored = true;
}

// The wire is cut until the lock's lease must have ended in Redis, where nobody can renew it, and an
// order was refused; by hand: until it is restored. There may be no lock.
async function cutWire(item, pane, locked, byHand) {
  const lease_ms = Math.max(CUT_MIN_MS, locked ? pane.terms.lease_ms ?? 0 : 0);
  const longest_ms = byHand ? BY_HAND_MS : lease_ms + REFUSED_MS;
  const sold = async () => (await ask(`/v1/items/${item}`)).sold, refused = () => pane.counters?.failed ?? 0;
  try {
    await setWire(true);
    wire = { restored: false };
    pane.requests.note("wire cut");
    const before = await sold(), refusedBefore = refused(), begun = performance.now();
    pane.tell("faultIsCut");
    const enough = () => !byHand && performance.now() > begun + lease_ms && (!locked || refused() > refusedBefore);
    while (!wire.restored && !enough() && performance.now() < begun + longest_ms) await soon();
    pane.tell("faultCutOrders", { failed: refused() - refusedBefore, written: (await sold()) - before });
  } finally {
    wire = null;
    await setWire(false);
  }
  pane.requests.note("wire restored");
  pane.tell("faultRestored");
}

// Takes the lock away, or waits for its end. True: another one got in and wrote, as committed shows;
// false: nobody.
async function untilAnotherWrote(fault, item, key, pane, committed, byHand) {
  if (fault === "flush") {
    const before_us = performance.now() * 1000, { was_held } = await ask(`/v1/lab/locks/item:${item}`, { method: "DELETE" });
    if (was_held) pane.requests.note("key deleted by somebody", undefined, before_us);
    pane.tell(was_held ? "faultFlushed" : "faultNoLock");
  } else {
    const { holders, left_ms } = await lockOf(item);
    pane.tell(holders === 0 ? "faultNoLock" : left_ms === null ? "faultNoLease" : "faultLease", { left: left_ms ?? 0 });
    if (fault === "cut") await cutWire(item, pane, holders > 0, byHand);
  }
  const lease_ms = pane.terms.lease_ms ?? 0, begun = performance.now();
  const patience_ms = fault === "cut" ? AFTER_CUT_MS : lease_ms + GRACE_MS;
  while (performance.now() < begun + patience_ms) {
    if ((await pauseOf(committed)).passed > 0 || pane.requests.hasRival(key)) { // who wrote before the note
      pane.tell("faultNext");
      return true;
    }
    if (fault !== "flush" && pane.terms.watchdog && performance.now() > begun + lease_ms && (await lockOf(item)).left_ms > 0) {
      pane.tell("faultRenewed");
      return false;
    }
    await soon();
  }
  pane.tell("faultNobody");
  return false;
}

// By which fence a refusal was, if it was by one: as the picture has it; or the row has seen a newer one.
async function fencesOf(item, pause, key, pane) {
  const drawn = () => pane.requests.bought.find((one) => one.key === key && one.refused);
  await untilHeard(drawn);
  if (drawn()) return drawn().fences ?? null;
  const { last_fence } = await lockOf(item);
  return pause.fence > 0 && last_fence > pause.fence ? shortFences(pause.fence, last_fence) : null;
}

// What became of the first one's write, and of the item when another one had written as well.
async function outcome(notes, item, key, pane, version) {
  const until = performance.now() + OUTCOME_MS;
  let told = false, fences = null;
  while (performance.now() < until) {
    const passed = async (point) => (await pauseOf(notes[point])).passed > 0;
    const refused = await passed("rejected"), written = await passed("committed");
    if (refused && !told) {
      fences = pane.terms.fence ? await fencesOf(item, await pauseOf(notes.rejected), key, pane) : null;
      pane.tell(fences ? "faultRefusedFence" : "faultRefused", fences ? { old: fences.fence, newer: fences.newer } : {});
    } else if (written && !told) {
      pane.tell((await passed("read")) ? "faultAgain" : "faultWrote");
    }
    told ||= refused || written;
    if (told && (!pane.underWay || (await ask(`/v1/items/${item}`)).version >= version + 2)) break;
    await soon();
  }
  await pane.look(true);
  const lost = pane.audit.lost_updates;
  pane.tell(lost > 0 ? "faultLost" : fences ? "faultFenced" : "faultNothingLost", { lost });
}

function order(item, key) {
  return ask(`/v1/items/${item}/orders`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": `${item}-${key}` },
    body: JSON.stringify({ user_id: key, quantity: 1 }),
  });
}

const instance = async () => (await ask("/v1/guards")).instance;

// Another instance than this one answers. Its name.
async function untilReplaced(dead) {
  const until = performance.now() + BACK_MS;
  for (;;) {
    const now = await instance().catch(() => dead);
    if (now !== dead) return now;
    if (performance.now() > until) throw new Error(text("faultNotBack"));
    await soon();
  }
}

// What the stream brings, unless it takes too long.
async function untilHeard(known) {
  const until = performance.now() + HEARD_MS;
  while (!known() && performance.now() < until) await soon();
}

// The whole instance dies by SIGKILL with its holder inside, and the load with it. Who buys next,
// once it has been started again?
async function kill(item, key, pane) {
  const dead = await instance(), nothing = `${item}-x`; // an order of nothing, should it be sent again
  await untilHeard(() => pane.requests.all.get(key)?.wrote !== undefined);
  pane.killed = true;
  // At a point that is passed before there is a worker free.
  await post("/v1/lab/pauses", { point: "submitted", match: `${nothing}-killer`, action: "kill" });
  await order(nothing, "killer").catch(() => {});
  const killed_us = pane.requests.now_us();
  const successor = await untilReplaced(dead);
  pane.tell("faultKilled");
  const { holders, left_ms } = await lockOf(item), looked = performance.now();
  pane.tell(holders === 0 ? "faultNoLock" : left_ms === null ? "faultNoLease" : "faultOrphan", { left: left_ms ?? 0 });
  const freed_us = left_ms === null ? null : pane.requests.now_us() + left_ms * 1000;
  pane.requests.kill(killed_us, holders === 0 ? undefined : freed_us);
  await untilHeard(() => heardFrom === successor); // what is passed before is not told
  try {
    await order(item, "heir");
    pane.tell("faultHeir", { waited: Math.round(performance.now() - looked) }); // since the line above
    await untilHeard(() => pane.requests.all.get(`${item}-heir`)?.done);
  } catch (error) {
    pane.tell("faultStuck", { why: reason(error) });
    const still = await lockOf(item);
    pane.stuck = still.holders > 0 && still.left_ms === null;
    if (pane.stuck) pane.tell("faultForever");
  }
  await pane.stop();
}

// fault: "pause", "flush", "cut" or "kill"; id: of arm(); byHand: a wire cut waits for restore().
// Tells the pane what happens.
export async function strike(fault, id, pane, byHand) {
  const notes = {};
  let killed = false; // and whoever was held, and all pauses, with it
  try {
    const key = await heldOne(id, pane);
    if (key === undefined) return pane.tell("faultTooLate");
    const item = key.replace(/-\d+$/, "");
    if (!pane.resource) pane.begin(`item:${item}`); // sooner known here than from the stream
    pane.requests.mark(key);
    pane.requests.note("held", key);
    pane.tell("faultHeld", { key });
    if (fault === "kill") {
      killed = true;
      return await kill(item, key, pane);
    }
    for (const point of ["read", "rejected", "committed"]) notes[point] = await add(point, key, "note");
    const { version } = await ask(`/v1/items/${item}`);
    notes.others = await add("committed", "", "note"); // the one that is held does not pass it yet
    await untilAnotherWrote(fault, item, key, pane, notes.others, byHand);
    pane.requests.note("let go", key);
    await post(`/v1/lab/pauses/${id}`, {});
    await outcome(notes, item, key, pane, version);
  } finally {
    if (!killed) for (const one of [id, ...Object.values(notes)]) await forget(one);
  }
}
