// The page: its parameters (all in the URL), the sale, and what the stream brings.
import { cancelCountdown, countDown, countingDown } from "./countdown.js";
import { closeDetail, drawDetail, openAddress, showDetail } from "./detail.js";
import { exportRun } from "./export.js";
import { drawNotices, notice, serviceIs, settled } from "./notices.js";
import { Pane } from "./pane.js";
import { fault, inLanes, keepSettings, openSettings, setting, settings, termsOf } from "./settings.js";
import { ask, heardFrom, listen, post } from "./stream.js";
import { aim, drawStrikes, openStrikes, settle } from "./strikes.js";
import { reason, setLanguage, text } from "./text.js";
import { mendWire } from "./wire.js";

const FRAME_MS = 100, POLL_MS = 300, SERVERS_EVERY_MS = 1500;
const form = document.getElementById("form"), start = document.getElementById("start");
const save = document.getElementById("save");
const lang = document.getElementById("lang"), message = document.getElementById("message");
const given = new URLSearchParams(location.search);
const panes = [0, 1].map(() => new Pane(document.getElementById("panes"), showDetail));
let following = false; // a sale that this page has not started
let looking = false; // whether there is one
let connected = false, unnoted = null, unnotedBefore = null, busy = false, wireHeld = false;
let said = []; // the name of a text, and its values
lang.value = (given.get("lang") ?? navigator.language).startsWith("zh") ? "zh" : "en";
setLanguage(lang.value);
const guards = await ask("/v1/guards").catch((error) => { // 401: the service is not open
  message.textContent = reason(error);
  throw error;
});
let run = null; // the last one that was judged: see exportRun()

/* -- the sale ------------------------------------------------------------------------------------ */

// Sales come one after the other, each with an item of its own: the next new item is the next
// pane's.
function paneOf(resource) {
  const known = panes.find((pane) => pane.resource === resource);
  const isSale = /^item:sale-(?!arena-)/.test(resource); // the arena shows its own
  if (!known && !busy && !following && isSale) follow();
  if (known || !(busy || following) || !isSale) return known;
  const next = panes.find((pane) => pane.state === "queued");
  next?.begin(resource);
  return next;
}

function tell(...what) {
  said = what;
  message.textContent = what.length ? text(...what) : "";
}

// The button starts a sale, or calls its countdown off.
async function press(event) {
  event.preventDefault();
  if (countingDown()) return cancelCountdown();
  if (busy || following) return;
  busy = true;
  keepSettings(lang.value);
  tell();
  start.dataset.text = "cancel";
  start.textContent = text("cancel");
  const ready = await countDown(setting("countdown"), (left) => {
    document.getElementById("clock").textContent = left ? text("startsIn", { left }) : "";
  });
  start.dataset.text = "start";
  start.textContent = text("start");
  if (ready) await sell();
  else tell("cancelled");
  busy = start.disabled = false;
}

async function sell() {
  const sales = panes.map((pane, i) => termsOf(i));
  panes.forEach((pane, i) => pane.reset(sales[i], "queued"));
  unnotedBefore = unnoted;
  start.disabled = save.disabled = true;
  const begun = { settings: settings(), address: location.href };
  try {
    const reports = [];
    wireHeld = guards.lab && await mendWire();
    for (const pane of panes) await sellStruck(pane, reports);
    run = { ...begun, reports };
    draw(); // what can be saved is what is seen
    save.disabled = panes.some((pane) => !pane.resource); // one was killed before it began
  } catch (error) {
    for (const pane of panes) if (pane.underWay) pane.breakOff();
    tell(error.status === 404 ? "noDemo" : "failed", { why: reason(error) });
  }
}

// With what goes wrong in it on purpose.
async function sellStruck(pane, reports) {
  let failed = null;
  await aim(pane, fault(), setting("fault_after"));
  try {
    reports.push(await sellOne(pane));
  } catch (error) {
    if (!pane.killed) failed = error; // else the load has died with the instance
  }
  if (failed) pane.breakOff(); // who waits for somebody inside gives up
  await settle().catch((error) => pane.tell("faultFailed", { why: reason(error) }));
  if (failed) throw failed;
}

async function sellOne(pane) {
  const [buyers, stock, connections, rate] = ["buyers", "stock", "connections", "rate"].map(setting);
  await post("/v1/demo/sales", { sales: [pane.terms], buyers, stock, connections, rate });
  settled("service");
  return untilSold(pane);
}

// Its report, once it has ended.
async function untilSold(pane) {
  for (;;) {
    const sale = await ask("/v1/demo/sales");
    if (sale.state === "failed" || sale.state === "idle") throw new Error(sale.message);
    if (sale.state === "done") {
      await new Promise((later) => setTimeout(later, 2 * FRAME_MS)); // the stream's last events
      const [report] = sale.reports;
      await pane.finish(report.runs[0]);
      return report;
    }
    await pane.look(false).catch(() => {}); // it is told what does not answer
    await lookAtServers(pane);
    await new Promise((later) => setTimeout(later, POLL_MS));
  }
}

// Nothing was sold for a while, or orders fail: does the guard's server answer?
async function lookAtServers(pane) {
  const { accepted = 0, failed = 0 } = pane.counters ?? {}, now = performance.now();
  const well = accepted > (pane.acceptedBefore ?? 0) && failed === (pane.failedBefore ?? 0);
  if (well && !pane.away) pane.lookedAt = now;
  Object.assign(pane, { acceptedBefore: accepted, failedBefore: failed });
  pane.lookedAt ??= now;
  if (now < pane.lookedAt + SERVERS_EVERY_MS) return;
  const answers = (await ask("/v1/guards")).guards.find(({ name }) => name === pane.terms.guard)?.servers_answer ?? true;
  pane.lookedAt = performance.now();
  if (answers === !pane.away) return;
  pane.away = !answers;
  pane.tell(answers ? "guardBack" : "guardAway", { guard: pane.terms.guard });
}

// A sale that runs and that this page has not started, or started before it was loaded again.
async function follow() {
  if (looking || following) return;
  looking = true; // the button starts a sale meanwhile
  try {
    const { state, terms } = await ask("/v1/demo/sales");
    if (state !== "running" || !terms || busy) return;
    following = start.disabled = true;
    notice("others", "otherSale");
    panes[0].reset(terms, "queued");
    await untilSold(panes[0]);
    notice("others", "otherSaleEnded");
  } catch (error) {
    if (panes[0].underWay) panes[0].breakOff();
    if (error.status !== 404) settled("others"); // 404: a service without --demo has none
  } finally {
    looking = false;
    if (following) following = start.disabled = false;
  }
}

/* -- drawing ------------------------------------------------------------------------------------- */

function draw() {
  document.getElementById("connection").textContent = text(connected ? "connected" : "reconnecting");
  const left = unnoted - unnotedBefore;
  document.getElementById("limits").textContent = left > 0 ? text("limits", { unnoted: left }) : "";
  for (const pane of panes) pane.draw(setting("lanes") || 16);
  drawStrikes(guards.lab, wireHeld);
}

function redraw() {
  document.getElementById("lanesNote").hidden = !panes.some((pane, i) => inLanes(i));
  for (const pane of panes) pane.dirty = true;
  draw();
}

openSettings(given, guards);
panes.forEach((pane, i) => pane.reset(termsOf(i), "idle"));
lang.addEventListener("change", () => {
  setLanguage(lang.value);
  keepSettings(lang.value);
  redraw();
  drawDetail();
  drawNotices();
  tell(...said);
});
form.addEventListener("change", () => {
  keepSettings(lang.value);
  redraw();
});
form.addEventListener("submit", press);
openStrikes();
save.addEventListener("click", () => exportRun(panes, run).catch((error) => tell("failed", { why: reason(error) })));
addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (countingDown()) cancelCountdown();
  else closeDetail();
});
addEventListener("hashchange", () => openAddress(panes));
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
listen({
  trace: (events) => { for (const event of events) paneOf(event.resource)?.trace(event); },
  counters: (counters) => paneOf(counters.resource)?.count(counters),
  limits: (limits) => {
    unnoted = limits.unnoted;
    unnotedBefore ??= unnoted; // what others did before this page was opened
  },
  state: (now) => {
    connected = now;
    serviceIs(now, heardFrom);
  },
});
setInterval(draw, FRAME_MS);
redraw();
follow();
openAddress(panes);
document.body.dataset.ready = "yes";
