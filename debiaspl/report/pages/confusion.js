// A confusion matrix on canvas, with zoom for many classes.

const LEAST_NAMED = 12;
const CLOSEST = 8;

// matrix: {rows: [[predicted, count, ...], ...], totals}; order: class numbers in the order to draw.
function confusionMatrix(matrix, order, names, label) {
  const state = {
    size: order.length,
    order,
    places: new Map(order.map((number, place) => [number, place])),
    cells: matrix.rows.map((row) => new Map(Array.from({ length: row.length / 2 }, (_, place) => [row[2 * place], row[2 * place + 1]]))),
    totals: matrix.totals,
    names,
    view: { first: 0, top: 0, shown: order.length },
    frame: null,
    readout: el("div", { class: "readout", role: "status" }),
    draw: () => {},
  };
  const drawing = plot((width) => {
    const canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": label });
    state.draw = () => drawMatrix(canvas, width, state);
    listen(canvas, state);
    state.draw();
    return canvas;
  });
  return [state.size > LEAST_NAMED ? zoomTools(state) : null, drawing, state.readout];
}

function zoomTools(state) {
  const word = el("input", { type: "search", autocomplete: "off" });
  word.addEventListener("input", () => {
    const wanted = word.value.trim().toLocaleLowerCase();
    const exact = state.order.findIndex((number) => state.names[number].toLocaleLowerCase() === wanted);
    const found = exact >= 0 ? exact : state.order.findIndex((number) => state.names[number].toLocaleLowerCase().includes(wanted));
    if (!wanted) moveTo(state, 0, 0, state.size);
    else if (found >= 0) moveTo(state, found - 6, found - 6, Math.min(state.size, 12));
  });
  const button = (text, name, act) => el("button", { type: "button", "aria-label": name, click: act }, text);
  return el(
    "div",
    { class: "tools" },
    el("label", {}, "Go to a class", word),
    button("+", "Zoom in", () => zoom(state, 0.5)),
    button("−", "Zoom out", () => zoom(state, 2)),
    button("Whole", "Show the whole matrix", () => moveTo(state, 0, 0, state.size)),
  );
}

function zoom(state, factor, x = 0.5, y = 0.5) {
  const { first, top, shown } = state.view;
  const after = Math.min(state.size, Math.max(Math.min(CLOSEST, state.size), Math.round(shown * factor)));
  moveTo(state, first + x * (shown - after), top + y * (shown - after), after);
}

function moveTo(state, first, top, shown) {
  const within = (value) => Math.round(Math.min(Math.max(value, 0), state.size - shown));
  state.view = { first: within(first), top: within(top), shown };
  state.draw();
}

function drawMatrix(canvas, width, state) {
  const { view, order, names } = state;
  const rows = order.slice(view.top, view.top + view.shown);
  const columns = order.slice(view.first, view.first + view.shown);
  const margin = 18;
  const longest = Math.max(...[...rows, ...columns].slice(0, 100).map((number) => textWidth(names[number]))) + 8;
  const room = Math.min(longest, width * 0.28, 130);
  const named = (Math.min(width, 620) - margin - room) / view.shown >= LEAST_NAMED;
  const start = margin + (named ? room : 0);
  const side = Math.min(width - start - 1, 560) / view.shown;
  state.frame = { start, side, edge: side * view.shown };
  const context = sharp(canvas, start + state.frame.edge + 1, start + state.frame.edge + 1);
  const tints = palette();
  context.fillStyle = tints.card;
  context.fillRect(start, start, state.frame.edge, state.frame.edge);
  rows.forEach((number, row) => drawRow(context, state, number, row, tints));
  context.fillStyle = tints.ink;
  if (named) drawNames(context, state.frame, rows.map((number) => names[number]), columns.map((number) => names[number]), room);
  context.fillStyle = tints.soft;
  context.textAlign = "center";
  const middle = start + state.frame.edge / 2;
  context.fillText("predicted class", middle, 12);
  sideways(context, 12, middle, () => context.fillText("true class", 0, 0));
}

// The square root lets a mistake of one in a hundred be seen beside a class that is right nine times out of ten.
function drawRow(context, state, number, row, tints) {
  const { start, side } = state.frame;
  const drawn = Math.max(side - (side > 8 ? 1 : 0), 1.5);
  const least = side < 4 ? 0.4 : 0.15;
  context.textAlign = "center";
  for (const [predicted, count] of state.cells[number]) {
    const column = state.places.get(predicted) - state.view.first;
    if (column < 0 || column >= state.view.shown) continue;
    const [x, y] = [start + column * side, start + row * side];
    const share = count / Math.max(state.totals[number], 1);
    context.globalAlpha = least + (1 - least) * Math.sqrt(share);
    context.fillStyle = predicted === number ? tints.blue : tints.orange;
    context.fillRect(x, y, drawn, drawn);
    context.globalAlpha = 1;
    const text = write.count(count);
    if (side < 18 || textWidth(text) > side - 2) continue;
    context.fillStyle = share > 0.35 ? tints.paper : tints.ink;
    context.fillText(text, x + side / 2, y + side / 2 + 4);
  }
}

function drawNames(context, { start, side }, rows, columns, room) {
  context.textAlign = "right";
  rows.forEach((name, place) => context.fillText(clipped(name, room - 6), start - 5, start + (place + 0.5) * side + 4));
  context.textAlign = "left";
  columns.forEach((name, place) => sideways(context, start + (place + 0.5) * side + 4, start - 5, () => context.fillText(clipped(name, room - 6), 0, 0)));
}

function sideways(context, x, y, draw) {
  context.save();
  context.translate(x, y);
  context.rotate(-Math.PI / 2);
  draw();
  context.restore();
}

function listen(canvas, state) {
  let held = null;
  const inside = (event) => {
    const box = canvas.getBoundingClientRect();
    const { start, edge } = state.frame;
    return [(event.clientX - box.left - start) / edge, (event.clientY - box.top - start) / edge];
  };
  canvas.addEventListener("pointerdown", (event) => (held = { at: inside(event), ...state.view }));
  canvas.addEventListener("pointerup", () => (held = null));
  canvas.addEventListener("pointerleave", () => (held = null));
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = inside(event);
    const { shown } = state.view;
    if (held && shown < state.size) moveTo(state, held.first - (x - held.at[0]) * shown, held.top - (y - held.at[1]) * shown, shown);
    tell(state, Math.floor(x * shown), Math.floor(y * shown));
  });
  canvas.addEventListener("dblclick", (event) => zoom(state, 0.5, ...inside(event)));
  canvas.addEventListener("keydown", (event) => {
    const { first, top, shown } = state.view;
    const step = Math.max(1, Math.round(shown / 8));
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (event.key === "+" || event.key === "=") zoom(state, 0.5);
    else if (event.key === "-") zoom(state, 2);
    else if (moves[event.key]) moveTo(state, first + moves[event.key][0], top + moves[event.key][1], shown);
    else return;
    event.preventDefault();
  });
}

function tell(state, column, row) {
  const { view, order, names, cells, totals, readout } = state;
  readout.textContent = "";
  if (Math.min(column, row) < 0 || Math.max(column, row) >= view.shown) return;
  const [actual, predicted] = [order[view.top + row], order[view.first + column]];
  const count = cells[actual].get(predicted) || 0;
  const verb = actual === predicted ? "recognised" : `taken for '${names[predicted]}'`;
  const share = write.share(count / Math.max(totals[actual], 1));
  readout.textContent = `'${names[actual]}' ${verb}: ${write.count(count)} of ${write.count(totals[actual])} (${share})`;
}

// A canvas with as many pixels as the screen has, ready for text of the page's size.
function sharp(canvas, width, height) {
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(density, density);
  context.font = "12px system-ui, sans-serif";
  return context;
}
