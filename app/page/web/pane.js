// One guard's sale: figures, chart, lanes, verdict.
import { drawChart } from "./chart.js";
import { drawLanes } from "./lanes.js";
import { Requests } from "./requests.js";
import { describe } from "./settings.js";
import { duration, number, text, translate } from "./text.js";
import { ask } from "./stream.js";

const RATE_MS = 100; // over less, a rate says nothing
const AUDIT_EVERY_MS = 1000, AUDIT_SHARE = 4; // an audit may read the whole ledger: a quarter of the time at most

export class Pane {
  constructor(parent, onChoose) {
    const copy = document.getElementById("pane").content.cloneNode(true);
    this.root = copy.firstElementChild;
    this.onChoose = onChoose;
    translate(copy);
    parent.append(copy);
    this.reset({ guard: "" }, "idle");
  }

  reset(terms, state) {
    this.terms = terms; // as POST /v1/demo/sales has them
    this.state = state;
    this.resource = this.counters = this.audit = this.result = null;
    this.requests = new Requests();
    this.points = [];
    this.begunAt = performance.now();
    this.told = []; // [seconds, name, values]: what a fault did
    this.auditDue = 0;
    this.killed = false; // its load has died with the instance
    Object.assign(this, { away: false, acceptedBefore: 0, failedBefore: 0, lookedAt: undefined }); // see lookAtServers()
    this.stuck = false; // a lock stands that nobody will ever free
    this.chosen = []; // keys of the requests that are described below: marked in the picture
    this.dirty = true;
  }

  get underWay() {
    return this.state === "queued" || this.state === "running";
  }

  tell(name, values) {
    this.toldFrom = this.told.length ? this.toldFrom : performance.now();
    this.told.push([((performance.now() - this.toldFrom) / 1000).toFixed(1), name, values]);
    this.dirty = true;
  }

  drawTold() {
    const list = this.root.querySelector(".told");
    while (list.children.length > this.told.length) list.lastElementChild.remove();
    this.told.forEach(([seconds, name, values], i) => {
      const line = `${seconds} s  ${text(name, values)}`;
      const entry = list.children[i] ?? list.appendChild(document.createElement("li"));
      if (entry.textContent !== line) entry.textContent = line; // only what is new is read out
    });
  }

  begin(resource) {
    this.resource = resource;
    this.begunAt = performance.now();
    this.state = "running";
    this.dirty = true;
  }

  count(counters) {
    const done = counters.accepted + counters.decided_no + counters.failed;
    const now = performance.now();
    const since = now - this.countedAt;
    if (!this.counters || done < this.done || since >= RATE_MS) { // fewer: of an instance started anew
      if (this.counters && done >= this.done) this.rate = Math.round(((done - this.done) * 1000) / since);
      this.done = done;
      this.countedAt = now;
    }
    this.counters = counters;
    this.dirty = true;
    if (counters.initial < 0) return; // they are of an instance that has not seen the beginning
    if (!this.points.length && counters.amount > 0) // the sale began within the last tenth of a second
      this.mark(now - 100, counters.initial, counters.initial);
    this.mark(now, counters.initial - counters.amount, counters.value);
  }

  mark(t, left, row) {
    this.points.push({ t, left, row });
  }

  // The last word is the ledger's, and the first, too, when no counters were heard.
  async markEnd() {
    await this.look(true);
    const { sold, initial, restocked, current } = this.audit;
    if (!this.points.length) this.mark(this.begunAt, initial, initial);
    this.mark(performance.now(), initial + restocked - sold, current);
  }

  trace(event) {
    this.requests.add(event);
    this.dirty = true;
  }

  // The ledger's word on lost updates; now and then while it runs.
  async look(force) {
    const begun = performance.now();
    if (!this.resource || (!force && (this.state !== "running" || begun < this.auditDue))) return;
    this.audit = (await ask(`/v1/audit?resource=${this.resource}`)).resources[0];
    this.auditDue = begun + Math.max(AUDIT_EVERY_MS, AUDIT_SHARE * (performance.now() - begun));
    this.dirty = true;
  }

  async finish(run) {
    this.resource = `item:sale-${run.run_id}`;
    this.result = run;
    await this.markEnd();
    this.state = this.audit.ok && run.verdict.safe ? "good" : "bad";
    this.dirty = true;
  }

  // There is no report: the load has died.
  async stop() {
    await this.markEnd();
    this.state = !this.audit.ok ? "bad" : this.stuck ? "stuck" : "stopped";
    this.dirty = true;
  }

  // Nobody knows how it went on: what was seen stays.
  breakOff() {
    this.state = this.counters || this.audit ? "broken" : "idle";
    this.dirty = true;
  }

  set(name, value) {
    this.root.querySelector(`[data-is=${name}]`).textContent = value === undefined ? "–" : number(value);
  }

  // Each word of the verdict is one of the ledger's figures.
  verdict(sold, initial, left) {
    const { audit, state } = this;
    if (state !== "good" && state !== "bad") return text(state, { sold: sold ?? "–", initial: initial ?? "–" });
    const figures = this.result?.verdict ?? {};
    const wrong = Object.entries(figures).filter(([, figure]) => typeof figure === "number" && figure > 0);
    const name = state === "good" ? "good" : audit.oversold > 0 ? "bad" : audit.lost_updates > 0 ? "lostOnly"
      : left > 0 && figures.undersold > 0 ? "under" : "unsound";
    return text(name, {
      sold, initial, left, oversold: audit.oversold, lost: audit.lost_updates, row: audit.current,
      figures: wrong.map((pair) => pair.join(" ")).join(", "),
    });
  }

  // Where the time of a buyer went: the load's figures and the service's are of different things.
  latencies(p50_us) {
    const { load, latency_us: due, sent_late_us: late, service_us: sent } = this.result ?? {};
    if (!due?.p50 || !sent?.p50 || !p50_us) return "";
    return text("latencies", {
      buyer: duration(due.p50), wait: duration(late.no_connection.p50 ?? 0), request: duration(sent.p50), service: duration(p50_us),
      connections: load.connections,
    });
  }

  draw(lanes) {
    if (!this.dirty) return;
    this.dirty = false;
    const { counters, audit, root } = this, ended = audit !== null && ["good", "bad", "stopped", "stuck"].includes(this.state);
    const initial = ended ? audit.initial + audit.restocked : counters?.initial;
    const sold = ended ? audit.sold : counters?.amount;
    const left = sold === undefined || !(initial >= 0) ? undefined : initial - sold;
    root.dataset.state = left < 0 ? "bad" : this.state;
    root.querySelector("h2").textContent = this.terms.guard;
    root.querySelector(".settings").textContent = describe(this.terms);
    root.querySelector(".verdict").textContent = this.verdict(sold, initial, left);
    root.querySelector(".number").textContent = left === undefined ? "–" : number(left);
    this.set("sold", sold);
    const row = ended ? audit.current : counters?.value;
    this.set("row", row);
    this.set("oversold", ended ? audit.oversold : left === undefined ? undefined : Math.max(0, -left));
    this.set("lost", audit?.lost_updates);
    const whole = counters?.initial >= 0 ? counters : undefined; // else of an instance that has not seen the beginning
    this.set("turnedAway", whole?.decided_no);
    this.set("failures", whole?.failed);
    const result = this.result;
    this.set("rate", result ? Math.round(result.load?.completed / result.load?.duration_s) : this.rate);
    this.set("p50", whole?.p50_us ? duration(whole.p50_us) : undefined);
    this.set("p99", whole?.p99_us ? duration(whole.p99_us) : undefined);
    this.set("p50Buyer", result?.latency_us?.p50 ? duration(result.latency_us.p50) : undefined);
    root.querySelector(".latencies").textContent = this.latencies(whole?.p50_us);
    const chart = root.querySelector(".chart");
    chart.setAttribute("aria-label", text("chart", { guard: this.terms.guard, left: left ?? "–", row: row ?? "–" }));
    drawChart(chart, this.points, initial > 0 ? initial : 1);
    const lease_us = this.terms.watchdog ? undefined : this.terms.lease_ms * 1000;
    drawLanes(root.querySelector(".lanes"), this.requests.shown(lanes, ended, this.chosen), lease_us, this.chosen, (request) => this.onChoose(this, request));
    this.drawTold();
  }
}
