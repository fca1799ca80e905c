// What debiasing would change, images to look at, and what the words mean.

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
