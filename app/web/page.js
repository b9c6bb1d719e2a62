// The page: its parameters (all in the URL), the sale, and what the stream brings.
import { showDetail } from "./detail.js";
import { Pane } from "./pane.js";
import { ask, listen, post } from "./stream.js";
import { setLanguage, text } from "./text.js";

const FRAME_MS = 100, POLL_MS = 300;
const form = document.getElementById("form"), start = document.getElementById("start");
const lang = document.getElementById("lang"), message = document.getElementById("message");
const given = new URLSearchParams(location.search);
const panes = [0, 1].map(() => new Pane(document.getElementById("panes"), showDetail));
let connected = false, unnoted = 0, unnotedBefore = 0, busy = false;

/* -- parameters -------------------------------------------------------------------------------- */

function keepInUrl() {
  const query = new URLSearchParams(new FormData(form));
  query.set("lang", lang.value);
  history.replaceState(null, "", `?${query}`);
}

function readUrl() {
  for (const input of form.querySelectorAll("input"))
    if (given.has(input.name)) {
      input.value = given.get(input.name);
      if (!input.checkValidity()) input.value = input.defaultValue;
    }
  lang.value = (given.get("lang") ?? navigator.language).startsWith("zh") ? "zh" : "en";
}

async function fillGuards() {
  const { guards, lanes } = await ask("/v1/guards");
  document.getElementById("lanesNote").hidden = !lanes;
  const names = guards.filter((guard) => guard.servers_answer).map((guard) => guard.name);
  for (const [name, fallback] of [["a", "none"], ["b", "redis-token"]]) {
    const select = form.elements[name];
    select.replaceChildren(...names.map((guard) => new Option(guard, guard)));
    const wanted = given.get(name);
    select.value = names.includes(wanted) ? wanted : names.includes(fallback) ? fallback : names[0];
  }
}

/* -- the sale ------------------------------------------------------------------------------------ */

// Sales come one after the other, each with an item of its own: the next new item is the next
// pane's.
function paneOf(resource) {
  const known = panes.find((pane) => pane.resource === resource);
  if (known || !busy || !resource.startsWith("item:sale-")) return known;
  const next = panes.find((pane) => pane.state === "queued");
  next?.begin(resource);
  return next;
}

function tell(name, values) {
  message.textContent = name ? text(name, values) : "";
}

async function sell(event) {
  event.preventDefault();
  keepInUrl();
  tell();
  const { a, b, buyers, stock, connections, rate } = Object.fromEntries(new FormData(form));
  panes[0].reset(a, "queued");
  panes[1].reset(b, "queued");
  unnotedBefore = unnoted;
  busy = start.disabled = true;
  try {
    await post("/v1/demo/sales", { guards: [a, b], buyers: +buyers, stock: +stock, connections: +connections, rate: +rate });
    await untilDone();
  } catch (error) {
    for (const pane of panes) if (pane.state === "queued" || pane.state === "running") pane.reset(pane.guard, "idle");
    tell(error.status === 404 ? "noDemo" : "failed", { why: error.message });
  }
  busy = start.disabled = false;
}

async function untilDone() {
  for (;;) {
    const sale = await ask("/v1/demo/sales");
    if (sale.state === "failed") throw new Error(sale.message);
    if (sale.state === "done") {
      await new Promise((later) => setTimeout(later, 2 * FRAME_MS)); // the stream's last events
      await Promise.all(panes.map((pane, i) => pane.finish(sale.report.runs[i])));
      return;
    }
    await Promise.all(panes.map((pane) => pane.look(false)));
    await new Promise((later) => setTimeout(later, POLL_MS));
  }
}

/* -- drawing ------------------------------------------------------------------------------------- */

function draw() {
  document.getElementById("connection").textContent = text(connected ? "connected" : "reconnecting");
  const left = unnoted - unnotedBefore;
  document.getElementById("limits").textContent = left > 0 ? text("limits", { unnoted: left }) : "";
  for (const pane of panes) pane.draw(+form.elements.lanes.value || 16);
}

function redraw() {
  for (const pane of panes) pane.dirty = true;
  draw();
}

readUrl();
setLanguage(lang.value);
lang.addEventListener("change", () => {
  setLanguage(lang.value);
  keepInUrl();
  redraw();
});
form.addEventListener("change", () => {
  keepInUrl();
  redraw();
});
form.addEventListener("submit", sell);
window.addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
listen({
  trace: (events) => { for (const event of events) paneOf(event.resource)?.trace(event); },
  counters: (counters) => paneOf(counters.resource)?.count(counters),
  limits: (limits) => { unnoted = limits.unnoted; },
  state: (now) => { connected = now; },
});
setInterval(draw, FRAME_MS);
await fillGuards();
panes[0].reset(form.elements.a.value, "idle");
panes[1].reset(form.elements.b.value, "idle");
document.body.dataset.ready = "yes";
