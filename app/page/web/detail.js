// What a click on a lane shows: both read-modify-writes, and the two rows of the ledger.
import { duration, number, text } from "./text.js";

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

// The request and those who read the same value; request undefined: only the ledger's rows.
export function describeRequest(section, pane, request) {
  const both = request ? [request, ...request.mates.slice(0, 3)] : [];
  if (request) {
    const name = request.mates.length ? "clash" : request.at.killed ? "killedInside" : request.refused ? "refusedLate" : request.batched ? "batch" : "alone";
    add("p", text(name, { value: request.read }), section);
    table(section,
      [text("request"), text("readValue"), text("wroteValue"), text("waited"), text("inside"), text("fence")],
      both.map(({ key, read, wrote, at, fence }) => [
        key, read, at.killed ? undefined : wrote, duration((at.acquired ?? at.read) - at.submitted), duration((at.committed ?? at.rejected ?? Math.round(at.killed)) - at.read), fence ? String(fence) : undefined,
      ]));
  }
  const keys = new Set(both.map((r) => r.key)), forks = pane.audit?.forks ?? [];
  const fork = forks.find((pair) => pair.some((row) => keys.has(row.txn_id))) ?? (!request || request.mates.length ? forks[0] : undefined);
  if (!fork) return;
  add("p", text("ledger"), section);
  const columns = ["id", "txn_id", "version_before", "before", "delta", "after", "fence", "instance"];
  table(section, columns, fork.map((row) => columns.map((name) => row[name])));
}

let shown = null; // what is to be seen, as it was then: {pane: {terms, audit}, request, back: the focus}

// Also once more, in another language.
export function drawDetail() {
  if (!shown) return;
  const section = document.getElementById("detail");
  section.replaceChildren();
  add("h2", shown.pane.terms.guard, section);
  describeRequest(section, shown.pane, shown.request);
  const close = add("button", text("close"), section);
  close.type = "button";
  close.addEventListener("click", () => {
    section.hidden = true;
    shown.back?.focus();
    shown = null;
  });
  section.hidden = false;
}

export function showDetail({ terms, audit }, request) {
  shown = { pane: { terms, audit }, request, back: document.activeElement };
  drawDetail();
  document.getElementById("detail").focus();
}
