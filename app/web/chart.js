// Pieces left over time, with the zero line; below it all is red.
import { make } from "./lanes.js";

const HEIGHT = 96, LABEL = 52, PAD = 7;

export function drawChart(svg, points, initial) {
  const width = svg.clientWidth || 1;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  if (points.length < 1) return;
  const low = Math.min(0, ...points.map((p) => p.left)), high = Math.max(initial, 1);
  const start = points[0].t, span = Math.max(1, points[points.length - 1].t - start);
  const x = (t) => LABEL + ((t - start) / span) * (width - LABEL - 4);
  const y = (v) => PAD + ((high - v) / (high - low)) * (HEIGHT - 2 * PAD);
  const zero = y(0);
  const curve = points.map((p, i) => (i ? `H${x(p.t).toFixed(1)}V${y(p.left).toFixed(1)}` : `M${x(p.t)} ${y(p.left).toFixed(1)}`)).join("");
  const part = (top, bottom, name) => {
    const clip = make("svg", { y: top, width, height: bottom - top, viewBox: `0 ${top} ${width} ${bottom - top}` }, svg);
    make("path", { class: `area ${name}`, d: `${curve}V${zero}H${LABEL}Z` }, clip);
    make("path", { class: `curve ${name}`, d: curve }, clip);
  };
  part(0, low < 0 ? zero : HEIGHT, "above");
  if (low < 0) part(zero, HEIGHT, "below");
  make("path", { class: "zero", d: `M${LABEL} ${zero}H${width}` }, svg);
  const mark = (v) => {
    make("text", { x: LABEL - 6, y: y(v) + 4, "text-anchor": "end" }, svg).textContent = String(v).replace("-", "−");
  };
  mark(high);
  if (low < 0) mark(low);
  if (low === 0 || (zero - y(high) > 14 && y(low) - zero > 14)) mark(0);
}
