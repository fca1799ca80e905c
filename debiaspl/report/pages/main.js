// From the values in the page to what is seen.

const holder = document.getElementById("values");
const place = document.getElementById("main");

function show(values) {
  redrawn.clear();
  tables = 0;
  const pages = { audit: auditPage, photos: photosPage, next: nextPage, sheet: sheetPage };
  const parts = (pages[values.kind] || runsPage)(values);
  place.replaceChildren(...parts.flat(Infinity).filter((part) => part));
  // A finding may speak of a part that this page does not have.
  place.querySelectorAll(".findings a").forEach((link) => document.getElementById(link.hash.slice(1)) || link.remove());
}

show(JSON.parse(holder.textContent));
