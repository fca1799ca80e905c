// Predictions as small pictures, class by class.

function sheetPage({ run, folder, images, classes, pictures }) {
  return [
    el("header", {}, el("h1", {}, `${write.count(images)} predictions`), el("p", { class: "soft" }, "Of ", el("code", {}, folder), ", with the model of ", el("code", {}, run), ". Within each class, the most confident ones come first.")),
    dataTable("How often each class is predicted", [{ name: "class", text: true }, { name: "photos", write: write.count }, { name: "mean confidence", write: write.share }], classes.map((one) => [one.name, one.count, one.confidence]), { sort: 1 }),
    classes.filter((one) => one.count).map((one, place) => sheetSection(one, place, pictures)),
  ];
}

function sheetSection({ name, count, shown }, place, pictures) {
  const some = shown.length < count ? `${write.count(shown.length)} of ${write.count(count)} photos, spread evenly from the most to the least confident` : `${write.count(count)} ${count === 1 ? "photo" : "photos, from the most to the least confident"}`;
  return section(`class-${place}`, `'${name}'`, paragraph(`${some}.`), el("ul", { class: "images" }, shown.map((image) => sheetImage(image, pictures[image.name]))));
}

function sheetImage({ name, confidence }, picture) {
  return el(
    "li",
    {},
    picture ? el("img", { class: "photo", src: picture, alt: "", width: 96, height: 96, loading: "lazy" }) : null,
    el("div", {}, write.share(confidence)),
    el("div", { class: "soft" }, name),
  );
}
