// Lines and points over two axes, with the values under the pointer written below.

// series: {name, points: [[x, y, title?], ...], colour, dash, mark}; with `mark` points, else a line.
function lineChart(series, options) {
  const readout = el("div", { class: "readout" });
  const drawn = series.filter((one) => one.points.length);
  if (!drawn.length) return [el("p", { class: "soft" }, options.empty || "Nothing to show yet.")];
  const named = options.legend || drawn;
  return [legend(named), plot((width) => drawLines(drawn, options, width, readout)), readout];
}

function drawLines(series, options, width, readout) {
  const height = options.height || 260;
  const points = series.flatMap((one) => one.points);
  const xAxis = axis(points.map((point) => point[0]), options.x);
  const yAxis = axis([...points.map((point) => point[1]), ...(options.lines || []).map((line) => line.y)], options.y);
  const left = Math.max(...yAxis.ticks.map((tick) => textWidth(options.y.write(tick)))) + 12;
  const frame = { left, right: width - 24, top: 22, bottom: height - 36 };
  const x = (value) => frame.left + xAxis.place(value) * (frame.right - frame.left);
  const y = (value) => frame.bottom - yAxis.place(value) * (frame.bottom - frame.top);
  const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.label });
  drawing.append(...grid(frame, xAxis, yAxis, x, y, options));
  for (const line of options.lines || []) {
    const from = line.diagonal ? y(yAxis.low) : y(line.y);
    const to = line.diagonal ? y(yAxis.high) : y(line.y);
    drawing.append(svg("line", { x1: frame.left, x2: frame.right, y1: from, y2: to, stroke: "var(--ink)", "stroke-dasharray": "2 3" }));
    if (line.name) drawing.append(svg("text", { x: line.atStart ? frame.left + 2 : frame.right, y: to - 5, "text-anchor": line.atStart ? "start" : "end", class: "halo" }, line.name));
  }
  for (const one of series) drawing.append(...shape(one, x, y));
  const cursor = svg("line", { y1: frame.top, y2: frame.bottom, stroke: "var(--soft)", visibility: "hidden" });
  drawing.append(cursor);
  drawing.addEventListener("pointermove", (event) => point(event, drawing, series, { x, y, cursor, readout, options }));
  drawing.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    readout.textContent = "";
  });
  return drawing;
}

function shape(one, x, y) {
  const tint = `var(--${one.colour})`;
  const points = one.points.filter((point) => point[1] !== null && point[1] !== undefined);
  if (one.mark) {
    return points.flatMap((point) => {
      const whisker = point[3] ? [svg("line", { x1: x(point[0]), x2: x(point[0]), y1: y(point[3][0]), y2: y(point[3][1]), stroke: tint, "stroke-width": 2, "stroke-opacity": 0.5 })] : [];
      return [...whisker, marker(one.mark, x(point[0]), y(point[1]), tint)];
    });
  }
  const path = points.map((point, place) => `${place ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`).join("");
  const line = svg("path", { d: path, fill: "none", stroke: tint, "stroke-width": one.width || 2, "stroke-dasharray": one.dash || "", "stroke-linejoin": "round" });
  const only = points.length === 1 ? [marker("circle", x(points[0][0]), y(points[0][1]), tint)] : [];
  return [line, ...only];
}

function grid(frame, xAxis, yAxis, x, y, options) {
  const parts = [];
  for (const tick of yAxis.ticks) {
    parts.push(svg("line", { x1: frame.left, x2: frame.right, y1: y(tick), y2: y(tick), class: "grid" }));
    parts.push(svg("text", { x: frame.left - 6, y: y(tick) + 4, "text-anchor": "end" }, options.y.write(tick)));
  }
  const room = (frame.right - frame.left) / Math.max(...xAxis.ticks.map((tick) => textWidth(options.x.write(tick)) + 14));
  const every = Math.ceil(xAxis.ticks.length / Math.max(room, 1));
  xAxis.ticks.forEach((tick, place) => {
    if (place % every) return;
    parts.push(svg("text", { x: x(tick), y: frame.bottom + 16, "text-anchor": "middle" }, options.x.write(tick)));
  });
  parts.push(svg("text", { x: (frame.left + frame.right) / 2, y: frame.bottom + 32, "text-anchor": "middle" }, options.x.name));
  parts.push(svg("text", { x: 0, y: 12 }, options.y.name));
  return parts;
}

// place() gives 0 at the low end and 1 at the high end, with `pad` a part of the length further in, so that a mark at an
// end is whole; what a logarithm cannot take lies at the low end.
function axis(values, options) {
  const found = bare(values, options);
  const pad = options.pad || 0;
  return { ...found, place: (value) => (found.place(value) + pad) / (1 + 2 * pad) };
}

function bare(values, options) {
  const finite = values.filter((value) => Number.isFinite(value));
  if (!options.log) {
    const found = span(finite, options);
    return { ...found, place: (value) => (value - found.low) / (found.high - found.low) };
  }
  const positive = finite.filter((value) => value > 0);
  let low = options.low ?? Math.min(...positive, 1);
  let high = Math.max(...positive, low * 2);
  const digits = Math.log(high / low) > 7 ? [1] : [1, 2, 5];
  const round = [];
  for (let power = Math.floor(Math.log10(low)) - 1; power <= Math.ceil(Math.log10(high)); power += 1) {
    round.push(...digits.map((digit) => Number(`${digit}e${power}`)));
  }
  const inside = () => round.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  // One number on a scale says nothing of its distances.
  if (inside().length < 2) {
    low = Math.max(...round.filter((tick) => tick <= low));
    high = Math.min(...round.filter((tick) => tick >= high));
  }
  return { low, high, ticks: inside(), place: (value) => Math.log(Math.max(value, low) / low) / Math.log(high / low) };
}

function point(event, drawing, series, { x, y, cursor, readout, options }) {
  const box = drawing.getBoundingClientRect();
  const [atX, atY] = [event.clientX - box.left, event.clientY - box.top];
  const near = series.flatMap((one) => one.points.filter((item) => item[1] !== null && item[1] !== undefined).map((item) => ({ one, item })));
  const distance = ({ item }) => Math.abs(x(item[0]) - atX) + (options.scatter ? Math.abs(y(item[1]) - atY) : 0);
  const best = near.reduce((one, other) => (distance(other) < distance(one) ? other : one));
  cursor.setAttribute("x1", x(best.item[0]));
  cursor.setAttribute("x2", x(best.item[0]));
  cursor.setAttribute("visibility", "visible");
  const same = options.scatter ? [best] : near.filter(({ item }) => item[0] === best.item[0]);
  const said = same.map(({ one, item }) => `${item[2] || one.name}: ${options.y.write(item[1])}`);
  readout.textContent = `${options.x.name} ${options.x.write(best.item[0])} · ${[...new Set(said)].join(" · ")}`;
}
