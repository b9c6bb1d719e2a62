// Pieces over the seconds of a sale: what is really left, red below zero, and beside it what the row
// says; where the two part, updates are lost. D3 draws into what the template has, and all of it is
// SVG and classes, so it stays in a saved page and follows light and dark.
import { number, text } from "./text.js";

const { d3 } = globalThis; // a classic script, before the modules
const HEIGHT = 132, TOP = 8, RIGHT = 20, BOTTOM = 22, LABEL = 56;
const X_TICK_PX = 90, Y_TICKS = 4, TICK_TO_TEXT_PX = 7;

// points: {t: ms, left, row}; initial: pieces at the beginning.
export function drawChart(node, points, initial) {
  const width = node.clientWidth || 1, floor = HEIGHT - BOTTOM;
  const svg = d3.select(node).attr("viewBox", `0 0 ${width} ${HEIGHT}`).classed("empty", points.length === 0);
  if (points.length === 0) return;
  const secondsOf = ({ t }) => (t - points[0].t) / 1000;
  const values = points.flatMap(({ left, row }) => [left, row]);
  const x = d3.scale.linear().domain([0, secondsOf(points[points.length - 1]) || 1]).nice().rangeRound([LABEL, width - RIGHT]);
  const y = d3.scale.linear().domain(d3.extent([0, initial, ...values])).nice(Y_TICKS).rangeRound([floor, TOP]);
  const path = (shape) => shape.interpolate("step-after").x((p) => x(secondsOf(p)));
  const left = path(d3.svg.line()).y((p) => y(p.left))(points);
  const area = path(d3.svg.area()).y0(y(0)).y1((p) => y(p.left))(points);
  // Two windows on one curve, above and below zero: in CSS they differ. The line on zero is above.
  const split = y(0) < floor ? y(0) : HEIGHT;
  for (const [name, top, bottom] of [["above", 0, split], ["below", split, HEIGHT]]) {
    const half = svg.select(`.${name}`).attr({ y: top, width, height: bottom - top, viewBox: `0 ${top} ${width} ${bottom - top}` });
    half.select(".area").attr("d", area);
    half.select(".curve").attr("d", left);
  }
  svg.select(".row").attr("d", path(d3.svg.line()).y((p) => y(p.row))(points));
  svg.select(".zero").attr("d", `M${LABEL} ${y(0)}H${width - RIGHT}`);
  drawAxes(node, svg, x, y, width);
}

// Seldom: the sale grows into its axes, whose ends are round.
function drawAxes(node, svg, x, y, width) {
  const caption = (s) => text("seconds", { s });
  const drawn = [width, x.domain(), y.domain(), caption(0)].join();
  if (node.dataset.axes === drawn) return;
  node.dataset.axes = drawn;
  const axis = (scale, side, ticks, inner, format) => d3.svg.axis().scale(scale).orient(side).ticks(ticks)
    .innerTickSize(inner).outerTickSize(0).tickPadding(TICK_TO_TEXT_PX).tickFormat(format);
  svg.select(".xs").attr("transform", `translate(0 ${HEIGHT - BOTTOM})`)
    .call(axis(x, "bottom", Math.floor(width / X_TICK_PX), 0, caption));
  svg.select(".ys").attr("transform", `translate(${LABEL} 0)`).call(axis(y, "left", Y_TICKS, -(width - RIGHT - LABEL), number));
}
