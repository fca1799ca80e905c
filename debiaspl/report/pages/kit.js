// Elements are made by hand and text is always text: no name of a class or a file is ever read as HTML.

function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

// Half goes to the even digit, as on the terminal, so that both print the same; toFixed rounds it up.
function fixed(value, digits) {
  const [up, half] = [value.toFixed(digits), (value * 2 ** (digits + 1)) % 2];
  return Math.abs(half) === 1 && up.at(-1) % 2 ? (value - half / 10 ** (digits + 1)).toFixed(digits) : up;
}

const write = {
  count: (value) => (value === null || value === undefined ? "-" : Math.round(value).toLocaleString("en")),
  share: (value) => (value === null || value === undefined ? "-" : `${fixed(100 * value, 1)} %`),
  times: (value) => (value === null || value === undefined ? "-" : `${fixed(value, 2)} ×`),
  ratio: (value) => (value === null || value === undefined ? "-" : value < 100 ? fixed(value, 1) : write.count(value)),
  number: (value) => (value === null || value === undefined ? "-" : Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 8 })),
  text: (value) => (value === null || value === undefined ? "-" : String(value)),
};

const DASHES = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 6"];

// A canvas cannot use the variables of the style sheet, so it asks what they are now.
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function palette() {
  return Object.fromEntries(["ink", "soft", "paper", "card", "blue", "orange", "over", "under", "even"].map((name) => [name, colour(name)]));
}

const redrawn = new Set();

// Charts are drawn for the width they have, so that their text has the same size on a phone.
function plot(draw) {
  const place = el("div", { class: "plot" });
  let width = 0;
  const again = () => {
    if (width > 0) place.replaceChildren(draw(width));
  };
  const fit = () => {
    const now = Math.floor(place.clientWidth);
    if (now > 0 && now !== width) {
      width = now;
      again();
    }
  };
  // In the next frame: a chart that changes sizes while they are observed makes the browser report an endless loop.
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(place);
  redrawn.add(again);
  return place;
}

for (const query of ["(prefers-color-scheme: dark)", "print"]) {
  matchMedia(query).addEventListener("change", () => redrawn.forEach((again) => again()));
}

function chart(caption, parts, table) {
  const behind = table ? el("details", {}, el("summary", {}, "The numbers as a table"), table) : null;
  return el("figure", {}, el("figcaption", {}, caption), parts, behind);
}

function section(id, title, ...content) {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), content);
}

function paragraph(...content) {
  return el("p", {}, content);
}

function findingList(findings) {
  return el(
    "ol",
    { class: "findings" },
    findings.map((finding) =>
      el("li", {}, paragraph(finding.fact), el("p", { class: "next" }, el("b", {}, "Next: "), `${finding.todo} `, el("a", { href: `#${finding.part}` }, "Show"))),
    ),
  );
}

function factList(facts) {
  return el(
    "dl",
    { class: "facts" },
    facts
      .filter((fact) => fact)
      .map(([name, value, note]) => el("div", {}, el("dt", {}, name), el("dd", {}, value, note ? el("small", {}, note) : null))),
  );
}

function legend(series) {
  if (series.length < 2) return null;
  return el(
    "ul",
    { class: "legend" },
    series.map((one) => {
      const mark = svg("svg", { width: 22, height: 10, "aria-hidden": "true" });
      const tint = `var(--${one.colour})`;
      if (one.mark) mark.append(marker(one.mark, 11, 5, tint));
      else mark.append(svg("line", { x1: 0, x2: 22, y1: 5, y2: 5, stroke: tint, "stroke-width": 2.5, "stroke-dasharray": one.dash || "" }));
      return el("li", {}, mark, one.name);
    }),
  );
}

// On a halo of the paper's colour, so that a mark is seen on a bar as well.
function marker(kind, x, y, tint) {
  const halo = { stroke: "var(--paper)", "stroke-width": 1.5, "paint-order": "stroke" };
  if (kind === "diamond") return svg("path", { d: `M${x} ${y - 5}l5 5l-5 5l-5 -5z`, fill: "var(--paper)", stroke: tint, "stroke-width": 2 });
  if (kind === "triangle") return svg("path", { d: `M${x} ${y - 4}l4 7h-8z`, fill: tint, ...halo });
  if (kind === "bar") return svg("rect", { x: x - 11, y: y - 4, width: 22, height: 8, fill: tint });
  return svg("circle", { cx: x, cy: y, r: 4, fill: tint, ...halo });
}

// The measured width of a text, to leave no more room for names than they need.
const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text) {
  ruler.font = "12px system-ui, sans-serif";
  return ruler.measureText(text).width;
}

function clipped(text, room) {
  if (textWidth(text) <= room) return text;
  let end = text.length;
  while (end > 1 && textWidth(`${text.slice(0, end)}…`) > room) end -= 1;
  return `${text.slice(0, end)}…`;
}
