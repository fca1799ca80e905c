// The page of images to label next.

function nextPage({ model, folder, unlabeled, labeled, picked, pictures, table }) {
  const known = labeled === null ? "It is not known which images have a label already." : `${write.count(labeled)} images have a label and are left out.`;
  return [
    el("header", {}, el("h1", {}, `${write.count(picked.length)} images to label next`), el("p", { class: "soft" }, "Of ", el("code", {}, folder), `, chosen with `, el("code", {}, model), ` among ${write.count(unlabeled)} images without a label. ${known}`)),
    paragraph("Together these images are similar to as many others as possible; with a trained model, to those that it is unsure of, which is judged after its bias is taken out: the confidence below a photo is its own, and often too high. The most useful ones come first, so labels for the first few already help."),
    paragraph("Fill in the column ", el("code", {}, "label"), " of ", el("code", {}, table), ", add its rows to your table of labels, and train again."),
    el("ul", { class: "images large" }, picked.map((image) => nextImage(image, pictures[image.name]))),
  ];
}

function nextImage({ name, predicted, confidence, why }, picture) {
  return el(
    "li",
    {},
    picture ? el("img", { src: picture, alt: "", width: 128, height: 128, loading: "lazy" }) : null,
    el("div", { class: "soft" }, name),
    predicted ? el("div", {}, el("b", {}, `'${predicted}'`), ` ${write.share(confidence)}`) : null,
    el("div", { class: "soft" }, why),
  );
}
