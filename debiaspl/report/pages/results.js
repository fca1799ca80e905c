// The page of all results: what the papers print, what was measured, and how to run it again.

const METHODS = { FixMatch: { colour: "blue", mark: "circle" }, DebiasPL: { colour: "orange", mark: "diamond" } };

function resultsPage(values) {
  const of = (group) => values.lines.filter((line) => line.group === group);
  const measured = values.lines.filter((line) => line.mean !== null);
  const open = of("paper").filter((line) => line.standing === "open").length;
  return [
    el("header", {}, el("h1", {}, "All results"), el("p", { class: "soft" }, values.read)),
    factList([
      ["Measured", write.count(measured.length), "rows, each one method by one recipe"],
      ["Open", write.count(open), "rows of the paper's cells"],
      ["Measured on", values.gpus.join(", ") || "-"],
    ]),
    section("recipes", "Recipes", el("ul", {}, Object.entries(values.recipes).map(([name, words]) => el("li", {}, el("b", {}, name), `: ${words}`)))),
    section("minutes", "Accuracy against minutes", minutesCharts(measured)),
    section("pairs", "DebiasPL against FixMatch, fold by fold", paragraph(values.shared), pairTable(values.pairs)),
    section("paper", "The paper's cells", paperTable(of("paper"))),
    section("standard", "Standard long-tail protocols", paragraph("The DebiasPL paper has no numbers for these."), standardTable(of("standard"))),
    section("sources", "Sources", el("ul", {}, values.sources.map(([name, words]) => el("li", {}, el("b", {}, name), `: ${words}.`)))),
  ];
}

function minutesCharts(measured) {
  const cells = new Map();
  for (const line of measured) {
    if (METHODS[line.method] && line.minutes) cells.set(line.about, [...(cells.get(line.about) || []), line]);
  }
  if (!cells.size) return paragraph("Nothing has been measured yet.");
  return [
    paragraph("A mark is the mean of a recipe's folds; its line goes from the worst fold to the best. Dotted: the paper's number, which for FixMatch is mostly copied from other papers. Runs that shared the GPU took longer than one run alone: the text below a chart and the tables say how many did."),
    el("div", { class: "pair" }, [...cells].map(([about, lines]) => minutesChart(about, lines))),
  ];
}

function minutesChart(about, lines) {
  const series = Object.entries(METHODS).map(([name, look]) => ({
    name,
    ...look,
    points: lines
      .filter((line) => line.method === name)
      .map((line) => [line.minutes, line.mean, `${name}, ${line.recipe}, ${foldsOf(line)}${atOnce(line)}`, [Math.min(...line.accuracy), Math.max(...line.accuracy)]]),
  }));
  // At both ends, for they may lie close to each other.
  const papers = Object.keys(METHODS).flatMap((name, place) => {
    const line = lines.find((one) => one.method === name && one.paper !== null);
    return line ? [{ y: line.paper, name: `paper: ${name} ${line.paper.toFixed(1)}`, atStart: place === 0 }] : [];
  });
  const extremes = lines.flatMap((line) => line.accuracy).concat(papers.map((one) => one.y));
  const step = 5;
  const options = {
    label: `Accuracy against minutes, ${about}`,
    scatter: true,
    height: 250,
    lines: papers,
    x: { name: "minutes a fold", write: (value) => String(Number(value.toFixed(1))), log: true, low: 1, pad: 0.05 },
    y: { name: "accuracy %", write: (value) => value.toFixed(value % 1 ? 1 : 0), low: step * Math.floor(Math.min(...extremes) / step), high: Math.min(100, step * Math.ceil((Math.max(...extremes) + 1) / step)) },
  };
  return chart(about, lineChart(series, options));
}

const foldsOf = (line) => `${line.folds.length} fold${line.folds.length === 1 ? "" : "s"}`;
const atOnce = (line) => (line.together > 1 ? `, ${line.together} runs at once` : "");
const percent = (value) => (value === null || value === undefined ? "" : value.toFixed(1));
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
const small = (text) => (text ? el("small", { class: "soft" }, text) : null);

const CELL = { name: "cell", text: true, wrap: true, filter: true, write: (about, row) => [about, small(row.at(-1).note)] };
const OURS = [
  { name: "ours %", write: (mean, row) => [percent(mean), small(row.at(-1).interval && row.at(-1).interval.map(percent).join(" to "))] },
  { name: "folds", write: (count, row) => (count === null ? "" : [String(count), small(count > 1 && `worst ${percent(Math.min(...row.at(-1).accuracy))}`)]) },
  { name: "minutes", write: (minutes, row) => [percent(minutes), small(row.at(-1).together > 1 && `${row.at(-1).together} at once`)] },
];
const STANDING = { name: "standing", text: true, filter: true };
const RECIPE = { name: "recipe", text: true, wrap: true, filter: true, write: (recipe, row) => [recipe, how(row.at(-1))] };

function ours(line) {
  return [line.mean, line.folds.length || null, line.minutes];
}

function how({ command, ran }) {
  return command ? el("details", {}, el("summary", {}, "how"), small(ran), el("code", {}, command)) : null;
}

function others(texts) {
  return texts.split("; ").map((text) => small(text));
}

function pairTable(pairs) {
  const columns = [
    CELL,
    { name: "recipe", text: true, filter: true },
    { name: "folds" },
    { name: "FixMatch %", write: percent },
    { name: "DebiasPL %", write: percent },
    { name: "difference", write: (mean, row) => [signed(mean), small(row.at(-1).interval && row.at(-1).interval.map(signed).join(" to "))] },
    { name: "each fold", text: true },
    { name: "verdict", text: true, filter: true },
  ];
  const rows = pairs.map((pair) => {
    const mean = pair.differences.reduce((one, other) => one + other, 0) / pair.differences.length;
    return [pair.about, pair.recipe, pair.folds.length, pair.fixmatch, pair.debiaspl, mean, pair.each, pair.verdict, pair];
  });
  return dataTable("Difference: DebiasPL − FixMatch on the same folds, in points; below it the 95 % t interval of its mean. Not significant: the interval contains 0.", columns, rows);
}

function paperTable(lines) {
  const columns = [CELL, { name: "method", text: true, filter: true }, RECIPE, { name: "paper %", write: percent }, { name: "others %", text: true, figures: true, write: others }, ...OURS, STANDING];
  const rows = lines.map((line) => [line.about, line.method, line.recipe, line.paper, line.others.join("; "), ...ours(line), line.standing, line]);
  return dataTable("Paper: the paper's number for the cell and method, whichever recipe we used. Below our mean: the 95 % t interval. Reached and below: only with the paper's own recipe. How: what was run, and the command.", columns, rows);
}

function standardTable(lines) {
  const columns = [CELL, { name: "method", text: true, filter: true }, { name: "others %", text: true, figures: true, write: others }, { ...RECIPE, filter: false }, ...OURS, STANDING];
  const rows = lines.map((line) => [line.about, line.method, line.others.join("; "), line.recipe, ...ours(line), line.standing, line]);
  return dataTable("Mean ± standard deviation of what other sources print, and ours.", columns, rows);
}
