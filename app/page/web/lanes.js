// Swim-lanes: one row per request, time to the right.
import { text } from "./text.js";

const ROW = 15, LABEL = 86, NS = "http://www.w3.org/2000/svg";

export function make(name, attributes, parent) {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

const endOf = ({ at }) => at.released ?? at.committed ?? at.rejected ?? at.killed;
const signOf = ({ at, mates, marked, refused }) => (mates.length ? "✗" : at.killed ? "†" : refused ? "⊘" : marked ? "‖" : " ");
const wroteOf = ({ at, refused, wrote }) => (refused || at.killed ? "–" : wrote);
// By what it was refused, where that is known.
export const refusalOf = ({ fences }) => (fences ? text("refusedBy", { old: fences.fence, newer: fences.newer }) : "");

// A bar across the end of what was to be a write, and the reason beside it, on the side with room.
function drawRefusal(lane, x, y, width, said) {
  make("path", { class: "refusal", d: `M${x} ${y}V${y + ROW}` }, lane);
  const right = x < width * 0.7;
  make("text", { class: "refusal", x: right ? x + 5 : x - 5, y: y + 11, "text-anchor": right ? "start" : "end" }, lane).textContent = `⊘ ${said}`;
}

// lease_us: after which a lock ends whoever holds it; undefined: it does not.
// chosen: keys of the requests that are described below the picture.
export function drawLanes(svg, requests, lease_us, chosen, onChoose) {
  const focused = svg.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const width = svg.clientWidth || 1;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${Math.max(1, requests.length) * ROW}`);
  if (!requests.length) return;
  // Waiting may last a hundred times longer than the section: what is drawn begins at the sections.
  const begin = Math.min(...requests.map((r) => r.at.acquired ?? r.at.read));
  const last = Math.max(...requests.map((r) => Math.max(endOf(r), r.at.freed ?? 0)));
  // A lock that stands for ever: room to show it, beyond all that has happened.
  const end = requests.some((r) => r.at.freed === null) ? last + (last - begin) * 0.25 : last;
  const from = begin - (end - begin) * 0.08;
  const x = (t) => LABEL + Math.max(0, ((t - from) / (end - from || 1)) * (width - LABEL));
  requests.forEach((request, i) => {
    const { at } = request, clash = request.mates.length > 0, y = i * ROW, isChosen = chosen.includes(request.key);
    const said = refusalOf(request);
    const lane = make("g", {
      class: ["lane", clash && "clash", request.marked && "marked", request.refused && "refused", isChosen && "chosen"].filter(Boolean).join(" "), tabindex: 0, role: "button", "data-key": request.key,
      "aria-label": `${signOf(request)} ${text("lane", { key: request.key, read: request.read, wrote: wroteOf(request) })} ${said}`.trim(),
      "aria-pressed": isChosen,
    }, svg);
    make("rect", { class: "back", x: 0, y, width: width, height: ROW }, lane);
    make("text", { x: 2, y: y + 11 }, lane).textContent =
      `${isChosen ? "◆" : signOf(request)} ${request.read} → ${wroteOf(request)}`;
    const bar = (name, start, stop, inset) => {
      if (start === undefined || stop === undefined) return;
      const left = x(start);
      make("rect", { class: name, x: left, y: y + inset, width: Math.max(1.5, x(stop) - left), height: ROW - 2 * inset }, lane);
    };
    bar("waiting", at.waiting ?? at.submitted, at.acquired, 5);
    bar("holding", at.acquired, endOf(request), 4);
    bar("orphan", at.killed, at.freed === null ? end : at.freed, 4);
    bar("section", at.read, at.committed ?? at.rejected ?? at.killed, 2);
    if (at.acquired + lease_us < endOf(request)) make("rect", { class: "leaseEnd", x: x(at.acquired + lease_us), y, width: 3, height: ROW }, lane);
    if (request.refused) drawRefusal(lane, x(endOf(request)), y, width, said);
    lane.addEventListener("click", () => onChoose(request));
    lane.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        onChoose(request);
      }
      const next = { ArrowDown: lane.nextElementSibling, ArrowUp: lane.previousElementSibling }[event.key];
      if (next) {
        event.preventDefault();
        next.focus();
      }
    });
    if (request.key === focused) lane.focus();
  });
}
