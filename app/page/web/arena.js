// The arena: all guards whose servers answer sell at the same time, over all instances, and one fault
// strikes them all.
import { judge } from "./arena_judge.js";
import { abandon, arm, disarm, findOut, sendHeir, spared, strike } from "./arena_strike.js";
import { Tile } from "./arena_tile.js";
import { clock, drawNotices, notice, noticeOfLink, refusalOf, settled } from "./notices.js";
import { ask, post } from "./stream.js";
import { reason, setLanguage, speak, text } from "./text.js";
import { mendWire } from "./wire.js";

const LOOK_MS = 400, STALL_MS = 15000, // longer than a request waits for its lock
   IDLE_MS = 2000, GONE_MS = 60000,
   MISSED_MS = 5000; // a server that has answered, and does not, is asked again for so long
const form = document.getElementById("form"), start = document.getElementById("start"), lang = document.getElementById("lang");
const message = document.getElementById("message"), summary = document.getElementById("summary");
const given = new URLSearchParams(location.search);
let tiles = [], busy = false, said = [], summed = [], instances = 1, gone = null;

speak("page", "faults", "state", "arena");
lang.value = (given.get("lang") ?? navigator.language).startsWith("zh") ? "zh" : "en";
setLanguage(lang.value);
let service = await ask("/v1/guards").catch((error) => {
  message.textContent = reason(error);
  throw error;
});

/* -- words ----------------------------------------------------------------------------------- */

function tell(...what) {
  said = what;
  message.textContent = what.length ? text(...what) : "";
}

function sum(...what) {
  summed = what;
  summary.textContent = what.length ? text(...what) : "";
}

// Does the service answer? Said when it does not, and when it does again.
function answers(now) {
  document.getElementById("connection").textContent = text(now ? "connected" : "reconnecting");
  if (!now && gone === null) notice("service", "noService", { time: clock() });
  if (now && gone !== null) notice("service", "serviceBack", { time: clock() });
  gone = now ? null : gone ?? performance.now();
}

const WHERE = [["zk-", "--zookeeper"], ["memcached", "--memcached"], ["pg-", "--lock-db"]];

function drawAway() {
  const away = service.guards.filter((guard) => !guard.servers_answer), section = document.getElementById("away");
  section.hidden = !away.length;
  section.querySelector("ul").replaceChildren(...away.map(({ name }) => {
    const option = WHERE.find(([prefix]) => name.startsWith(prefix))?.[1] ?? "--redis";
    return Object.assign(document.createElement("li"), { textContent: text("away", { guard: name, option }) });
  }));
}

// Which tiles the chosen fault strikes, before it does.
function drawStrikes() {
  const fault = service.lab ? field("fault").value : "none", not = tiles.filter((tile) => spared(fault, tile));
  document.getElementById("strikes").textContent = fault === "none" ? text("strikes.none")
    : text("strikes", { what: text(`strikes.${fault}`), n: tiles.length - not.length, all: tiles.length, not: not.map(({ guard }) => guard).join(", ") });
}

/* -- settings: all in the address ---------------------------------------------------------------- */

const field = (name) => form.elements[name];
const number = (name) => +field(name).value;

function openSettings() {
  const refusals = [];
  for (const name of ["fault", "lease", "watchdog"]) field(name).disabled = !service.lab;
  for (const [name, wanted] of given) {
    const input = form.elements[name];
    if (name === "lang") continue;
    if (!input?.name) refusals.push(["noSuchName", { name }]);
    else if (input.disabled) refusals.push(["notHere", { name, wanted }]);
    else refusals.push(honour(input, wanted));
  }
  noticeOfLink(refusals.filter((refusal) => refusal !== undefined));
}

function honour(input, wanted) {
  const box = input.type === "checkbox", before = box ? (input.checked ? "on" : "off") : input.value;
  if (box ? wanted === "on" || wanted === "off" : (input.value = wanted, input.value === wanted && input.checkValidity())) {
    if (box) input.checked = wanted === "on";
    return undefined;
  }
  if (!box) input.value = before;
  return refusalOf(input, input.name, wanted, before);
}

function keepSettings() {
  const query = new URLSearchParams();
  for (const input of form.elements)
    if (input.name) query.set(input.name, input.type !== "checkbox" ? input.value : input.checked ? "on" : "off");
  query.set("lang", lang.value);
  history.replaceState(null, "", `?${query}`);
}

// Of one guard: what it cannot have is left out.
function termsOf(guard) {
  const can = (cap) => guard.caps.includes(cap), terms = { guard: guard.name };
  if (service.lab && can("lease")) terms.lease_ms = number("lease");
  if (service.lab && can("lease") && can("renew")) terms.watchdog = field("watchdog").checked;
  if (can("fence") || (service.fence_source === "database" && guard.kind === "lock")) terms.fence = field("fence").checked;
  return terms;
}

/* -- a run --------------------------------------------------------------------------------------- */

const answering = () => service.guards.filter((guard) => guard.servers_answer);

// Before any sale: a tile for each guard whose server answers.
function layOutIdle() {
  layOut(answering().map((guard) => ({ guard: guard.name })), 0, 0, "none");
}

function layOut(sales, buyers, stock, fault) {
  const list = document.getElementById("tiles");
  list.replaceChildren();
  const known = (name) => service.guards.find((guard) => guard.name === name);
  tiles = sales.map((terms) => new Tile(list, terms, known(terms.guard), { buyers, stock, fault }));
  drawStrikes();
}

// A server that did not answer may be there by now: its guards join before the next sale.
async function lookForGuards() {
  const before = answering().length;
  if (before === service.guards.length) return;
  const now = await ask("/v1/guards").catch(() => null);
  if (now === null || busy) return;
  service = now;
  drawAway();
  if (answering().length !== before && tiles.every((tile) => tile.state === "idle")) layOutIdle();
}

// On a busy machine one question to a server may be lost: no tile goes for that.
async function lookAgain() {
  const until = performance.now() + MISSED_MS;
  do {
    service = await ask("/v1/guards");
    if (tiles.every((tile) => answering().some(({ name }) => name === tile.guard))) return;
    await new Promise((later) => setTimeout(later, LOOK_MS));
  } while (performance.now() < until);
}

async function press(event) {
  event.preventDefault();
  if (busy) return;
  busy = start.disabled = true;
  keepSettings();
  tell();
  sum();
  try {
    await lookAgain();
    drawAway();
    await run();
  } catch (error) {
    for (const tile of tiles) tile.breakOff();
    tell(error.status === 404 ? "noDemo" : "failed", { why: reason(error) });
    await disarm();
  }
  busy = start.disabled = false;
}

async function run() {
  const dice = [...crypto.getRandomValues(new Uint8Array(3))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const sales = answering().map((guard, i) => ({ ...termsOf(guard), run_id: `arena-${dice}${String(i).padStart(2, "0")}` }));
  const [buyers, stock, connections] = ["buyers", "stock", "connections"].map(number);
  const fault = service.lab ? field("fault").value : "none", lease_ms = number("lease");
  if (service.lab) await mendWire();
  layOut(sales, buyers, stock, fault);
  await arm(fault, tiles);
  await post("/v1/demo/sales", { sales, buyers, stock, connections, together: true, spread: true });
  settled("others");
  sum("selling", { n: tiles.length, instances });
  let over = false, failure = null;
  const struck = strike(fault, tiles, lease_ms, () => over).catch((error) => { failure = error; });
  const reports = await untilSold(fault === "kill" ? struck : null);
  over = true;
  await struck;
  if (failure) tell("faultFailed", { why: reason(failure) });
  await findOut(tiles);
  await judgeAll(reports, fault === "kill" && !failure);
}

// The reports of the sales that ended. dies: a promise of the end of a load that is killed.
async function untilSold(dies) {
  let dead = false, last = "", changed = performance.now();
  dies?.then(() => { dead = true; });
  for (;;) {
    await new Promise((later) => setTimeout(later, LOOK_MS));
    const sale = await ask("/v1/demo/sales").catch(() => null);
    answers(sale !== null);
    if (dead) return [];
    if (sale === null) {
      if (performance.now() > gone + GONE_MS) throw new TypeError("gone");
      continue;
    }
    if (sale.state === "idle" && !dies) return []; // another instance: it knows nothing of them
    if (sale.state === "done" || sale.state === "failed") return sale.reports;
    await Promise.all(tiles.filter((tile) => !tile.over).map((tile) => tile.look().catch(() => {})));
    for (const { run_id, state } of sale.sales) // seen once more after its end
      if (state !== "running") Object.assign(tiles.find((tile) => tile.runId === run_id) ?? {}, { over: true });
    const now = tiles.map((tile) => tile.item?.version).join();
    if (now !== last) [last, changed] = [now, performance.now()];
    else if (performance.now() > changed + STALL_MS) await stopAll();
  }
}

// No row has changed for long: what still waits waits for nothing.
async function stopAll() {
  await ask("/v1/demo/sales", { method: "DELETE" });
  tell("stopped");
}

// As the lock server says; null: it does not answer, or there is no lab.
async function lockOf(tile) {
  const until = performance.now() + MISSED_MS;
  while (service.lab) {
    try {
      return await ask(`/v1/lab/locks/${tile.resource}`);
    } catch (error) {
      if (error.status !== 503 || performance.now() > until) return null;
    }
    await new Promise((later) => setTimeout(later, LOOK_MS));
  }
  return null;
}

// Each tile by the ledger.
async function judgeAll(reports, killed) {
  const stands = (lock) => lock !== null && lock.holders > 0 && lock.left_ms === null;
  await Promise.all(tiles.map(async (tile) => {
    const one = reports.find(({ runs: [{ run_id }] }) => run_id === tile.runId)?.runs[0] ?? null;
    let lock = await lockOf(tile);
    if (killed || stands(lock)) {
      await sendHeir(tile, killed);
      lock = await lockOf(tile);
    }
    const audit = (await ask(`/v1/audit?resource=${tile.resource}`).catch(() => null))?.resources[0] ?? null;
    tile.end(judge({ audit, lock, heir: tile.heir, report: one, buyers: tile.buyers, ends: tile.surelyEnds, killed }), one, audit);
  }));
  const count = (state) => tiles.filter((tile) => tile.state === state).length;
  sum("summary", { good: count("good"), bad: count("bad"), stuck: count("stuck"), refused: count("refused"), unknown: count("unknown") });
}

// A run that this page has not started, or had started before it was loaded again.
async function follow(sale) {
  busy = start.disabled = true;
  notice("others", "otherArena");
  layOut(sale.sales, sale.buyers, sale.stock, "none");
  try {
    await judgeAll(await untilSold(null), false);
    notice("others", "otherArenaEnded");
  } catch (error) {
    for (const tile of tiles) tile.breakOff();
    tell("failed", { why: reason(error) });
  }
  busy = start.disabled = false;
}

// Now and then: is the service there, and does somebody else sell?
async function lookAround() {
  if (busy) return;
  const sale = await ask("/v1/demo/sales").catch((error) => (error.status === 404 ? { state: "none" } : null));
  if (busy) return;
  answers(sale !== null);
  await lookForGuards();
  if (busy) return;
  if (sale?.state === "none") tell("noDemo");
  instances = sale?.instances ?? instances;
  if (instances === 1) notice("instances", "oneInstance");
  else settled("instances");
  if (sale?.state !== "running") return;
  if (sale.together) follow(sale); // goes on by itself
  else notice("others", "otherSales");
}

function redraw() {
  drawAway();
  drawStrikes();
  for (const tile of tiles) tile.draw();
  tell(...said);
  sum(...summed);
}

openSettings();
lang.addEventListener("change", () => {
  setLanguage(lang.value);
  keepSettings();
  drawNotices();
  redraw();
  answers(gone === null);
});
form.addEventListener("change", () => {
  keepSettings();
  drawStrikes();
});
form.addEventListener("submit", press);
addEventListener("pagehide", abandon);
layOutIdle();
redraw();
await lookAround();
setInterval(lookAround, IDLE_MS);
document.body.dataset.ready = "yes";
