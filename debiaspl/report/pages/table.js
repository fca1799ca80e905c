// Tables that are sorted by a press on their head and searched by a word; a thousand rows are shown a page at a time.

const PAGE = 25;
let tables = 0;

// columns: {name, write(value, row), text: true for words (wrap: of several lines)}; rows: arrays of raw values, in the
// order of the columns; what a row holds beyond them is for `write`.
function dataTable(caption, columns, rows, options = {}) {
  const state = { column: options.sort ?? null, descending: options.descending ?? true, word: "", shown: options.page ?? PAGE };
  const id = `table-${(tables += 1)}`;
  const body = el("tbody");
  const status = el("p", { class: "status", role: "status" });
  const more = el("button", { type: "button", class: "more", click: () => show(state.shown + 4 * PAGE) }, "Show more");
  const heads = columns.map((column, place) =>
    el("th", { scope: "col", class: column.text ? "text" : null }, el("button", { type: "button", click: () => sortBy(place) }, column.name)),
  );

  function show(count) {
    state.shown = count;
    refresh();
  }

  function sortBy(place) {
    state.descending = state.column === place ? !state.descending : !columns[place].text;
    state.column = place;
    refresh();
  }

  function chosen() {
    const word = state.word.toLocaleLowerCase();
    const found = word ? rows.filter((row) => columns.some((column, place) => column.text && String(row[place]).toLocaleLowerCase().includes(word))) : [...rows];
    if (state.column !== null) found.sort((one, other) => order(one[state.column], other[state.column], state.descending));
    return found;
  }

  function refresh() {
    const found = chosen();
    body.replaceChildren(...found.slice(0, state.shown).map((row) => line(columns, row)));
    heads.forEach((head, place) => {
      if (place === state.column) head.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const visible = Math.min(found.length, state.shown);
    status.textContent = `${write.count(visible)} of ${write.count(found.length)} rows${state.word ? ` with “${state.word}”` : ""}`;
    more.hidden = found.length <= state.shown;
    status.hidden = rows.length <= 12 && !state.word;
  }

  const search = el("input", { id, type: "search", autocomplete: "off", input: () => ((state.word = search.value.trim()), refresh()) });
  const tools = rows.length > 12 ? el("div", { class: "tools" }, el("label", { for: id }, options.searchLabel ?? "Search", search)) : null;
  refresh();
  return el(
    "div",
    { class: "data" },
    tools,
    el("div", { class: "scroll" }, el("table", {}, el("caption", {}, el("span", {}, caption)), el("thead", {}, el("tr", {}, heads)), body)),
    status,
    more,
  );
}

function line(columns, row) {
  const cells = columns.map((column, place) => {
    const attributes = { class: column.text ? `text${column.wrap ? " wrap" : ""}` : null };
    const content = column.write ? column.write(row[place], row) : write.text(row[place]);
    return place === 0 ? el("th", { scope: "row", ...attributes }, content) : el("td", attributes, content);
  });
  return el("tr", {}, cells);
}

// What is missing comes last, whichever way the rest is sorted.
function order(one, other, descending) {
  const missing = (value) => value === null || value === undefined;
  if (missing(one) || missing(other)) return missing(one) - missing(other);
  const difference = typeof one === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
  return descending ? -difference : difference;
}
