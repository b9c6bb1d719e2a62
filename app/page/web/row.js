// What requests are stepped through: the row of an account, or of an item. Changes of 1,000, or of
// the last piece.
import { subjects } from "./levels.js";
import { ask } from "./stream.js";

const valuesOf = ({ start, amounts }) => ({ start, amounts: Object.entries(amounts) });

export const ACCOUNT = {
  kind: "account", path: "accounts", value: "balance", change: "transactions",
  ...valuesOf(subjects.account),
  body: ({ amount }) => ({ amount }),
};
export const ITEM = {
  kind: "item", path: "items", value: "stock", change: "orders",
  ...valuesOf(subjects.item),
  body: ({ name, amount }) => ({ user_id: name, quantity: -amount }),
};

const sending = (method, body, headers = {}) =>
  ({ method, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });

export class Row {
  constructor(subject, id) {
    Object.assign(this, { subject, name: `${subject.kind}:${id}`, path: `/v1/${subject.path}/${id}` });
  }

  // As at the beginning, whatever was before.
  put(guard, fence) {
    return ask(`${this.path}/reset`, sending("POST", { [this.subject.value]: this.subject.start, guard, fence }));
  }

  async look() {
    const row = await ask(this.path);
    return { ...row, value: row[this.subject.value] };
  }

  lock() {
    return ask(`/v1/lab/locks/${this.name}`);
  }

  freeLock() {
    return ask(`/v1/lab/locks/${this.name}`, { method: "DELETE" });
  }

  async audit() {
    return (await ask(`/v1/audit?resource=${this.name}`)).resources[0];
  }

  // An actor's request. Its answer, whatever its status.
  change(actor, key) {
    const { change, body } = this.subject;
    return fetch(`${this.path}/${change}`, sending("POST", body(actor), { "X-Request-Id": actor.id, "Idempotency-Key": key }));
  }
}
