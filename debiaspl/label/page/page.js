"use strict";
// One image after another. A key counts for the image that is on the screen, and for no other: not while an answer is
// on its way, not before the image is drawn, and not when it is held down.

let about = null;
let state = null;
let current = null;
let before = null; // what the image was called until it was taken back
let busy = true;

async function begin() {
  try {
    about = await ask("about");
    by("folder").textContent = `Label ${about.folder}`;
    document.title = `Label ${about.folder}`;
    buildPanel(about.classes, choose);
    await show(about.state);
  } catch (error) {
    complain(error);
  }
}

async function show(next) {
  state = next;
  showCounts(state.counts);
  showProgress(state);
  const image = state.upcoming[0];
  if (!image) return showEnd();
  keepPictures(state.upcoming.map((one) => one.image));
  const found = await picture(image.image);
  // What cannot be read is in the notes by then, and the server has gone on to the next one.
  if (found.reason) {
    say(`${image.name} cannot be read: ${found.reason}. It is left out.`);
    pictures.delete(image.image);
    return show(await ask("state"));
  }
  const shown = by("image");
  shown.src = found.url;
  shown.alt = `${image.name}, the image to be labeled`;
  await shown.decode();
  shown.hidden = false;
  shown.classList.remove("waiting");
  by("card").hidden = true;
  current = image;
  buttons.forEach((button, place) => button.classList.toggle("was", before !== null && about.classes[place] === before.label));
  by("caption").replaceChildren(image.name, ...(before === null ? [] : [" ", el("b", {}, `was ${before.label ?? "skipped"}`)]));
  by("caption").title = image.name;
  busy = false;
}

function showEnd() {
  current = null;
  by("image").hidden = true;
  by("caption").replaceChildren();
  const again = state.skipped ? el("button", { type: "button", click: () => change("again", {}, "The skipped images again.") }, el("span", {}, state.skipped === 1 ? "Show the skipped image again" : `Show the ${count(state.skipped)} skipped images again`)) : null;
  const words = `Every image${state.unreadable ? " that can be read" : ""} ${state.skipped ? "was shown" : "has a label"}`;
  const next = state.counts.filter((labels) => labels > 0).length > 1 ? el("p", {}, "Next: ", el("code", {}, about.train)) : null;
  by("card").replaceChildren(
    ...[el("h2", {}, words), el("p", {}, `${things(state.labeled, "label")} in `, el("code", {}, about.table)), next, again].filter((part) => part),
  );
  by("card").hidden = false;
  say(words);
  busy = false;
}

// Every change goes the same way: ask, and show what is true then.
async function change(path, body, words) {
  if (busy) return;
  busy = true;
  by("image").classList.add("waiting");
  try {
    const next = await ask(path, body);
    by("alert").hidden = true;
    say(words);
    await show(next);
  } catch (error) {
    await recover(error);
  }
}

async function recover(error) {
  complain(error);
  try {
    if (error instanceof Refused) await show(await ask("state"));
  } catch (second) {
    complain(second);
  }
  by("image").classList.remove("waiting");
  busy = false;
}

function choose(place, event) {
  if (event && event.detail > 0) by("stage").focus();
  if (busy || current === null || place >= about.classes.length) return;
  before = null;
  clearWord();
  change("answer", { image: current.image, class: place }, `${about.classes[place]}.`);
}

function skip() {
  if (busy || current === null) return;
  before = null;
  change("answer", { image: current.image, class: null }, "Skipped.");
}

function undo() {
  if (busy || !state.last) return;
  const last = state.last;
  before = last;
  change("undo", {}, `Taken back: ${last.label ?? "skipped"}, ${last.name}.`);
}

function lookAgain(one) {
  if (busy) return;
  by("stage").focus();
  before = { name: one.name, label: one.label };
  change("look", { image: one.image }, `Once more: ${one.name}. Skip keeps ${one.label}.`);
}

function say(words) {
  by("said").textContent = words;
}

function complain(error) {
  const lost = `debiaspl label does not answer any more. Every answer is saved${about ? ` in ${about.table}` : ""}. Start it again and open the address it prints.`;
  by("alert").textContent = error instanceof Refused ? error.message : lost;
  by("alert").hidden = false;
}

function clearWord() {
  by("word").value = "";
  findClasses(about.classes, "");
}

// Digits by their place on the keyboard, because on some they need Shift; letters too, where they are not Latin ones.
function keyOf(event) {
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  if (digit && (event.code.startsWith("Digit") || event.key === digit[1])) return digit[1];
  if (/^[a-z0-9]$/i.test(event.key)) return event.key.toLowerCase();
  const letter = /^Key([A-Z])$/.exec(event.code);
  return letter && event.key.length === 1 ? letter[1].toLowerCase() : event.key;
}

document.addEventListener("keydown", (event) => {
  if (!about || event.isComposing) return;
  const [key, typing, command] = [keyOf(event), event.target === by("word"), event.ctrlKey || event.metaKey];
  const onButton = event.target instanceof HTMLButtonElement || event.target.tagName === "SUMMARY";
  if (typing) {
    if (key !== "Escape" && key !== "Enter") return;
    const best = findClasses(about.classes, by("word").value);
    event.preventDefault();
    if (key === "Enter" && best !== undefined && !event.repeat) choose(best);
    if (key === "Escape") clearWord();
    by("stage").focus();
    return;
  }
  if (event.altKey || (command && key !== "z")) return;
  let act = null;
  if ((command && key === "z") || key === "Backspace" || key === "ArrowLeft") act = undo;
  else if (key === "ArrowRight" || (key === " " && !onButton)) act = skip;
  else if (key === "/" && !by("find").hidden) act = () => by("word").focus();
  else if (KEYS.includes(key) && KEYS.indexOf(key) < about.classes.length) act = () => choose(KEYS.indexOf(key));
  if (!act) return;
  event.preventDefault();
  if (!event.repeat) act();
});

by("word").addEventListener("input", () => findClasses(about.classes, by("word").value));
for (const [id, act] of [["skip", skip], ["undo", undo]]) {
  by(id).addEventListener("click", (event) => {
    if (event.detail > 0) by("stage").focus();
    act();
  });
}

by("doubts").addEventListener("toggle", () => state && showNotes(state));

begin();
