// One guard's tile.
import { ask } from "./stream.js";
import { duration, language, text, translate } from "./text.js";

const STORY_MAX = 6;

export class Tile {
  constructor(list, terms, service, { buyers, stock, fault }) {
    Object.assign(this, { terms, guard: terms.guard, onServer: service?.kind === "lock" && service.caps.includes("distributed"), ends: ["lease", "session"].some((cap) => service?.caps.includes(cap)), surelyEnds: ["atomic-lease", "session"].some((cap) => service?.caps.includes(cap)), runId: terms.run_id, buyers, stock, fault });
    this.resource = `item:sale-${terms.run_id}`;
    this.state = terms.run_id ? "queued" : "idle";
    this.item = this.verdict = this.report = this.audit = this.heir = null;
    this.story = []; // [name, values]: what the fault did here
    const copy = document.getElementById("tile").content.cloneNode(true);
    this.root = copy.firstElementChild;
    translate(copy);
    list.append(copy);
    this.draw();
  }

  tell(name, values = {}) {
    this.story.push([name, values]);
    this.draw();
  }

  // The row now.
  async look() {
    this.item = await ask(`/v1/items/sale-${this.runId}`);
    if (this.state === "queued") this.state = "running";
    this.draw();
    return this.item;
  }

  end(verdict, report, audit) {
    Object.assign(this, { verdict, report, audit, state: verdict.state });
    this.draw();
  }

  // Nobody knows how it went on: what was seen stays.
  breakOff() {
    if (this.state === "queued" || this.state === "running") this.state = "unknown";
    this.draw();
  }

  // The sale of this guard alone, with the same settings: on one instance, where each request is seen.
  address() {
    const { lease_ms, watchdog, fence } = this.terms, query = new URLSearchParams({ a: this.guard, b: this.guard === "none" ? "redis-token" : "none" });
    const word = (on) => (on ? "on" : "off");
    if (lease_ms) query.set("a_lease", lease_ms);
    if (lease_ms && watchdog !== undefined) query.set("a_watchdog", word(watchdog));
    if (fence !== undefined) query.set("a_fence", word(fence));
    if (this.buyers) query.set("buyers", this.buyers);
    if (this.stock) query.set("stock", this.stock);
    if (this.fault !== "none") query.set("fault", this.fault);
    query.set("lang", language());
    return `/?${query}`;
  }

  drawBar(sold) {
    const share = (part, whole) => `${whole > 0 ? Math.min(100, (100 * part) / whole) : 0}%`;
    const over = Math.max(0, sold - this.stock);
    this.root.querySelector(".bar i").style.width = share(sold, this.stock);
    this.root.querySelector(".bar b").style.width = share(over, sold);
  }

  draw() {
    const { root, audit, item, report } = this;
    const sold = audit?.sold ?? item?.sold ?? 0, row = audit?.current ?? item?.stock;
    root.dataset.state = this.state;
    root.dataset.guard = this.guard;
    root.dataset.resource = this.resource;
    root.querySelector("h2").textContent = this.guard;
    root.querySelector(".verdict").textContent = this.verdict ? text(`verdict.${this.verdict.name}`, this.verdict.values) : text(`tile.${this.state}`);
    root.querySelector(".figures").textContent = row === undefined ? "" : text("figures", { sold, stock: this.stock, row });
    root.querySelector(".cost").textContent = report ? this.cost() : "";
    this.drawBar(sold);
    const story = root.querySelector(".story"), lines = this.story.slice(-STORY_MAX).map(([name, values]) => text(`story.${name}`, values));
    if (story.textContent !== lines.join("")) story.replaceChildren(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
    const link = root.querySelector("a");
    link.href = this.address();
    link.textContent = text("closer");
    link.setAttribute("aria-label", text("closerTo", { guard: this.guard }));
  }

  cost() {
    const { accepted_per_s, service_us: { p50, p90, p99, max } } = this.report;
    const shown = (us) => (us === null ? "–" : duration(us).replace(" ", "\u00a0")); // a line does not end before the unit
    return text(p99 === null ? "cost" : "costMany", // of few answers there is no p99
      { rate: Math.round(accepted_per_s), p50: shown(p50), p90: shown(p90), p99: shown(p99), max: shown(max) });
  }
}
