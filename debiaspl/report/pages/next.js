// The page of images to label next.

function nextPage({ run, folder, unlabeled, labeled, picked, pictures, table }) {
  const known = labeled === null ? "Which images have a label already is not known." : `${write.count(labeled)} images have a label and are left out.`;
  return [
    el("header", {}, el("h1", {}, `${write.count(picked.length)} images to label next`), el("p", { class: "soft" }, "Of ", el("code", {}, folder), `, picked with the model of `, el("code", {}, run), `. ${write.count(unlabeled)} images without a label were looked at. ${known}`)),
    paragraph("Of each class, these are among the images that the model is least sure of. They are spread over the classes and over what the images show, so that no two are alike. The most useful come first; labels for the first few help already."),
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
    el("div", {}, el("b", {}, `'${predicted}'`), ` ${write.share(confidence)}`),
    el("div", { class: "soft" }, why),
  );
}
