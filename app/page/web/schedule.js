// All orders in which two requests can be moved, one after the other, until one does harm.
import { Actor, look } from "./lab.js";
import { Row } from "./row.js";
import { ask } from "./stream.js";

const LOOK_MS = 5, SETTLE_MS = 60000, ORDERS_MAX = 5000;
const POINTS = ["read", "committed"];
// These read inside the store's one write transaction. The other could only wait for it there, unseen,
// and is not moved meanwhile.
export const INSIDE_STORE = new Set(["sql-row", "sql-atomic"]);
export const VANISH = "×";
// The points that the player tells, as it calls them.
const TOLD = Object.fromEntries(["waiting", "lock.wait", "lock.acquired", "read", "decided", "checked", "committed", "lock.released", "lost", "rejected"]
  .map((point) => [point, point]).concat([["submitted", "sends"]]));

// What is committed under a decided refusal is the refusal alone, for a retry.
export const written = ({ name, wrote }) =>
  (wrote === undefined ? { what: "writesRefusal", name } : { what: "writes", name, value: wrote });

const later = (ms) => new Promise((done) => setTimeout(done, ms));

export class Search {
  constructor({ subject, session, guard, fence, vanish, onOrder }) {
    Object.assign(this, { guard, fence, vanish, onOrder, waits: 0, made: "", schedules: [] });
    this.row = new Row(subject, `find-${session}`);
    this.actors = subject.amounts.slice(0, 2).map(([name, amount]) => new Actor(`find-${session}`, name, amount, POINTS));
  }

  // {tried, waits, schedules, lost, lines, value, expected, moves, events}: schedules: {moves: "ABAB",
  // loses} of each order; lost is undefined when none of them does harm; moves, events: of the one that does.
  async run() {
    const path = []; // of the order under way: what could be moved, which of them was
    let tried = 0;
    try {
      for (const actor of this.actors) await actor.arm(0);
      await this.row.put(this.guard, this.fence);
      this.vanish &&= (await this.row.lock()).key !== ""; // not every guard is a lock
      do {
        if (tried === ORDERS_MAX) throw new Error(`more than ${ORDERS_MAX} orders`);
        const outcome = await this.one(path);
        this.schedules.push({ moves: this.made, loses: outcome.lost !== 0 });
        this.onOrder(++tried);
        if (outcome.lost !== 0) return { ...this.sums(), ...outcome, moves: this.made, events: await this.events() };
        while (path.length && ++path.at(-1).index === path.at(-1).enabled.length) path.pop();
      } while (path.length);
      return this.sums();
    } finally {
      for (const actor of this.actors) await actor.leave();
    }
  }

  sums() {
    return { tried: this.schedules.length, waits: this.waits, schedules: this.schedules };
  }

  // Of the order that was tried last, as the player wants them.
  async events() {
    const [{ events }, { key: lock }] = await Promise.all([ask("/v1/lab/trace"), this.row.lock()]), told = [];
    const nameOf = (key) => this.actors.find((actor) => actor.key === key)?.name;
    for (const { t_us: t, point, key, lock: which, value, fence } of events) {
      const who = nameOf(key);
      if (who && point in TOLD && (lock !== "" || TOLD[point] !== "waiting")) told.push([t, who, TOLD[point], value, fence]);
      else if (told.length && point === "lock.freed" && which === lock) told.push([t, "locks", "key deleted by somebody", null, 0]);
    }
    return told.filter(([, who, point], i) => point !== "lock.wait" || !told.slice(0, i).some((one) => one[1] === who && one[2] === point))
      .map(([t, ...rest]) => [t - told[0][0], ...rest]);
  }

  async one(path) {
    this.lines = [];
    this.made = "";
    this.robbed = new Set();
    await this.row.put(this.guard, this.fence);
    for (const actor of this.actors) actor.reset();
    for (let depth = 0; ; depth++) {
      const enabled = this.enabled();
      if (!enabled.length) {
        if (depth < path.length) throw new Error("the service did not behave the same way twice");
        return this.judge();
      }
      if (depth === path.length) path.push({ enabled, index: 0 });
      if (path[depth].enabled.join() !== enabled.join()) throw new Error("the service did not behave the same way twice");
      await this.move(enabled[path[depth].index]);
    }
  }

  enabled() {
    const inStore = (actor) => INSIDE_STORE.has(this.guard) && actor.at === "read";
    const names = this.actors.filter((actor) => actor.state === "held" || (actor.state === "idle" && !this.actors.some(inStore)))
      .map((actor) => actor.name);
    if (this.vanish && !this.robbed.size && this.actors.some((actor) => actor.inside)) names.push(VANISH);
    return names;
  }

  async move(name) {
    this.made += name;
    const before = this.actors.map((actor) => [actor.state, actor.at]);
    if (name === VANISH) {
      for (const actor of this.actors) if (actor.inside) this.robbed.add(actor);
      await this.row.freeLock();
      this.lines.push({ what: "vanished" });
    } else {
      const actor = this.actors.find((one) => one.name === name);
      await (actor.state === "idle" ? actor.send(this.row) : actor.letGo());
    }
    await this.settle();
    this.actors.forEach((actor, i) => {
      if (before[i][0] !== actor.state || before[i][1] !== actor.at) this.note(actor);
    });
  }

  note({ name, state, at, read, wrote, answer }) {
    if (state === "waiting") this.waits++;
    if (state === "waiting") this.lines.push({ what: "mustWait", name });
    else if (state === "held") this.lines.push(at === "read" ? { what: "reads", name, value: read } : written({ name, wrote }));
    else if (state === "done") this.lines.push(answer.ok ? { what: "leaves", name } : { what: "isRefused", name, problem: answer.problem });
  }

  // Until each one stands somewhere, or is known to wait for the other.
  async settle() {
    const until = performance.now() + SETTLE_MS;
    for (;;) {
      await look(this.actors);
      if (this.actors.every((actor) => this.stands(actor))) return;
      if (performance.now() > until) throw new Error("a request came nowhere");
      await later(LOOK_MS);
    }
  }

  stands(actor) {
    const other = this.actors.find((one) => one !== actor);
    if (actor.state === "waiting") return other.inside && !this.robbed.has(other);
    return actor.state !== "moving";
  }

  // Of an answer that does not say whether something was written, nothing can be concluded.
  async judge() {
    const unknown = this.actors.find(({ answer }) => !answer.ok && !answer.decided && answer.problem !== "lock-lost");
    if (unknown) throw new Error(`${unknown.name}: ${unknown.answer.problem}`);
    const { value } = await this.row.look();
    const expected = this.actors.reduce((sum, actor) => sum + (actor.answer.ok ? actor.amount : 0), this.row.subject.start);
    return { lost: value - expected, value, expected, lines: this.lines };
  }
}
