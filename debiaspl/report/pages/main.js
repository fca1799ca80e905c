// From the values in the page to what is seen; and, while a run is watched, again when it has gone on.

const EVERY = 2000;
const holder = document.getElementById("values");
const place = document.getElementById("main");

function show(values) {
  redrawn.clear();
  tables = 0;
  const pages = { audit: auditPage, next: nextPage, sheet: sheetPage };
  const parts = (pages[values.kind] || runsPage)(values);
  place.replaceChildren(...parts.flat(Infinity).filter((part) => part));
  // A finding may speak of a part that this page does not have.
  place.querySelectorAll(".findings a").forEach((link) => document.getElementById(link.hash.slice(1)) || link.remove());
}

// What a reader has opened, typed or chosen must not close under his hands: the page waits until he is done.
function busy() {
  const active = document.activeElement;
  return document.hidden || (active && ["INPUT", "SELECT", "CANVAS"].includes(active.tagName)) || place.querySelector("details[open]");
}

async function follow(mark) {
  let next = mark;
  try {
    const answer = await fetch("values.json", { headers: next ? { "If-None-Match": next } : {}, cache: "no-store" });
    if (answer.status === 200 && !busy()) {
      const at = window.scrollY;
      show(await answer.json());
      window.scrollTo(0, at);
      next = answer.headers.get("ETag");
    }
    say("");
  } catch {
    say(" The server does not answer. debiaspl watch has ended.");
  }
  setTimeout(() => follow(next), EVERY);
}

function say(words) {
  const state = document.getElementById("state");
  if (!state) return;
  const note = state.querySelector(".note") || state.appendChild(el("span", { class: "note", role: "status" }));
  note.textContent = words;
}

show(JSON.parse(holder.textContent));
if (holder.dataset.live === "true") setTimeout(() => follow(null), EVERY);
