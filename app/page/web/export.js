// A run as one HTML file that needs nothing else, not even a script: figures, curve, lanes,
// counter-example, every parameter, and the reports as data for other programs.
import { add, describeFork, describeRequest, ledgerOf, table } from "./detail.js";
import { captionOf } from "./settings.js";
import { text } from "./text.js";

// The page's style is that of something that can be pressed and redrawn.
const OVER = ".chart { height: auto; } .lane { cursor: auto; } section { overflow-x: auto; } p { overflow-wrap: anywhere; }" +
  " .counterexample, .parameters { margin-top: 1rem; }";
const POLICY = "default-src 'none'; style-src 'unsafe-inline'";

function meta(page, attributes) {
  const element = add("meta", undefined, page.head);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

// The pane as it stands; nothing in it can be pressed any more.
function addPane(parent, pane) {
  const copy = pane.root.cloneNode(true);
  for (const lane of copy.querySelectorAll(".lane")) {
    lane.removeAttribute("tabindex");
    lane.setAttribute("role", "img");
  }
  parent.append(copy);
}

function addParameters(main, { settings, address, reports }) {
  const section = add("section", undefined, main);
  section.className = "parameters";
  add("h2", text("parameters"), section);
  table(section, [text("parameter"), text("inAddress"), text("value")],
    settings.map(([name, value]) => [captionOf(name), name, value]));
  add("p", address, section);
  for (const report of reports) add("pre", report.command, section);
  if (!reports.length) return; // the load died with the service
  const { at, system, cpu, cores, memory_mb } = reports[0].environment;
  add("p", [at, system, cpu, text("cores", { cores }), `${memory_mb} MB`].join(" · "), section);
}

// [pane, a request with a contradiction or undefined, the ledger's word on it].
async function counterexamples(panes) {
  const found = [];
  for (const pane of panes) {
    const clash = pane.requests.bought.find((request) => request.mates.length > 0);
    const ledger = clash && await ledgerOf(clash, pane.audit);
    if (ledger?.rivals.length || pane.audit.forks?.length) found.push([pane, ledger?.rivals.length ? clash : undefined, ledger]);
  }
  return found;
}

async function build(panes, run, style, examples) {
  const page = document.implementation.createHTMLDocument("");
  page.documentElement.lang = document.documentElement.lang;
  page.head.replaceChildren();
  meta(page, { charset: "utf-8" });
  meta(page, { "http-equiv": "Content-Security-Policy", content: POLICY });
  meta(page, { name: "viewport", content: "width=device-width, initial-scale=1" });
  meta(page, { name: "color-scheme", content: "light dark" });
  add("title", `${text("title")}: ${panes.map((pane) => pane.terms.guard).join(", ")}`, page.head);
  const main = add("main", undefined, page.body);
  add("h1", text("title"), main);
  const both = add("div", undefined, main);
  both.id = "panes";
  for (const pane of panes) addPane(both, pane);
  main.append(document.querySelector(".legend").cloneNode(true));
  for (const [pane, clash, ledger] of examples) {
    const section = add("section", undefined, main);
    section.className = "counterexample";
    add("h2", text("counterexample", { guard: pane.terms.guard }), section);
    if (clash) await describeRequest(section, pane, clash, ledger);
    else describeFork(section, pane.audit.forks[0]);
  }
  addParameters(main, run);
  const data = add("script", JSON.stringify(run).replaceAll("<", "\\u003c"), page.body);
  data.type = "application/json";
  data.id = "run";
  // As text: as an element this page's own policy would forbid it.
  const html = page.documentElement.outerHTML.replace("</head>", () => `<style>${style}${OVER}</style></head>`);
  return `<!doctype html>\n${html}\n`;
}

// run: {settings: [[name, value]], address, reports}, as it was started and judged; a sale that was
// killed has no report.
export async function exportRun(panes, run) {
  const sheets = await Promise.all(["style", "player"].map(async (name) => (await fetch(`/web/${name}.css`)).text()));
  const style = sheets.join(""), examples = await counterexamples(panes);
  const link = document.createElement("a");
  link.download = `sale-${panes.map((pane) => pane.terms.guard).join("-")}-${panes[0].resource.replace("item:sale-", "")}.html`;
  link.href = URL.createObjectURL(new Blob([await build(panes, run, style, examples)], { type: "text/html" }));
  link.click();
  setTimeout(URL.revokeObjectURL, 60000, link.href);
}
