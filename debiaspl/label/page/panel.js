"use strict";
// The classes with their keys and counts, and what stands around the image.

const KEYS = [..."1234567890abcdefghijklmnopqrstuvwxyz"];
const MANY = 12;

let buttons = [];

function buildPanel(classes, choose) {
  buttons = classes.map((name, place) => {
    const key = KEYS[place];
    return el(
      "button",
      { type: "button", "aria-keyshortcuts": key, click: (event) => choose(place, event) },
      key ? el("kbd", { "aria-hidden": "true" }, key.toUpperCase()) : el("span"),
      el("span", { class: "name", dir: "auto" }, name),
      el("span", { class: "count" }),
    );
  });
  by("classes").replaceChildren(...buttons.map((button) => el("li", {}, button)));
  by("find").hidden = classes.length <= MANY;
}

function showCounts(counts) {
  const most = Math.max(...counts, 1);
  counts.forEach((labels, place) => {
    const shown = count(labels);
    const [button, cell] = [buttons[place], buttons[place].lastChild];
    // Of a thousand classes one has changed: the others are left alone.
    if (cell.firstChild && cell.firstChild.textContent === shown && button.most === most) return;
    button.most = most;
    cell.replaceChildren(shown, el("span", { class: "unseen" }, labels === 1 ? " label" : " labels"));
    button.classList.toggle("none", labels === 0);
    button.style.setProperty("--share", labels / most);
  });
}

function showProgress(state) {
  const [seen, all] = [state.labeled + state.skipped, state.images - state.unreadable];
  by("progress").replaceChildren(el("b", {}, count(state.labeled)), ` of ${count(all)} labeled`, state.skipped ? `, ${count(state.skipped)} skipped` : "");
  by("bar").setAttribute("aria-valuemax", all);
  by("bar").setAttribute("aria-valuenow", seen);
  by("bar").firstChild.style.width = `${Math.min((100 * seen) / Math.max(all, 1), 100)}%`;
  by("undo").disabled = !state.last;
  by("last").replaceChildren(...(state.last ? ["Last: ", el("b", { dir: "auto" }, state.last.label ?? "skipped"), ` (${state.last.name})`] : []));
  showNotes(state);
}

function showNotes(state) {
  const empty = state.counts.filter((labels) => labels === 0).length;
  const lines = state.notes.map((note) => el("p", {}, note));
  if (state.labeled && empty) lines.push(el("p", {}, empty === 1 ? "One class has no label yet." : `${count(empty)} classes have no label yet.`));
  // Of two labels of a class one can be learned from and the other held back.
  if (state.counts.every((labels) => labels > 1)) lines.push(el("p", {}, "Enough labels to start training: ", el("code", {}, about.train)));
  if (state.labeled && about.install) lines.push(el("p", {}, "With a pretrained network it learns more from few labels: ", el("code", {}, about.install)));
  if (state.standing) lines.push(...standingLines(state.standing));
  const open = by("notes").querySelector("details[open]") !== null;
  if (state.unreadable) {
    const named = state.unreadable_named.map((file) => el("li", {}, `${file.name}: ${file.reason}`));
    const more = state.unreadable - named.length;
    if (more) named.push(el("li", {}, `and ${count(more)} more`));
    lines.push(el("details", { open }, el("summary", {}, `${things(state.unreadable, "file")} cannot be labeled`), el("ul", {}, named)));
  }
  by("notes").replaceChildren(...lines);
  showDoubts(state.standing ? state.standing.doubts : []);
}

// What the labels are worth: computed after every ten of them.
function standingLines({ labels, accuracy, low, high, gain, few }) {
  const percent = (share) => Math.round(100 * share);
  const lines = [`With ${things(labels, "label")} about ${percent(accuracy)} % of the other images would be right (${percent(low)} to ${percent(high)} %). Ten more labels: about +${(100 * gain).toFixed(1)} points.`];
  if (few.length) lines.push(`Too few labels: ${few.slice(0, 5).join(", ")}${few.length > 5 ? ` and ${count(few.length - 5)} more` : ""}.`);
  return lines.map((line) => el("p", {}, line));
}

// Labels that look wrong, as small pictures; a click shows the image once more.
const small = new Map();

function showDoubts(doubts) {
  const [card, list] = [by("doubts"), by("doubts").querySelector("ul")];
  card.hidden = doubts.length === 0;
  card.querySelector("summary").textContent = `${things(doubts.length, "label")} to look at again`;
  if (card.hidden || !card.open) return;
  list.replaceChildren(...doubts.map((one) => {
    const shown = el("img", { alt: "" });
    if (!small.has(one.image)) small.set(one.image, fetchPicture(one.image));
    small.get(one.image).then((found) => found.url && (shown.src = found.url), () => small.delete(one.image));
    const words = one.twin ? `${one.label}, and a copy is ${one.other}` : `${one.label}? More like ${one.other}`;
    return el("li", {}, el("button", { type: "button", title: one.name, click: () => lookAgain(one) }, shown, el("span", { dir: "auto" }, words)));
  }));
}

// Classes whose names hold the word; those that begin with it first in line for Enter.
function findClasses(classes, word) {
  const wanted = word.trim().toLowerCase();
  const places = classes.map((_, place) => place).filter((place) => classes[place].toLowerCase().includes(wanted));
  buttons.forEach((button, place) => (button.parentElement.hidden = !places.includes(place)));
  const best = places.find((place) => classes[place].toLowerCase().startsWith(wanted)) ?? places[0];
  buttons.forEach((button, place) => button.classList.toggle("chosen", wanted !== "" && place === best));
  return wanted === "" ? undefined : best;
}
