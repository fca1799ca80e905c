// The page of an audit.

function auditPage(values) {
  const names = values.classes.name;
  return [
    el("header", {}, el("h1", {}, "Audit of ", el("code", {}, values.origin)), auditLead(values)),
    findingList(values.findings),
    auditFacts(values),
    countsSection(values),
    uncertainSection(values, names),
    changeSection(values, names),
    thresholdSection(values),
    truthSection(values, names),
    auditConfusion(values, names),
    calibrationSection(values),
    definitions(values),
  ].flat();
}

function auditLead(values) {
  const { predictions, classes } = values.facts;
  return el("p", { class: "soft" }, `${write.count(predictions)} predictions of ${write.count(classes)} classes. How evenly are the classes used, and what would debiasing change?`);
}

function auditFacts({ facts }) {
  return factList([
    ["off the shares", write.share(facts.distance), `total variation distance from ${facts.distance_from}`],
    ["almost never predicted", write.count(facts.almost_none), "classes"],
    ["effective classes", write.ratio(facts.effective_classes), `of ${write.count(facts.classes)}`],
    ["never predicted", write.count(facts.never_predicted), "classes"],
    facts.accuracy === undefined ? null : ["accuracy", write.share(facts.accuracy), `95 %: ${write.share(facts.interval[0])} to ${write.share(facts.interval[1])}, ${write.count(facts.truth_known)} images`],
    facts.accuracy === undefined ? null : ["worst recall", write.share(facts.worst_recall), "of the class least recognised"],
  ]);
}

function countsSection(values) {
  const { classes, facts } = values;
  const even = facts.predictions / facts.classes;
  const order = classes.predicted.map((_, number) => number).sort((one, other) => classes.predicted[other] - classes.predicted[one]);
  const marks = [
    classes.truth ? { name: "true images", mark: "diamond", kind: "diamond", colour: "ink", of: classes.truth } : null,
    classes.debiased ? { name: "after debiasing", mark: "circle", kind: "circle", colour: "orange", of: classes.debiased } : null,
  ].filter((mark) => mark);
  const few = order.length <= FEW;
  const drawn = few ? countBars(classes, order, marks, even) : countRanks(classes, marks, even);
  return section(
    "counts",
    "How often each class is predicted",
    chart(few ? "Predictions per class, most predicted first" : "Predictions per class, from the most to the least predicted", drawn),
    classTable(classes, few ? "Every class" : "Every class; search for one, or sort by a column"),
  );
}

function countBars(classes, order, marks, even) {
  const rows = order.map((number) => ({
    name: classes.name[number],
    value: classes.predicted[number],
    marks: marks.map((mark) => ({ ...mark, value: mark.of[number] })),
  }));
  return barChart(rows, { name: "predictions", marks, even, evenName: "even share", write: write.count, label: "Bars: predictions of each class" });
}

function countRanks(classes, marks, even) {
  const ranked = (counts) => [...counts].sort((one, other) => other - one).map((count, place) => [place + 1, count]);
  const series = [
    { name: "predictions", colour: "blue", points: ranked(classes.predicted) },
    ...marks.map((mark, place) => ({ name: mark.name, colour: mark.colour, dash: DASHES[place + 1], points: ranked(mark.of) })),
  ];
  return lineChart(series, {
    label: "Lines: predictions of each class, sorted",
    x: { name: "rank of the class", low: 1, write: write.count },
    // One class that has nearly all would press the others flat on the ground.
    y: Math.max(...classes.predicted) > 8 * even ? { name: "predictions, on a logarithmic scale; classes without any are at the bottom", log: true, low: 0.5, write: write.number } : { name: "predictions", low: 0, write: write.count },
    lines: [{ y: even, name: "even share" }],
  });
}

function classTable(classes, caption) {
  const columns = [{ name: "class", text: true }, { name: "predicted", write: write.count }, { name: "× even share", write: write.times }];
  const data = [classes.name, classes.predicted, classes.times_even];
  const add = (name, values, how) => {
    if (!values) return;
    columns.push({ name, write: how });
    data.push(values);
  };
  add("mean confidence", classes.confidence, write.share);
  add("true", classes.truth, write.count);
  add("precision", classes.precision, write.share);
  add("recall", classes.recall, write.share);
  add("after debiasing", classes.debiased, write.count);
  const rows = classes.name.map((_, number) => data.map((column) => column[number]));
  return dataTable(caption, columns, rows, { sort: 1, page: classes.name.length <= FEW ? FEW : PAGE, searchLabel: "Search classes" });
}

function thresholdSection({ thresholds, facts }) {
  if (!thresholds) {
    return section("thresholds", "With a confidence threshold", paragraph("The file has no confidences and no probabilities, so thresholds cannot be tried. Add a column ", el("code", {}, "confidence"), "."));
  }
  // Of fewer images than classes some classes are empty, however even the rest is: such points would mislead.
  const kept = thresholds.filter((row) => row.kept >= facts.classes);
  const lines = (name, key, options) =>
    lineChart([{ name, colour: "blue", points: kept.map((row) => [row.threshold, row[key]]) }], {
      label: `Line: ${name} against the threshold`,
      height: 220,
      x: { name: "confidence threshold", low: 0, high: 1, write: (value) => Number(value.toFixed(2)).toString() },
      y: { name, ...options },
      empty: "There are fewer images than classes: too few for a chart.",
    });
  const columns = [
    { name: "threshold", write: write.number }, { name: "kept", write: write.count }, { name: "share kept", write: write.share },
    { name: "largest class, × even share", write: write.times }, { name: "effective classes", write: write.ratio },
    { name: "never predicted", write: write.count }, { name: "accuracy", write: write.share },
  ];
  const rows = thresholds.map((row) => [row.threshold, row.kept, row.kept_share, row.largest_times_even, row.effective_classes, row.never_predicted, row.accuracy]);
  return section(
    "thresholds",
    "With a confidence threshold",
    paragraph("Pseudo-labels are the predictions above a threshold. A higher threshold keeps fewer and more confident labels, which are often more imbalanced."),
    kept.length < thresholds.length ? paragraph("Thresholds that keep fewer images than there are classes are only in the table.") : null,
    el("div", { class: "pair" },
      chart("The largest class of the kept predictions", lines("largest class, × even share", "largest_times_even", { log: true, low: 1, write: write.number })),
      chart("Effective classes of the kept predictions", lines("effective classes", "effective_classes", { low: 0, write: write.number }))),
    el("details", {}, el("summary", {}, "The numbers as a table"), dataTable("Predictions at and above a confidence", columns, rows)),
  );
}

function truthSection({ classes, facts }, names) {
  if (!classes.truth) {
    return section("truth", "Precision and recall", paragraph("The file does not contain the true classes. Add a column ", el("code", {}, "truth"), " for some of the images, or name yours: ", el("code", {}, "--column truth=COLUMN"), "."));
  }
  const scatter = (values, name, colour, mark) =>
    lineChart(
      [{ name, colour, mark, points: names.map((label, number) => [classes.times_even[number], values[number], label]).filter((point) => point[1] !== null) }],
      {
        label: `Points: ${name} of each class against how often it is predicted`,
        scatter: true,
        height: 240,
        x: { name: "predicted, × even share", log: true, low: Math.min(...classes.times_even.filter((value) => value > 0)) / 1.1, pad: 0.04, write: write.number },
        y: { name, low: 0, high: 1, pad: 0.04, write: (value) => write.share(value).replace(".0", "") },
      },
    );
  return section(
    "truth",
    "Precision and recall against the share of a class",
    paragraph(`Of the ${write.count(facts.truth_known)} images whose class is known. A point is a class; classes on the right are predicted often. The numbers are in the table of classes above.`),
    el("div", { class: "pair" },
      chart("Recall: the share of a class that is found", scatter(classes.recall, "recall", "blue", "circle")),
      chart("Precision: the share of its predictions that are right", scatter(classes.precision, "precision", "orange", "triangle"))),
  );
}

function auditConfusion({ confusion }, names) {
  if (!confusion) return [];
  const { matrix, order, mistakes, all_mistakes: all } = confusion;
  const totals = matrix ? matrix.totals : null;
  const rows = mistakes[0].map((actual, place) => [names[actual], names[mistakes[1][place]], mistakes[2][place], totals ? mistakes[2][place] / totals[actual] : null]);
  const columns = [{ name: "true class", text: true }, { name: "taken for", text: true }, { name: "images", write: write.count }, { name: "share of the class", write: write.share }];
  const drawn = matrix
    ? [confusionMatrix(matrix, order, names, "Confusion matrix; its mistakes are in the table below"), matrix.left_out ? paragraph(`${write.count(matrix.left_out)} images in the rarest cells are not drawn.`) : null]
    : paragraph("There are too many classes to draw a matrix; the table lists the mistakes.");
  return section(
    "confusion",
    "Which classes are mistaken for which",
    paragraph("Rows are true classes. Blue is right, orange is wrong, and darker is more. Classes that are confused with each other are next to each other."),
    chart(names.length > LEAST_NAMED ? "Confusion; double-click or the buttons zoom, dragging moves" : "Confusion", drawn),
    dataTable(`The largest ${write.count(rows.length)} of ${write.count(all)} kinds of mistake`, columns, rows, { sort: 2, page: 10, searchLabel: "Search mistakes" }),
  );
}

function calibrationSection({ calibration }) {
  if (!calibration) return [];
  const whisker = calibration.bins.map((bin) => [bin.confidence, bin.accuracy, `${write.count(bin.count)} images`, bin.interval]);
  const side = Math.abs(calibration.gap) < 0.02 ? "about right" : calibration.gap > 0 ? "over-confident" : "under-confident";
  const percent = (value) => write.share(value).replace(".0", "");
  const rows = calibration.bins.map((bin) => [`${bin.low.toFixed(1)} to ${bin.high.toFixed(1)}`, bin.count, bin.confidence, bin.accuracy]);
  const columns = [{ name: "confidence", text: true }, { name: "images", write: write.count }, { name: "mean confidence", write: write.share }, { name: "accuracy", write: write.share }];
  const drawn = lineChart([{ name: "accuracy", colour: "blue", mark: "circle", points: whisker }], {
    label: "Points: accuracy against confidence; on the diagonal they agree",
    height: 280,
    x: { name: "mean confidence", low: 0, high: 1, write: percent },
    y: { name: "accuracy", low: 0, high: 1, write: percent },
    lines: [{ y: 1, diagonal: true, name: "as sure as right" }],
  });
  return section(
    "calibration",
    "Can the confidence be trusted?",
    paragraph(`On the whole ${side}: mean confidence is ${fixed(Math.abs(100 * calibration.gap), 1)} points ${calibration.gap < 0 ? "below" : "above"} the accuracy. Expected calibration error: ${write.share(calibration.error)}.`),
    chart("Accuracy by confidence, with 95 % intervals", drawn, dataTable("In ten bins of confidence", columns, rows)),
  );
}
