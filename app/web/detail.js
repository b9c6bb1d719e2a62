// What a click on a lane shows: both read-modify-writes, and the two rows of the ledger.
import { duration, number, text } from "./text.js";

function element(name, content, parent) {
  const made = document.createElement(name);
  if (content !== undefined) made.textContent = content;
  parent.append(made);
  return made;
}

function table(parent, heads, rows) {
  const made = element("table", undefined, parent);
  const line = (cells, kind) => {
    const row = element("tr", undefined, made);
    for (const cell of cells) element(kind, cell === undefined ? "–" : number(cell), row);
  };
  line(heads, "th");
  for (const row of rows) line(row, "td");
}

export function showDetail(pane, request) {
  const section = document.getElementById("detail"), back = document.activeElement;
  const both = [request, ...request.mates.slice(0, 3)];
  section.replaceChildren();
  element("h2", pane.terms.guard, section);
  const name = request.mates.length ? "clash" : request.batched ? "batch" : "alone";
  element("p", text(name, { value: request.read }), section);
  table(section,
    [text("request"), text("readValue"), text("wroteValue"), text("waited"), text("inside"), text("fence")],
    both.map(({ key, read, wrote, at, fence }) => [
      key, read, wrote, duration((at.acquired ?? at.read) - at.submitted), duration(at.committed - at.read), fence ? String(fence) : undefined,
    ]));
  const keys = new Set(both.map((r) => r.key));
  const fork = (pane.audit?.forks ?? []).find((pair) => pair.some((row) => keys.has(row.txn_id))) ??
    (request.mates.length ? pane.audit?.forks?.[0] : undefined);
  if (fork) {
    element("p", text("ledger"), section);
    const columns = ["id", "txn_id", "version_before", "before", "delta", "after", "fence", "instance"];
    table(section, columns, fork.map((row) => columns.map((name) => row[name])));
  }
  const close = element("button", text("close"), section);
  close.type = "button";
  close.addEventListener("click", () => {
    section.hidden = true;
    back?.focus();
  });
  section.hidden = false;
  section.focus();
}
