// The lab's routes, and one request that is held at its points.
import { ask, post } from "./stream.js";

const PATIENCE_MS = 3600000;
// Passed by whoever gets that far, to be seen without holding anybody there.
const NOTED = ["lock.wait", "acquired", "read", "decided"];

// Where they all stand. One that was moved since the question, or that was just being moved, is
// looked at the next time: the answer may be of before.
export async function look(actors) {
  const before = actors.map((actor) => ({ moves: actor.moves, letting: actor.letting, answered: actor.answer !== undefined }));
  const { pauses } = await ask("/v1/lab/pauses");
  actors.forEach((actor, i) => {
    if (!before[i].letting && before[i].moves === actor.moves) actor.look(pauses, before[i].answered);
  });
}

export class Actor {
  constructor(session, name, amount, points) {
    Object.assign(this, { name, amount, points, id: `${session}-${name}`, pauses: new Map(), moves: 0, letting: false });
    this.reset();
  }

  reset() {
    this.state = "idle"; // idle, moving, held, waiting, done
    this.at = this.read = this.wrote = this.fence = this.token = this.answer = undefined;
    this.again = false;
    this.answers = []; // of all its tries in this round
    this.reached = -1; // index of the last point it was held at
    this.round = (this.round ?? 0) + 1;
    this.base = this.last ?? new Map();
  }

  // Its pauses stay for all rounds: they match by X-Request-Id.
  async arm(lease_ms) {
    await post("/v1/lab/terms", { match: this.id, lease_ms, wait_ms: PATIENCE_MS });
    const one = async (point, action) => {
      const { id } = await post("/v1/lab/pauses", { point, match: this.id, action, count: 1000000 });
      this.pauses.set(point, id);
    };
    for (const point of this.points) await one(point, "hold");
    for (const point of NOTED) if (!this.pauses.has(point)) await one(point, "note");
  }

  // The same Idempotency-Key when it tries again: it is the same intent. decided: nor would another
  // try change the answer.
  send(row) {
    this.state = "moving";
    this.base = this.last ?? new Map();
    this.answer = this.read = this.wrote = undefined;
    this.under = row.change(this, this.key).then(async (answer) => {
      const body = await answer.json();
      return { ok: answer.ok, decided: answer.status === 409, problem: answer.ok ? "" : String(body.type).split("/").pop() };
    }).catch(() => ({ ok: false, problem: "noAnswer" })).then((answer) => {
      this.answers.push(answer);
      this.answer = answer;
    });
    this.reached = -1;
    this.moves++;
  }

  async letGo() {
    const id = this.pauses.get(this.at);
    this.state = "moving";
    this.at = undefined;
    this.letting = true;
    this.moves++;
    try {
      await post(`/v1/lab/pauses/${id}`, {});
    } finally {
      this.letting = false;
      this.moves++;
    }
  }

  get key() {
    return `${this.id}-${this.round}`;
  }

  // What the service says of its pauses, put into words of its own.
  look(list, answered) {
    const of = new Map(list.map((pause) => [pause.id, pause]));
    const pause = (point) => of.get(this.pauses.get(point));
    const times = (point) => (pause(point)?.passed ?? 0) - (this.base.get(point) ?? 0);
    const seen = (point) => (pause(point)?.passed ?? 0) > (this.last?.get(point) ?? 0);
    if (this.state === "moving" || this.state === "waiting") {
      if (seen("read")) {
        this.again = this.read !== undefined; // its write was refused, and it begins anew
        this.read = pause("read").value;
        this.fence = pause("read").fence;
        this.wrote = undefined;
      }
      if (seen("decided")) this.wrote = pause("decided").value === this.read ? undefined : pause("decided").value; // a refusal
      const at = this.points.find((point) => pause(point)?.n_held > 0);
      this.at = at;
      if (at) this.reached = this.points.indexOf(at);
      this.state = at ? "held" : answered ? "done" : times("lock.wait") > 0 && times("acquired") === 0 ? "waiting" : "moving";
    }
    this.last = new Map([...this.pauses.keys()].map((point) => [point, pause(point)?.passed ?? 0]));
  }

  // Between the lock and its end: what it has read may grow old.
  get inside() {
    return this.state === "held" && this.at !== "waiting";
  }

  get movable() {
    return this.state === "idle" || this.state === "held" || (this.state === "done" && !this.answer.ok && !this.answer.decided);
  }

  async leave() {
    const ids = [...this.pauses.values()];
    this.pauses.clear();
    await Promise.all(ids.map((id) => ask(`/v1/lab/pauses/${id}`, { method: "DELETE" }).catch(() => {})));
    await this.under;
  }

  // The page is closed: nobody is to be held for ever.
  abandon() {
    for (const id of this.pauses.values()) fetch(`/v1/lab/pauses/${id}`, { method: "DELETE", keepalive: true });
  }
}
