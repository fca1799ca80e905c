// Bars and dots: one row per class, for as many classes as can be read.

const FEW = 30;

// rows: {name, value, marks: [{kind, colour, value, name}]}; a dotted line stands at `even`.
function barChart(rows, options) {
  const series = [{ name: options.name, colour: "blue", mark: "bar" }, ...(options.marks || [])];
  if (options.even) series.push({ name: options.evenName, colour: "ink", dash: "2 3" });
  return [legend(series), plot((width) => drawBars(rows, options, width))];
}

function drawBars(rows, options, width) {
  const step = 24;
  const left = Math.min(Math.max(...rows.map((row) => textWidth(row.name))) + 8, width * 0.38);
  const right = Math.max(...rows.map((row) => textWidth(options.write(row.value)))) + 12;
  const top = 4;
  const height = top + rows.length * step + 4;
  const values = rows.flatMap((row) => [row.value, ...(row.marks || []).map((mark) => mark.value ?? 0)]);
  const scale = (width - left - right) / Math.max(...values, options.even || 0, 1e-9);
  const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.label });
  rows.forEach((row, place) => {
    const y = top + place * step + step / 2;
    const label = svg("text", { x: left - 8, y: y + 4, "text-anchor": "end", class: "strong" }, clipped(row.name, left - 8));
    label.append(svg("title", {}, row.name));
    const bar = svg("rect", { x: left, y: y - 8, width: Math.max(row.value * scale, 0.5), height: 16, fill: "var(--blue)", class: "bar" });
    drawing.append(label, bar, svg("text", { x: width, y: y + 4, "text-anchor": "end" }, options.write(row.value)));
    for (const mark of row.marks || []) {
      if (mark.value !== null && mark.value !== undefined) drawing.append(marker(mark.kind, left + mark.value * scale, y, `var(--${mark.colour})`));
    }
  });
  if (options.even) {
    const x = left + options.even * scale;
    drawing.append(svg("line", { x1: x, x2: x, y1: 0, y2: height, stroke: "var(--ink)", "stroke-dasharray": "2 3" }));
  }
  return drawing;
}

// rows: {name, dots: [{value, colour, low, high, mark}]}, on a scale of 0 to 1.
function dotChart(rows, options) {
  return [legend(options.series || []), plot((width) => drawDots(rows, options, width))];
}

function drawDots(rows, options, width) {
  const step = options.step || 26;
  const left = Math.min(Math.max(...rows.map((row) => textWidth(row.name))) + 12, width * 0.38);
  const bottom = 34;
  const height = rows.length * step + bottom;
  const axis = span(rows.flatMap((row) => row.dots.flatMap((dot) => [dot.value, dot.low ?? dot.value, dot.high ?? dot.value])), options);
  const x = (value) => left + ((value - axis.low) / (axis.high - axis.low)) * (width - left - 26);
  const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.label });
  for (const tick of axis.ticks) {
    drawing.append(svg("line", { x1: x(tick), x2: x(tick), y1: 0, y2: height - bottom, class: "grid" }));
    drawing.append(svg("text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, options.write(tick)));
  }
  drawing.append(svg("text", { x: (left + width - 26) / 2, y: height - 2, "text-anchor": "middle" }, options.axis));
  rows.forEach((row, place) => {
    const y = place * step + step / 2;
    drawing.append(svg("text", { x: left - 10, y: y + 4, "text-anchor": "end", class: "strong" }, clipped(row.name, left - 10)));
    row.dots.forEach((dot, number) => {
      const shifted = y + (number - (row.dots.length - 1) / 2) * Math.min(7, (step - 8) / Math.max(row.dots.length, 1));
      const tint = `var(--${dot.colour})`;
      if (dot.low !== undefined) drawing.append(svg("line", { x1: x(dot.low), x2: x(dot.high), y1: shifted, y2: shifted, stroke: tint, "stroke-width": 2, "stroke-opacity": 0.5 }));
      const mark = marker(dot.mark || "circle", x(dot.value), shifted, tint);
      mark.append(svg("title", {}, dot.title || options.write(dot.value)));
      drawing.append(mark);
    });
  });
  return drawing;
}

// A round scale around the values: {low, high, ticks}.
function span(values, options = {}) {
  const finite = values.filter((value) => Number.isFinite(value));
  let low = options.low ?? Math.min(...finite);
  let high = options.high ?? Math.max(...finite);
  if (!finite.length) [low, high] = [0, 1];
  if (high <= low) [low, high] = [low - 0.5 * (Math.abs(low) || 1), high + 0.5 * (Math.abs(high) || 1)];
  const raw = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const size = [1, 2, 5, 10].find((one) => one * power >= raw) * power;
  low = options.low ?? Math.floor(low / size + 1e-9) * size;
  high = options.high ?? Math.ceil(high / size - 1e-9) * size;
  const ticks = [];
  for (let number = Math.ceil(low / size - 1e-9); number * size <= high + size * 1e-9; number += 1) ticks.push(number * size || 0);
  return { low, high, ticks };
}
