// The page of a run on photos, in words for the person who took them; the researcher's charts are folded below.

function photosPage(values) {
  const used = values.models.find((model) => model.used) || values.models[values.models.length - 1];
  return [
    el("header", {}, el("h1", {}, values.name), el("p", { class: "soft" }, `${write.count(values.photos)} photos, ${write.count(values.labels)} with a label, ${values.classes.length} classes.`)),
    photoCards(values, used),
    photoClasses(values),
    shareSection(values),
    mistakeSection(values),
    unsureSection(values),
    nextSection(values),
    el("section", { id: "research" }, el("h2", {}, "For researchers"), el("details", {}, el("summary", {}, "Show the charts of training, all numbers and settings"), runsParts(values.research))),
  ];
}

const HOW_CHECKED = {
  "cross-check": "Each of these labels was predicted by a model that had not seen it. The final model has learned from all of them and is usually a little better.",
  "held-out": "These labels were kept back: the model has not learned from them.",
  none: "These are the labels it has learned from, as there are no others. This says nothing about other photos.",
  evaluated: "These true labels were used for nothing else.",
  teacher: "It has learned from labels of its teacher, which may be wrong. This says nothing about other photos.",
};

function photoCards({ checked, evaluated, recall, models, why }, used) {
  const share = (value) => `${fixed(100 * value, 0)} %`;
  const told = checked.known ? used : evaluated;
  const counts = (kind) => `${write.count(told.right)} of ${write.count(told.checked)} ${kind} labels; ${checked.note ? "95 % interval" : "for all photos expect"} ${told.interval.map(share).join(" to ")}`;
  return [
    factList([
      told.checked ? ["right", share(told.right / told.checked), counts(checked.known ? "checked" : "true")] : ["right", "not known", "no label was left to check with"],
      checked.known ? ["average over classes", share(recall), "each class counts the same"] : null,
    ]),
    paragraph(HOW_CHECKED[!checked.known && told.checked ? "evaluated" : checked.kind] || "", checked.note ? ` ${checked.note}` : ""),
    section(
      "model",
      "The model in use",
      paragraph(el("b", {}, used.name), `. ${why}`),
      models.length > 1 && checked.known
        ? el("div", { class: "scroll" }, dataTable("All models that were compared, on the same labels", [{ name: "model learned from", text: true, wrap: true }, { name: "in use", text: true }, { name: "right", write: write.text }, { name: "share", write: write.share }], models.map((one) => [one.name, one.used ? "yes" : "", `${one.right} of ${one.checked}`, one.right / one.checked])))
        : null,
    ),
  ];
}

// Labels that a model has learned from do not measure it.
function photoClasses({ classes, checked }) {
  const kept = (cells) => (checked.known ? cells : [cells[0], cells[3], cells[4]]);
  const columns = [
    { name: "class", text: true }, { name: "right", write: write.text }, { name: "recognised", write: write.share },
    { name: checked.kind === "teacher" ? "labels of its teacher" : "your labels", write: write.count }, { name: "photos predicted", write: write.count },
    { name: "mostly taken for", text: true, write: (value) => value || "" },
  ];
  const rows = classes.map((one) => kept([one.name, one.checked ? `${one.right} of ${one.checked}` : "-", one.checked ? one.right / one.checked : null, one.labels, one.photos, one.taken_for]));
  const caption = `The class that is ${checked.known ? "recognised" : "predicted"} least comes first`;
  return section("classes", "Classes", el("div", { class: "scroll" }, dataTable(caption, kept(columns), rows, { sort: 2, descending: false })));
}

// Who labels equally many of each class sees here what the folder holds.
function shareSection({ classes, unlike_labels }) {
  if (!classes.some((one) => one.shares)) return null;
  const columns = [
    { name: "class", text: true }, { name: "other photos", write: write.share }, { name: "your labels", write: write.share },
    { name: "95 % interval", write: (low, row) => `${write.share(low)} to ${write.share(row[4])}` },
  ];
  const rows = classes.map(({ name, shares }) => [name, shares.estimate, shares.labels, shares.low, shares.high]);
  const differ = unlike_labels ? paragraph(`The photos without a label have other class shares than your labels: ${unlike_labels}.`) : null;
  const table = dataTable("Share of each class, of the photos without a label as estimated", columns, rows, { sort: 1 });
  return section("shares", "How often each class occurs", differ, el("div", { class: "scroll" }, table));
}

function mistakeSection({ mistakes, pictures }) {
  if (!mistakes.length) return null;
  const shown = mistakes.map((one) => photo(one, pictures, `labeled '${one.label}'`, `${one.copy ? "a copy is" : "predicted"} '${one.predicted}'`));
  return section("mistakes", "Labels to look at again", paragraph("Models that did not learn from these labels contradict them, the surest first; or a copy of the photo has another label. A wrong label is worth correcting."), el("ul", { class: "images" }, shown));
}

// Where the model is this sure of every photo, none is called a likely mistake.
const SURE = 0.9;

function unsureSection({ unsure, pictures }) {
  if (!unsure.length) return null;
  const shown = unsure.map((one) => photo(one, pictures, `'${one.predicted}'?`, `${write.share(one.confidence)} sure`));
  const title = unsure[0].confidence < SURE ? "Likely mistakes" : "Photos to look at";
  return section("unsure", title, paragraph("The photos without a label that the model is least sure of. How sure it is, is its own estimate, and often too high."), el("ul", { class: "images" }, shown));
}

function photo({ name }, pictures, first, second) {
  const picture = pictures[name];
  return el("li", {}, picture ? el("img", { class: "photo", src: picture, alt: "", width: 96, height: 96, loading: "lazy" }) : null, el("div", {}, el("b", {}, first)), el("div", {}, second), el("div", { class: "soft" }, name));
}

function nextSection({ checked, evaluated, next, commands }) {
  const command = (words, text) => [paragraph(words), el("pre", {}, el("code", {}, text))];
  return section(
    "next",
    "What to do next",
    next.length ? paragraph("More labels help most for ", el("b", {}, next.map((name) => `'${name}'`).join(" and ")), ".") : paragraph(checked.known ? "No checked label is wrong. " : "", checked.known || evaluated.checked ? "More labels would show more exactly how good the model is." : "Labels that it has not learned from would show how good the model is."),
    command("Label the photos that help most, in the browser:", commands.label),
    command("Or write a list of them:", commands.next),
    command("Predict the class of other photos:", commands.predict),
  );
}
