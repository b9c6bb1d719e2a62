// What a click on a lane shows: the player plays the request and the one that it contradicts, and the rows
// of the ledger say the same.
import { notice, settled } from "./notices.js";
import { materialOf, onKey, play, writeTrace } from "./play.js";
import { recordOf, rivalOf } from "./record.js";
import { guardOf } from "./settings.js";
import { ask } from "./stream.js";
import { number, problem, reason, text } from "./text.js";

export function add(name, content, parent) {
  const made = parent.ownerDocument.createElement(name);
  if (content !== undefined) made.textContent = content;
  parent.append(made);
  return made;
}

export function table(parent, heads, rows) {
  const made = add("table", undefined, parent);
  const line = (cells, kind) => {
    const row = add("tr", undefined, made);
    for (const cell of cells) add(kind, cell === undefined ? "–" : number(cell), row);
  };
  line(heads, "th");
  for (const row of rows) line(row, "td");
}

const COLUMNS = ["txn_id", "version_before", "before", "delta", "after", "fence", "instance"];
const OTHERS_MAX = 3;

// A request's row of the ledger, as its stored answer has it; null: it has written nothing.
async function rowOf(key) {
  try {
    const { quantity, stock_before, stock_after, version, fence, instance } = await ask(`/v1/transactions/${encodeURIComponent(key)}`);
    return version === undefined ? null
      : { txn_id: key, version_before: version - 1, before: stock_before, delta: -quantity, after: stock_after, fence, instance };
  } catch (error) {
    if (error.status === 404 || error.status === 409) return null;
    throw error;
  }
}

// The ledger's word on one request: {own: its row, rivals: rows that start from the same version}.
export async function ledgerOf(request, audit) {
  const [own, ...others] = await Promise.all([request, ...request.mates].map(({ key }) => rowOf(key)));
  const forked = (audit?.forks ?? []).filter((pair) => pair.some(({ txn_id }) => txn_id === request.key)).flat();
  const rivals = [...others, ...forked].filter((row) => own && row && row.txn_id !== own.txn_id && row.version_before === own.version_before);
  return { own, rivals: rivals.filter((row, i) => rivals.findIndex(({ txn_id }) => txn_id === row.txn_id) === i) };
}

// What holds of it: a sentence's name.
function sentenceOf(request, { rivals }) {
  if (rivals.length) return "clash";
  if (request.at.killed) return "killedInside";
  if (request.refused) return request.fences ? "refusedByFence" : "refusedLate";
  return request.mates.length ? "clashBut" : request.batched ? "batch" : "alone";
}

const ledgerTable = (section, rows) =>
  table(section, COLUMNS.map((name) => text(name)), rows.map((row) => COLUMNS.map((name) => (name === "fence" ? String(row.fence || "–") : row[name]))));

// The two of them as a record, with the words of the player; ledger: of ledgerOf().
async function recordAndWords(pane, request, ledger) {
  const { words, commands } = await materialOf(pane.terms.guard, pane.terms.fence);
  const rival = rivalOf(request, ledger.rivals, pane.requests);
  const record = recordOf(rival ? [request, rival] : [request], pane.requests, pane.terms, guardOf(pane.terms.guard), problem);
  return { words, record: { ...record, commands } };
}

function describeClash(section, request, ledger) {
  const others = ledger.rivals.length ? ledger.rivals.map(({ txn_id }) => txn_id) : request.mates.map(({ key }) => key);
  add("p", text(sentenceOf(request, ledger), {
    value: request.read, others: others.slice(0, OTHERS_MAX).join(", ") + (others.length > OTHERS_MAX ? ` (+${others.length - OTHERS_MAX})` : ""),
    ...(request.fences && { old: request.fences.fence, newer: request.fences.newer }),
  }), section);
}

function describeRows(section, ledger) {
  add("p", text(!ledger.own ? "ledgerNone" : ledger.rivals.length ? "ledger" : "ledgerOwn"), section);
  if (ledger.own) ledgerTable(section, [ledger.own, ...ledger.rivals.slice(0, OTHERS_MAX)]);
}

// Without a script: the trace as a list.
export async function describeRequest(section, pane, request, ledger) {
  const { words, record } = await recordAndWords(pane, request, ledger);
  describeClash(section, request, ledger);
  writeTrace(section, record, words, text("trace"));
  describeRows(section, ledger);
}

// Two rows of the ledger, where no request of theirs was traced.
export function describeFork(section, fork) {
  add("p", text("ledgerAny"), section);
  ledgerTable(section, fork);
}

let shown = null; // what is to be seen: {pane, request, k: the step, ledger, player, back: the focus, failed}

// Also once more, in another language.
export async function drawDetail() {
  const now = shown, section = document.getElementById("detail"), { pane, request, ledger } = now ?? {};
  const material = ledger && await recordAndWords(pane, request, ledger).catch((error) => { now.failed = error; });
  if (!now || shown !== now) return;
  section.replaceChildren();
  add("h2", `${pane.terms.guard}: ${request.key}`, section);
  if (now.failed) add("p", text("failed", { why: reason(now.failed) }), section);
  if (material) {
    describeClash(section, request, ledger);
    section.hidden = false; // the player measures itself
    now.player = play(section, material.record, material.words, text("trace"), now.k, moved);
    mark(pane, [...new Set([...Object.values(material.record.names), ...ledger.rivals.map(({ txn_id }) => txn_id)])]);
    describeRows(section, ledger);
  }
  if (ledger?.rivals.length) add("p", text("marked"), section);
  const close = add("button", text("close"), section);
  close.type = "button";
  close.addEventListener("click", closeDetail);
  section.hidden = false;
}

// Each step has an address, #KEY/STEP, as long as the page has the events.
const ADDRESS_MS = 200; // browsers count changes of the address, and ignore too many
let address = 0;

function setAddress(hash) {
  clearTimeout(address);
  address = setTimeout(() => history.replaceState(null, "", location.pathname + location.search + hash), ADDRESS_MS);
}

function moved({ k }) {
  shown.k = k;
  setAddress(`#${encodeURIComponent(shown.request.key)}/${k}`);
}

export function openAddress(panes) {
  const [key, step] = decodeURIComponent(location.hash.slice(1)).split("/"), k = Number(step) || 0;
  if (!key) return;
  const pane = panes.find(({ requests }) => requests.bought.some((one) => one.key === key));
  if (pane) showDetail(pane, pane.requests.bought.find((one) => one.key === key), k);
  else notice("step", "noStep", { key });
}

function mark(pane, keys) {
  pane.chosen = keys;
  pane.dirty = true;
}

export function closeDetail() {
  if (!shown) return;
  const { pane, back, request, player } = shown;
  if (player) Museum.desk.stop(player);
  shown = null;
  setAddress("");
  mark(pane, []);
  document.getElementById("detail").hidden = true;
  (back?.isConnected ? back : pane.root.querySelector(`[data-key="${CSS.escape(request.key)}"]`))?.focus();
}

export async function showDetail(pane, request, k = 0) {
  settled("step");
  if (shown) mark(shown.pane, []);
  if (shown?.player) Museum.desk.stop(shown.player);
  const own = shown = { pane, request, k, back: document.activeElement };
  mark(pane, [request.key]);
  try {
    own.ledger = await ledgerOf(request, pane.audit);
  } catch (error) {
    own.failed = error;
  }
  if (shown !== own) return;
  await drawDetail();
  document.getElementById("detail").focus();
}

document.getElementById("detail").addEventListener("keydown", (event) => {
  if (shown?.player) onKey(shown.player, event);
});
