// What happened while the runs trained.

// The last method, which is the one with the correction, has the plain line.
function dashOf(place, methods) {
  return DASHES[(methods.length - 1 - place) % DASHES.length];
}

function lineOf(run, key, tints, methods) {
  const points = run.curves.step.map((step, number) => [step, run.curves[key][number]]).filter((point) => point[1] !== null);
  return { name: methods[run.method].title, colour: tints[run.method], dash: dashOf(run.method, methods), width: 1.5, points };
}

// A line per run, in the colour and the dashes of its method; the legend names each method once.
function trainingLines({ runs, methods, tints }, key, name, options) {
  const series = runs.map((run) => lineOf(run, key, tints, methods)).filter((one) => one.points.length);
  if (!series.length) return null;
  const once = methods.map((method) => series.find((one) => one.name === method.title)).filter((one) => one);
  const x = { name: "step", low: 0, write: write.count };
  return lineChart(series, { label: `Lines: ${name} through training`, height: 230, legend: once, x, y: { name, ...options } });
}

function trainingTable({ runs }, key, name, how) {
  const columns = [{ name: "run", text: true }, { name: "step", write: write.count }, { name, write: how }];
  const rows = runs.flatMap((run) => run.curves.step.map((step, number) => [run.name, step, run.curves[key][number]]).filter((row) => row[2] !== null));
  return rows.length ? dataTable(`${name} through training`, columns, rows, { page: 12 }) : null;
}

function trainingChart(values, key, caption, name, how, options) {
  const lines = trainingLines(values, key, name, { write: how, ...options });
  return lines ? chart(caption, lines, trainingTable(values, key, name, how)) : null;
}

function pseudoSection(values) {
  const parts = [
    trainingChart(values, "pseudo_distance", "Pseudo-labels that would have to change class to match the true shares (even ones where those are not known)", "off the shares", write.share, { low: 0 }),
    stripesOf(values, "pseudo", () => "Pseudo-labels"),
  ].filter((part) => part);
  if (!parts.length) return null;
  return section(
    "pseudo",
    "Pseudo-labels through training",
    paragraph("The labels that the model gave to unlabeled images, where it was confident enough. It learned from these. If the images are balanced, these labels should be too."),
    parts,
  );
}

// One picture a method; which of its seeds is shown can be chosen.
function stripesOf({ runs, methods, classes }, key, title) {
  const drawn = methods.map((method, place) => {
    const own = runs.filter((run) => run.method === place && run[key]);
    if (!own.length) return null;
    const holder = el("div");
    const show = (run) => holder.replaceChildren(chart(`${title(run)} of ${method.title}, seed ${run.seed}: a row is a class`, stripes(run[key].times_even, run[key].step, classes, `Stripes: shares of the classes through training, ${run.name}`), stripesTable(run[key], classes)));
    show(own[0]);
    if (own.length === 1) return holder;
    const choice = el("select", { change: () => show(own[Number(choice.value)]) }, own.map((run, number) => el("option", { value: number }, run.name)));
    return el("div", {}, el("div", { class: "tools" }, el("label", {}, "Run", choice)), holder);
  });
  return drawn.some((part) => part) ? el("div", { class: "pair" }, drawn.filter((part) => part)) : null;
}

function stripesTable({ step, times_even: values }, classes) {
  const last = values.length - 1;
  const places = [...new Set([0, Math.floor(last / 2), last])];
  const columns = [{ name: "class", text: true }, ...places.map((place) => ({ name: `step ${write.count(step[place])}`, write: write.times }))];
  return dataTable("Shares in times of an even share: first, middle and last", columns, classes.map((name, number) => [name, ...places.map((place) => values[place][number])]), { sort: places.length });
}

function priorSection(values) {
  const drawn = stripesOf(values, "prior", (run) => (run.has_prior ? "Prior" : "Mean prediction"));
  const lines = trainingChart(values, "distance", "Distance of the prior from the true shares, or from even ones; of methods without a prior, of the mean prediction", "total variation", write.share, { low: 0 });
  if (!drawn && !lines) return null;
  return section("prior", "The prior: how often the model predicts each class", paragraph("DebiasPL keeps a running mean of the raw probabilities and removes it from the labels. The closer it is to even, the less there is to remove."), lines, drawn);
}

// How the features were: measured without labels.
function healthSection(values) {
  const runs = values.runs.filter((run) => run.curves.health).map((run) => ({ ...run, curves: run.curves.health }));
  if (!runs.length) return null;
  const own = { ...values, runs };
  const parts = [
    trainingChart(own, "rank", "Effective rank: how many directions the features use", "effective rank", write.number, { low: 0 }),
    trainingChart(own, "spread", "Spread of the features: 1 is even, 0 is all the same", "spread", write.number, { low: 0 }),
  ].filter((part) => part);
  return section(
    "health",
    "Are the features learning?",
    paragraph("Measured on the averaged model for a fixed sample of training images; step 0 is before training. A falling loss says little: features that are the same for all images also have a low loss. The effective rank should level off, and the spread should stay above 0."),
    el("div", { class: "pair" }, parts),
  );
}

function trainingSection(values) {
  const percent = (value) => write.share(value).replace(".0", "");
  const losses = [...new Set(values.runs.flatMap((run) => Object.keys(run.curves.losses)))];
  const flat = { ...values, runs: values.runs.map((run) => ({ ...run, curves: { ...run.curves, ...Object.fromEntries(losses.map((name) => [`loss ${name}`, run.curves.losses[name] || run.curves.step.map(() => null)])) } })) };
  const measured = values.runs.some((run) => run.curves.measured.length);
  const onTheWay = { ...values, runs: values.runs.map((run) => ({ ...run, curves: { step: run.curves.measured.map((one) => one[0]), measured: run.curves.measured.map((one) => one[1]) } })) };
  const parts = [
    trainingChart(values, "kept", "Share of the labels that were confident enough", "share kept", percent, { low: 0, high: 1 }),
    trainingChart(values, "pseudo_accuracy", "Share of the kept labels that were right", "pseudo-labels right", percent, { high: 1 }),
    measured ? trainingChart(onTheWay, "measured", "Accuracy on the test set during training; nothing was selected by it", "accuracy", percent, {}) : null,
    ...losses.map((name) => trainingChart(flat, `loss ${name}`, `Loss: ${name}`, "loss", write.number, { low: 0 })),
  ].filter((part) => part);
  return parts.length ? section("training", "How training went", el("div", { class: "pair" }, parts)) : section("training", "How training went", paragraph(values.runs.every((run) => run.ended) ? "There is no log: a classifier of stored features is fitted at once." : "The log is still empty."));
}
