// What goes wrong on purpose in a sale, through the routes of the lab: a holder is held just before
// its write until its lock is another one's, and then let go.
import { ask, post } from "./stream.js";
import { text } from "./text.js";

const LOOK_MS = 100, GRACE_MS = 2000, OUTCOME_MS = 10000, BACK_MS = 60000;

const soon = () => new Promise((later) => setTimeout(later, LOOK_MS));
const add = async (point, match, action) => (await post("/v1/lab/pauses", { point, match, action })).id;
const forget = (id) => ask(`/v1/lab/pauses/${id}`, { method: "DELETE" }).catch(() => {}); // it may be forgotten already

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

// Takes the lock away, or waits for its end. True: another one got in, read and decided; false: nobody.
async function untilAnotherDecided(fault, item, pane, decided) {
  if (fault === "flush") {
    const { was_held } = await ask(`/v1/lab/locks/item:${item}`, { method: "DELETE" });
    pane.tell(was_held ? "faultFlushed" : "faultNoLock");
  } else {
    const { holders, left_ms } = await ask(`/v1/lab/locks/item:${item}`);
    pane.tell(holders === 0 ? "faultNoLock" : left_ms === null ? "faultNoLease" : "faultLease", { left: left_ms ?? 0 });
  }
  const until = performance.now() + (pane.terms.lease_ms ?? 0) + GRACE_MS;
  while (performance.now() < until) {
    if ((await pauseOf(decided)).passed > 0) {
      pane.tell("faultNext");
      return true;
    }
    await soon();
  }
  pane.tell(pane.terms.watchdog && fault === "pause" ? "faultRenewed" : "faultNobody");
  return false;
}

// What became of the first one's write, and of the item when another one had written as well.
async function outcome(notes, item, pane, version, two) {
  const until = performance.now() + OUTCOME_MS;
  let told = false;
  while (performance.now() < until) {
    const refused = (await pauseOf(notes.rejected)).passed > 0, written = (await pauseOf(notes.committed)).passed > 0;
    if ((refused || written) && !told) pane.tell(refused ? "faultRefused" : "faultWrote");
    told ||= refused || written;
    if (told && (await ask(`/v1/items/${item}`)).version >= version + 2) break;
    await soon();
  }
  await pane.look(true);
  const lost = pane.audit.lost_updates;
  pane.tell(lost > 0 ? "faultLost" : two && pane.terms.fence ? "faultFenced" : "faultNothingLost", { lost });
}

function order(item, key) {
  return ask(`/v1/items/${item}/orders`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": `${item}-${key}` },
    body: JSON.stringify({ user_id: key, quantity: 1 }),
  });
}

const instance = async () => (await ask("/v1/guards")).instance;

// Another instance than this one answers.
async function untilReplaced(dead) {
  const until = performance.now() + BACK_MS;
  for (;;) {
    const now = await instance().catch(() => dead);
    if (now !== dead) return;
    if (performance.now() > until) throw new Error(text("faultNotBack"));
    await soon();
  }
}

// The whole instance dies by SIGKILL with its holder inside, and the load with it. Who buys next,
// once it has been started again?
async function kill(item, pane) {
  const dead = await instance(), nothing = `${item}-x`; // an order of nothing, should it be sent again
  // At a point that is passed before there is a worker free.
  await post("/v1/lab/pauses", { point: "submitted", match: `${nothing}-killer`, action: "kill" });
  await order(nothing, "killer").catch(() => {});
  await untilReplaced(dead);
  pane.tell("faultKilled");
  const { holders, left_ms } = await ask(`/v1/lab/locks/item:${item}`);
  pane.tell(holders === 0 ? "faultNoLock" : left_ms === null ? "faultNoLease" : "faultOrphan", { left: left_ms ?? 0 });
  const begun = performance.now();
  try {
    await order(item, "heir");
    pane.tell("faultHeir", { waited: Math.round(performance.now() - begun) });
  } catch (error) {
    pane.tell("faultStuck", { why: error.message });
  }
  await pane.stop();
}

// fault: "pause", "flush" or "kill"; id: of arm(). Tells the pane what happens.
export async function strike(fault, id, pane) {
  const notes = {};
  let killed = false; // and whoever was held, and all pauses, with it
  try {
    const key = await heldOne(id, pane);
    if (key === undefined) return pane.tell("faultTooLate");
    const item = key.replace(/-\d+$/, "");
    if (!pane.resource) pane.begin(`item:${item}`); // sooner known here than from the stream
    pane.requests.mark(key);
    pane.tell("faultHeld", { key });
    if (fault === "kill") {
      killed = true;
      return await kill(item, pane);
    }
    for (const point of ["rejected", "committed"]) notes[point] = await add(point, key, "note");
    const { version } = await ask(`/v1/items/${item}`);
    notes.decided = await add("decided", "", "note"); // the one that is held has passed it
    const two = await untilAnotherDecided(fault, item, pane, notes.decided);
    await post(`/v1/lab/pauses/${id}`, {});
    await outcome(notes, item, pane, version, two);
  } finally {
    if (!killed) for (const one of [id, ...Object.values(notes)]) await forget(one);
  }
}
