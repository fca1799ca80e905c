// What debiasing would change, images to look at, classes that look alike, and what the words mean.

function changeSection(values, names) {
  const { change, picks, pictures } = values;
  if (!change) {
    return section(
      "change",
      "What debiasing would change",
      paragraph("This cannot be computed from labels alone: it needs the scores of the other classes. Save the probabilities or logits of every class."),
    );
  }
  const rows = change.moves[0].map((from, place) => [names[from], names[change.moves[1][place]], change.moves[2][place]]);
  const columns = [{ name: "from", text: true }, { name: "to", text: true }, { name: "images", write: write.count }];
  const before = values.facts;
  return section(
    "change",
    "What debiasing would change",
    paragraph("Labels from ", el("code", {}, "softmax(logits − strength · log(prior))"), `, with the mean of the raw probabilities as the prior and a strength of ${change.strength}. This removes the bias of the model towards some classes. If the images themselves are imbalanced, even shares are not the goal.`),
    factList([
      ["labels changed", write.count(change.changed), write.share(change.changed / before.predictions)],
      [`off the ${change.distance_from}`, write.share(change.distance), `was ${write.share(before.distance)}`],
      ["almost never predicted", write.count(change.almost_none), `was ${write.count(before.almost_none)}`],
      ["effective classes", write.ratio(change.effective_classes), `was ${write.ratio(before.effective_classes)}`],
      ["never predicted", write.count(change.never_predicted), `was ${write.count(before.never_predicted)}`],
      change.accuracy === null ? null : ["accuracy", write.share(change.accuracy), `was ${write.share(before.accuracy)}`],
    ]),
    change.changed ? null : paragraph("No label would change, so there are no images to show."),
    rows.length ? dataTable(`The largest ${write.count(rows.length)} of ${write.count(change.all_moves)} moves from class to class`, columns, rows, { sort: 2, page: 10, searchLabel: "Search moves" }) : null,
    picks.changed.length ? el("h3", {}, `${picks.changed.length} of the ${write.count(change.changed)} images that change class, the most confident first`) : null,
    imageList(picks.changed, names, pictures, (image) => [`'${names[image.label]}' → `, el("b", {}, `'${names[image.new]}'`), ` ${write.share(image.new_confidence)}`]),
  );
}

function uncertainSection({ picks, pictures, classes }, names) {
  const favoured = names[picks.favoured];
  const sure = (image) => [`${write.share(image.confidence)} sure`];
  const parts = [];
  if (picks.uncertain.length) {
    parts.push(
      section("uncertain", `The least certain images called '${favoured}'`, paragraph(`'${favoured}' has ${write.times(classes.times_even[picks.favoured])} an even share. ${picks.holds ? "Labels for a few of these tell the model most." : "This is not significant."}`), imageList(picks.uncertain, names, pictures, sure)),
    );
  }
  if (picks.mistaken.length) {
    parts.push(
      section("mistaken", "Sure, and wrong", paragraph("Mistakes with the highest confidence. Some of them may be wrong labels in the data."), imageList(picks.mistaken, names, pictures, (image) => [`called '${names[image.label]}', ${write.share(image.confidence)} sure`])),
    );
  }
  return parts;
}

function imageList(images, names, pictures, say) {
  return el(
    "ul",
    { class: "images" },
    images.map((image) => {
      const picture = pictures[image.name];
      const truth = image.truth === null ? null : el("div", { class: "soft" }, `truth '${names[image.truth]}'`);
      return el("li", {}, picture ? el("img", { src: picture, alt: "", width: 64, height: 64 }) : null, el("div", { class: "soft" }, image.name), el("div", {}, say(image)), truth);
    }),
  );
}

function alikeSection({ alike }, names) {
  if (!alike) return [];
  const whose = alike.by_truth ? "true" : "predicted";
  const part = (rows, caption) => {
    const dots = rows.map((row) => ({
      name: names[row.class],
      dots: row.others.map((other, place) => ({ value: row.similarity[place], colour: "blue", title: `${names[other]}: ${row.similarity[place].toFixed(3)}` })),
    }));
    const columns = [{ name: "class", text: true }, { name: "mean similarity", write: write.number }, { name: "closest classes", text: true, wrap: true }];
    const table = rows.map((row) => [names[row.class], row.mean, row.others.map((other, place) => `${names[other]} ${row.similarity[place].toFixed(2)}`).join(", ")]);
    const all = [...alike.most, ...alike.least].flatMap((row) => row.similarity);
    const drawn = dotChart(dots, { low: Math.floor(10 * Math.min(...all)) / 10, high: 1, step: 30, axis: "cosine similarity", write: write.number, label: caption });
    return chart(caption, drawn, dataTable(caption, columns, table));
  };
  return section(
    "alike",
    "Which classes are similar",
    paragraph(`Cosine similarity of the mean embedding of a class (of its ${whose} images) to those of the nine classes closest to it. Classes that are close to others are confused with them.`),
    alike.without.length ? paragraph(`${write.count(alike.without.length)} classes have no images, and no mean.`) : null,
    el("div", { class: "pair" }, part(alike.most, "The most predicted classes"), part(alike.least, "The least predicted classes")),
  );
}

function definitions({ command }) {
  const terms = [
    ["Off the shares", "predictions that would have to change class to match the true shares, or even ones where the class of an image is not known (total variation distance)."],
    ["Almost never predicted", "a class with less than a tenth of the predictions that it would have by those shares."],
    ["Effective classes", "exp(entropy of the shares): the number of evenly used classes that would be as diverse."],
    ["Even share", "all predictions divided by the number of classes."],
    ["Precision, recall", "precision: the share of the predictions of a class that are right; recall: the share of the images of a class that are found."],
    ["Calibration error", "the mean gap between confidence and accuracy over ten bins of confidence, weighted by their size."],
    ["Interval", "Wilson’s 95 % interval of a share."],
  ];
  return section(
    "words",
    "Terms",
    el("dl", {}, terms.map(([term, meaning]) => [el("dt", {}, el("b", {}, term)), el("dd", {}, meaning)])),
    command ? paragraph("Made with ", el("code", {}, command)) : null,
  );
}
