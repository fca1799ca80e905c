// The page of one run, or of several beside each other.

const METHOD_COLOURS = ["orange", "blue", "green", "pink", "yellow"];

function runsPage(values) {
  const { runs } = values;
  return [el("header", {}, el("h1", {}, runs.length === 1 ? ["Run ", el("code", {}, runs[0].name)] : `${runs.length} runs`), runsLead(values)), runsParts(values)];
}

function runsParts(values) {
  const { runs, methods, classes } = values;
  const found = { ...values, tints: methodTints(methods) };
  return [
    values.findings.length ? findingList(values.findings) : null,
    runs.length === 1 ? runFacts(runs[0], methods[0]) : null,
    accuracySection(found),
    pseudoSection(found),
    priorSection(found),
    healthSection(found),
    trainingSection(found),
    recallSection(found, classes),
    runsConfusion(found, classes),
    settingsSection(found),
  ];
}

// The baseline is grey wherever it is seen; the others have the colours of the paper's figures in this project.
function methodTints(methods) {
  let last = -1;
  return methods.map((method) => (method.supervised ? "grey" : METHOD_COLOURS[(last += 1) % METHOD_COLOURS.length]));
}

function runsLead({ about, runs, same_data: same }) {
  const open = runs.filter((run) => !run.ended);
  const state = open.map((run) => `${run.name}: step ${write.count(run.step)} of ${write.count(run.steps)}`);
  const { data, labels, unlabeled, test, tested } = runs.find((run) => run.ended) || runs[0];
  const sizes = !same ? ", and others; see the differences below" : labels === null ? "" : `: ${write.count(labels)} labels, ${write.count(unlabeled)} unlabeled images` + (test ? `, ${write.count(test)} ${tested}` : "");
  return [
    el("p", { class: "soft" }, about ? `${about}. ` : "", `Data: ${data}${sizes}.`),
    el("p", { class: open.length ? "status" : "status ended", id: "state" }, el("span", { class: "dot", "aria-hidden": "true" }), open.length ? `Training or stopped. ${state.join("; ")}` : "Ended."),
  ];
}

function runFacts(run, method) {
  return factList([
    run.accuracy === null ? null : ["accuracy", write.share(run.accuracy), `95 %: ${write.share(run.interval[0])} to ${write.share(run.interval[1])}, ${write.count(run.test)} images`],
    run.worst_recall === null ? null : ["worst recall", write.share(run.worst_recall), "of the class least recognised"],
    ["method", method.title, `seed ${run.seed}`],
    ["steps", write.count(run.step || (run.ended ? run.steps : 0)), run.ended ? "all of them" : `of ${write.count(run.steps)}`],
    run.off ? ["pseudo-labels off the shares", write.share(run.off.distance), `in the second half, from ${run.off.reference}`] : null,
    run.off ? ["classes with almost none", write.count(run.off.almost_none), "pseudo-labels, in the second half"] : null,
    run.pseudo_accuracy ? ["pseudo-labels right", write.share(run.pseudo_accuracy), "in the second half"] : null,
  ]);
}

function points(value) {
  if (value === null) return "-";
  const signed = (one) => `${one < 0 ? "−" : "+"}${fixed(Math.abs(100 * one), 1)}`;
  if (value.per_seed.length === 1) return signed(value.mean);
  if (!value.interval) return `${signed(value.mean)} (${value.per_seed.map(signed).join(", ")})`;
  const [low, high] = value.interval;
  return `${signed(value.mean)} (${signed(low)} to ${signed(high)}, p = ${write.number(value.p)})`;
}

function accuracySection({ methods, runs, tints }) {
  if (runs.length < 2) return null;
  const said = (accuracy) => {
    if (!accuracy) return "not yet";
    if (accuracy === "unmeasured") return "no labels";
    const mean = fixed(100 * accuracy.mean, 1);
    if (accuracy.interval) return `${mean} (${accuracy.interval.map((value) => fixed(100 * value, 1)).join(" to ")})`;
    return `${mean} ± ${fixed(100 * accuracy.deviation, 1)}`;
  };
  const columns = [
    { name: "method", text: true }, { name: "runs", write: write.count }, { name: "accuracy %", write: said }, { name: "− supervised", write: points },
    { name: "worst recall", write: write.share }, { name: "off shares", write: write.share }, { name: "almost none", write: (value) => (value === null ? "-" : write.number(value)) }, { name: "pseudo-labels right", write: write.share },
  ];
  const rows = methods.map((method) => [method.title, method.runs, method.unmeasured ? "unmeasured" : method.accuracy, method.to_supervised, method.worst_recall, method.off ? method.off.distance : null, method.off ? method.off.almost_none : null, method.pseudo_accuracy]);
  const against = methods.some((method) => method.to_supervised);
  if (!against) [columns, ...rows].forEach((row) => row.splice(3, 1));
  const dots = methods.map((method, place) => ({
    name: method.title,
    dots: runs.filter((run) => run.method === place && run.interval).map((run) => ({ value: run.accuracy, low: run.interval[0], high: run.interval[1], colour: tints[place], title: `${run.name}: ${write.share(run.accuracy)}` })),
  }));
  const most = Math.max(...dots.map((row) => row.dots.length), 1);
  const each = [{ name: "run", text: true }, { name: "accuracy", write: write.share }, { name: "from", write: write.share }, { name: "to", write: write.share }];
  const table = dataTable("Each run, with its 95 % interval", each, runs.filter((run) => run.interval).map((run) => [run.name, run.accuracy, ...run.interval]));
  return section(
    "accuracy",
    "Accuracy",
    el("div", { class: "scroll" }, dataTable(`Mean ± standard deviation over seeds; a single run with its 95 % interval. ${against ? "Difference to supervised: paired, of each seed; of six seeds or more with its 95 % interval by Student’s t and the p value of the exact sign-flip test. " : ""}Worst recall: of the class least recognised, the mean. Off shares: pseudo-labels of the second half that would have to change class to match the true shares, or even ones where those are not known (total variation distance). Almost none: classes with less than a tenth of theirs. Both, and how many labels were right: the mean.`, columns, rows)),
    dots.some((row) => row.dots.length) ? chart("Accuracy on the test images; a dot for each seed, with its 95 % interval", dotChart(dots, { step: 14 + 8 * most, axis: "accuracy", write: (value) => write.share(value).replace(".0", ""), label: "Dots: accuracy of each run" }), table) : null,
  );
}

function recallSection({ methods, tints }, classes) {
  const shown = methods.map((method, place) => ({ ...method, place })).filter((method) => method.recall);
  if (!shown.length) return null;
  const columns = [{ name: "class", text: true }, ...shown.map((method) => ({ name: method.title, write: write.share }))];
  const rows = classes.map((name, number) => [name, ...shown.map((method) => method.recall[number])]);
  const table = dataTable("Recall of each class, mean over seeds", columns, rows, { searchLabel: "Search classes" });
  const marks = ["circle", "triangle", "diamond"];
  const series = shown.map((method, place) => ({ name: method.title, colour: tints[method.place], mark: marks[place % 3] }));
  const caption = "The share of each class's test images that is recognised";
  if (classes.length > FEW) {
    const ranked = shown.map((method, place) => ({
      name: method.title, colour: tints[method.place], dash: dashOf(method.place, methods),
      points: method.recall.filter((value) => value !== null).sort((one, other) => other - one).map((value, rank) => [rank + 1, value]),
    }));
    const options = { label: caption, x: { name: "rank of the class", low: 1, write: write.count }, y: { name: "recall", low: 0, high: 1, write: (value) => write.share(value).replace(".0", "") } };
    return section("recall", "Recall of each class", chart(`${caption}, from the best to the worst`, lineChart(ranked, options)), table);
  }
  const dots = classes.map((name, number) => ({
    name,
    dots: shown.map((method, place) => ({ value: method.recall[number], colour: tints[method.place], mark: marks[place % 3], title: `${method.title}: ${write.share(method.recall[number])}` })).filter((dot) => dot.value !== null),
  }));
  return section("recall", "Recall of each class", chart(caption, dotChart(dots, { series, low: 0, high: 1, step: Math.max(24, 9 * shown.length), axis: "recall", write: (value) => write.share(value).replace(".0", ""), label: caption }), table));
}

function runsConfusion({ confusions, order }, classes) {
  if (!confusions.length) return null;
  const drawn = confusions.map(({ title, matrix }) => {
    const mistakes = matrix.rows.flatMap((row, actual) => Array.from({ length: row.length / 2 }, (_, place) => [actual, row[2 * place], row[2 * place + 1]])).filter(([actual, predicted]) => actual !== predicted);
    const rows = mistakes.sort((one, other) => other[2] - one[2]).slice(0, 200).map(([actual, predicted, count]) => [classes[actual], classes[predicted], count, count / matrix.totals[actual]]);
    const columns = [{ name: "true class", text: true }, { name: "taken for", text: true }, { name: "images", write: write.count }, { name: "share of the class", write: write.share }];
    return chart(title, confusionMatrix(matrix, order, classes, `Confusion matrix of ${title}; its mistakes are in the table`), dataTable(`The most frequent mistakes of ${title}`, columns, rows, { sort: 2, page: 10 }));
  });
  return section(
    "confusion",
    "Which classes are mistaken for which",
    paragraph("Test images of all seeds. Rows are true classes. Blue is right, orange is wrong, and darker is more. The order of the classes is the same in each; those that are confused with each other are next to each other."),
    el("div", { class: "pair" }, drawn),
  );
}

function settingsSection({ settings, methods, runs }) {
  const names = [{ name: "setting", text: true }, ...methods.map((method) => ({ name: method.title, text: true }))];
  const different = settings.different.length ? dataTable("What differs between the methods", names, settings.different) : null;
  const columns = [
    { name: "run", text: true }, { name: "seed", write: write.count }, { name: "seconds", write: write.number }, { name: "device", text: true },
    { name: "versions", text: true, wrap: true }, { name: "command", text: true, wrap: true, write: (value) => (value ? el("code", {}, value) : "not a listed recipe") },
  ];
  const rows = runs.map((run) => [
    run.name, run.seed, run.timing ? run.timing.seconds : run.seconds, run.timing ? run.timing.device : null,
    run.versions ? Object.entries(run.versions).map(([name, version]) => `${name} ${version}`).join(", ") : null, run.command,
  ]);
  const evaluated = runs.map((run) => run.evaluated).find((words) => words);
  return section(
    "settings",
    "Settings, commands and versions",
    evaluated ? paragraph(`What was evaluated: ${evaluated}.`) : null,
    different,
    dataTable("The runs", columns, rows),
    el("details", {}, el("summary", {}, methods.length > 1 ? "Settings that all of them share" : "All settings"), dataTable("As --set calls them", [{ name: "setting", text: true }, { name: "value", text: true }], settings.same, { page: 100 })),
  );
}
