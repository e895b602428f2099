"use strict";
// The table: rows, filters, order. A row of the data is a list in the order of COLUMNS.
const COLUMNS = [
  { name: "model" }, { name: "target" }, { name: "status" }, { name: "expected", hidden: true }, { name: "earlier" },
  { name: "why" }, { name: "integer", number: String }, { name: "float", number: String },
  { name: "kept", number: String }, ...measured("file", inBytes), ...measured("arena", inBytes), ...measured("run time", inSeconds),
  { name: "CPU s", number: seconds }, { name: "peak MiB", number: (v) => (v / 1048576).toFixed(0) },
];
const [ID, TARGET, STATUS, EXPECTED, EARLIER, WHY, , FLOAT, KEPT, FILE, , , ARENA, , , RUN] = COLUMNS.keys();
const MEASURES = [[FILE, "File", inBytes], [ARENA, "Arena", inBytes], [RUN, "Run time", inSeconds]];
const STEP = 200;  // rows that are added at a time
const by = (id) => document.getElementById(id);
const earlierNames = JSON.parse(by("earlier").textContent);
if (!earlierNames.length) COLUMNS[EARLIER].hidden = true;
const prefix = JSON.parse(by("prefix").textContent);
const rows = [];
const order = { column: null, down: false };
let shown = [];    // rows that the filters let pass, in order
let drawn = 0;     // how many of them are in the table
let current = -1;  // the one that is open

// Three columns of something that is measured of the original and of the converted model: both, for sorting alone, and
// how many times as much the latter is, of which the table shows all.
function measured(name, words) {
  const both = (ratio, cells, c) => [times(ratio), make("small", {}, `${words(cells[c - 2], cells[c - 1])} → ${words(cells[c - 1])}`)];
  return [{ name: `${name} before`, number: words, aside: true }, { name: `${name} after`, number: words, aside: true }, { name, number: both }];
}

// Bytes and seconds, without the unit where `other` has the same.
function inUnits(value, other, units) {
  const scale = (v) => units.findLastIndex(([, least]) => v >= least * 0.9995);
  const i = Math.max(scale(value), 0), [unit, least] = units[i];
  const digits = value / least;
  return `${Number(digits.toPrecision(digits < 100 ? 2 : 3)).toLocaleString("en")}${other !== undefined && Math.max(scale(other), 0) === i ? "" : ` ${unit}`}`;
}
function inBytes(value, other) { return inUnits(value, other, [["B", 1], ["KiB", 1024], ["MiB", 1048576], ["GiB", 1073741824]]); }
function inSeconds(value, other) { return inUnits(value, other, [["µs", 1e-6], ["ms", 1e-3], ["s", 1]]); }
function times(ratio) { return `×${Number(ratio.toPrecision(ratio < 10 ? 2 : 3))}`; }
function grouped(value) { return value.toLocaleString("en"); }
function shortened(id) { return id.startsWith(prefix) ? id.slice(prefix.length) : id; }
function seconds(value) { return value.toFixed(value < 10 ? 2 : 1); }

// An element: attributes, and children that are elements or text.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

// The columns that nothing is known of are left out.
function readRows() {
  const lines = by("data").textContent.trim().split("\n");
  for (let i = 0; i + 1 < lines.length; i += 2) {
    const cells = JSON.parse(lines[i]);
    rows.push({ cells, detail: lines[i + 1], text: [cells[ID], cells[TARGET], cells[STATUS], cells[WHY]].join(" ").toLowerCase() });
  }
  for (const [c] of MEASURES) {
    const known = rows.some((row) => row.cells[c + 2] !== null);
    for (const column of COLUMNS.slice(c, c + 3)) column.hidden = !known;
  }
}

function passes(row, filter) {
  const cells = row.cells;
  if (filter.target && cells[TARGET] !== filter.target) return false;
  if (filter.status && cells[STATUS] !== filter.status) return false;
  if (filter.which === "unexpected" && cells[EXPECTED]) return false;
  if (filter.which === "float" && !cells[FLOAT]) return false;
  if (filter.which === "kept" && !cells[KEPT]) return false;
  if (filter.which === "changed" && cells[EARLIER] === cells[STATUS]) return false;
  return filter.words.every((word) => word.startsWith("-") && word.length > 1 ? !row.text.includes(word.slice(1)) : row.text.includes(word));
}

// What is not known comes last, whichever way.
function compareRows(a, b) {
  const x = a.cells[order.column], y = b.cells[order.column];
  const none = (v) => v === null || v === "";
  if (none(x) || none(y)) return none(x) - none(y);
  const less = typeof x === "number" ? x - y : x < y ? -1 : x > y ? 1 : 0;
  return order.down ? -less : less;
}

function update() {
  const words = by("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const filter = { words, target: by("target").value, status: by("status").value, which: by("which").value };
  shown = rows.filter((row) => passes(row, filter));
  if (order.column !== null) shown.sort(compareRows);
  by("table").tBodies[0].replaceChildren();
  drawn = 0;
  draw(STEP);
  plotCosts(filter);
  by("count").textContent = shown.length === rows.length ? `${grouped(rows.length)} results` : `${grouped(shown.length)} of ${grouped(rows.length)} results`;
}

function draw(count) {
  const part = document.createDocumentFragment();
  const end = Math.min(drawn + count, shown.length);
  for (let i = drawn; i < end; i++) part.append(drawRow(shown[i], i));
  drawn = end;
  by("table").tBodies[0].append(part);
  const left = shown.length - drawn;
  by("next").hidden = by("all").hidden = !left;
  by("next").textContent = `Show ${Math.min(STEP, left)} more`;
  by("all").textContent = `Show all ${grouped(shown.length)}`;
}

function drawRow(row, i) {
  const line = document.createElement("tr");
  COLUMNS.forEach((column, c) => {
    if (column.hidden || column.aside) return;
    const value = row.cells[c];
    const cell = line.insertCell();
    if (value === null || value === "") {
      cell.className = "empty";
    } else if (c === ID) {
      cell.className = "model";
      cell.append(make("button", { type: "button", class: "plain", "data-row": i }, shortened(value)));
    } else if (c === STATUS) {
      cell.className = row.cells[EXPECTED] ? value === "ok" ? "good" : "dim" : "bad";
      cell.textContent = row.cells[EXPECTED] ? value : `${value} (unexpected)`;
    } else if (c === WHY) {
      cell.className = "why";
      cell.append(make("span", { title: value }, value));
    } else if (column.number) {
      cell.className = "number";
      cell.dataset.name = column.name;
      cell.append(...[column.number(value, row.cells, c)].flat());
    } else if (c === EARLIER) {
      cell.className = [row.cells[STATUS], "new"].includes(value) ? "dim" : "changed";
      cell.textContent = value === "new" ? value : `was ${value}`;
    } else {
      cell.textContent = value;
    }
  });
  return line;
}

function sortBy(column, down) {
  order.column = column;
  order.down = down;
  for (const head of by("table").tHead.rows[0].cells) {
    const own = Number(head.dataset.column) === column;
    if (own) head.setAttribute("aria-sort", down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
  by("sort").value = column === null ? "" : `${column} ${down ? 1 : 0}`;
  update();
}

function drawHead() {
  by("sort").append(make("option", { value: "" }, "order of the sweep"));
  COLUMNS.forEach((column, c) => {
    if (column.hidden) return;
    for (const down of [0, 1]) by("sort").append(make("option", { value: `${c} ${down}` }, `${column.name} ${down ? "↓" : "↑"}`));
    if (column.aside) return;
    const button = make("button", { type: "button", class: "plain" }, column.name);
    // Numbers begin with the largest; a third press gives the order of the sweep back.
    button.addEventListener("click", () => {
      const first = Boolean(column.number);
      if (order.column !== c) sortBy(c, first);
      else if (order.down === first) sortBy(c, !first);
      else sortBy(null, false);
    });
    by("table").tHead.rows[0].append(make("th", { scope: "col", "data-column": c, class: column.number ? "number" : undefined }, button));
  });
}

function wait(action, milliseconds) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(action, milliseconds); };
}

function moveFocus(event) {
  const buttons = [...by("table").querySelectorAll("button[data-row]")];
  const next = buttons.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
  if (!document.activeElement.dataset.row || !buttons[next]) return;
  event.preventDefault();
  buttons[next].focus();
}

function start() {
  readRows();
  drawHead();
  update();
  by("text").addEventListener("input", wait(update, 120));
  for (const id of ["target", "status", "which"]) by(id).addEventListener("change", update);
  by("sort").addEventListener("change", () => {
    const [column, down] = by("sort").value.split(" ");
    if (down === undefined) sortBy(null, false);
    else sortBy(Number(column), down === "1");
  });
  by("filters").addEventListener("submit", (event) => event.preventDefault());
  by("filters").addEventListener("reset", () => setTimeout(update));
  by("next").addEventListener("click", () => draw(STEP));
  by("all").addEventListener("click", () => draw(shown.length));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.row) openRow(Number(button.dataset.row));
    if (button.dataset.open) openKey(...JSON.parse(button.dataset.open));
    if (button.dataset.status) {
      by("filters").reset();
      by("target").value = button.dataset.target;
      by("status").value = button.dataset.status;
      update();
      by("results").scrollIntoView();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (by("detail").open) {
      if (event.key === "ArrowLeft") openRow(current - 1);
      if (event.key === "ArrowRight") openRow(current + 1);
    } else if (event.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) {
      event.preventDefault();
      by("text").focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      moveFocus(event);
    }
  });
  by("before").addEventListener("click", () => openRow(current - 1));
  by("after").addEventListener("click", () => openRow(current + 1));
  by("close").addEventListener("click", () => by("detail").close());
  by("detail").addEventListener("click", (event) => { if (event.target === by("detail")) by("detail").close(); });
  by("detail").addEventListener("close", closed);
  window.addEventListener("hashchange", openHash);
  openHash();
}
