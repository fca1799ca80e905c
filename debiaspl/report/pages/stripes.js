// Shares of the classes through time on canvas: a class per row, time to the right.

const STRIPES_HEIGHT = 300;

// values[time][class] is a share in times of an even share: below 1 blue, above 1 orange, even is grey.
function stripes(values, steps, names, label) {
  const last = values[values.length - 1];
  const order = names.map((_, number) => number).sort((one, other) => last[other] - last[one]);
  const readout = el("div", { class: "readout" });
  const drawing = plot((width) => {
    const row = Math.min(STRIPES_HEIGHT / names.length, 22);
    const named = row >= LEAST_NAMED;
    const left = named ? Math.min(Math.max(...names.map(textWidth)) + 8, width * 0.3) : 0;
    const frame = { left, row, column: (width - left) / values.length, width, height: Math.ceil(row * names.length) };
    const canvas = el("canvas", { role: "img", "aria-label": label });
    drawStripes(canvas, frame, values, order);
    const context = canvas.getContext("2d");
    context.fillStyle = colour("ink");
    context.textAlign = "right";
    if (named) order.forEach((number, place) => context.fillText(clipped(names[number], left - 6), left - 5, (place + 0.5) * row + 4));
    context.fillStyle = colour("soft");
    context.fillText(`step ${write.count(steps[steps.length - 1])}`, width, frame.height + 16);
    context.textAlign = "left";
    context.fillText(`step ${write.count(steps[0])}`, left, frame.height + 16);
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const time = Math.floor((event.clientX - box.left - left) / frame.column);
      const number = order[Math.floor((event.clientY - box.top) / row)];
      if (time < 0 || time >= values.length || number === undefined) return;
      readout.textContent = `step ${write.count(steps[time])}: '${names[number]}' has ${write.times(values[time][number])} an even share`;
    });
    return canvas;
  });
  return [evennessLegend(), drawing, readout];
}

function drawStripes(canvas, frame, values, order) {
  const context = sharp(canvas, frame.width, frame.height + 22);
  const tints = palette();
  const gap = frame.row >= LEAST_NAMED ? 1 : 0;
  values.forEach((shares, time) => {
    const from = Math.floor(frame.left + time * frame.column);
    const to = Math.floor(frame.left + (time + 1) * frame.column);
    order.forEach((number, place) => {
      context.fillStyle = diverging(shares[number], tints);
      const top = gap ? place * frame.row : Math.floor(place * frame.row);
      context.fillRect(from, top, Math.max(to - from, 1), Math.max(Math.ceil(frame.row), 1) - gap);
    });
  });
}

function diverging(times, tints) {
  const strength = Math.min(Math.abs(Math.log2(Math.max(times, 1e-6))) / 2, 1);
  const [end, middle] = [times > 1 ? tints.over : tints.under, tints.even].map((text) => text.split(",").map(Number));
  return `rgb(${middle.map((value, place) => Math.round(value + (end[place] - value) * strength)).join(",")})`;
}

function evennessLegend() {
  const words = { 0.25: "¼ of an even share, or less", 0.5: "½", 1: "even share", 2: "2 ×", 4: "4 ×, or more" };
  const parts = Object.keys(words).map(Number).sort((one, other) => one - other).map((times) => {
    const mixed = `color-mix(in srgb, rgb(var(--${times > 1 ? "over" : "under"})) ${Math.min(Math.abs(Math.log2(times)) / 2, 1) * 100}%, rgb(var(--even)))`;
    return el("li", {}, svg("svg", { width: 22, height: 12, "aria-hidden": "true" }, svg("rect", { width: 22, height: 12, fill: mixed })), words[times]);
  });
  return el("ul", { class: "legend" }, parts);
}
