// Pieces left over time, with the zero line; below it all is red.
export function drawChart(canvas, points, initial) {
  const box = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
  canvas.width = box.width * scale;
  canvas.height = box.height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const style = getComputedStyle(canvas), colour = (name) => style.getPropertyValue(name);
  if (points.length < 1) return;
  const low = Math.min(0, ...points.map((p) => p.left)), high = Math.max(initial, 1);
  const start = points[0].t, span = Math.max(1, points[points.length - 1].t - start);
  const label = 52, pad = 7;
  const x = (t) => label + ((t - start) / span) * (box.width - label - 4);
  const y = (v) => pad + ((high - v) / (high - low)) * (box.height - 2 * pad);
  const zero = y(0);
  const path = () => {
    pen.beginPath();
    points.forEach((p, i) => {
      if (i) pen.lineTo(x(p.t), y(points[i - 1].left));
      pen.lineTo(x(p.t), y(p.left));
    });
  };
  const part = (top, bottom, name) => {
    pen.save();
    pen.beginPath();
    pen.rect(0, top, box.width, bottom - top);
    pen.clip();
    path();
    pen.strokeStyle = colour(name);
    pen.lineWidth = 3;
    pen.stroke();
    pen.lineTo(x(points[points.length - 1].t), zero);
    pen.lineTo(x(start), zero);
    pen.globalAlpha = 0.2;
    pen.fillStyle = colour(name);
    pen.fill();
    pen.restore();
  };
  part(0, low < 0 ? zero : box.height, "--section");
  if (low < 0) part(zero, box.height, "--bad");
  pen.strokeStyle = colour("--ink");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(label, zero);
  pen.lineTo(box.width, zero);
  pen.stroke();
  pen.fillStyle = colour("--ink");
  pen.font = "12px system-ui";
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const mark = (v) => pen.fillText(String(v).replace("-", "−"), label - 6, y(v));
  mark(high);
  if (low < 0) mark(low);
  if (low === 0 || (zero - y(high) > 14 && y(low) - zero > 14)) mark(0);
}
