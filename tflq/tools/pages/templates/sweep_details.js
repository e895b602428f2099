// The details of one result, in a dialog. `#id target` in the address opens it.
const SVG = "http://www.w3.org/2000/svg";

function openRow(i) {
  if (i < 0 || i >= shown.length) return;
  if (i >= drawn) draw(i + 1 - drawn);
  current = i;
  by("before").disabled = i === 0;
  by("after").disabled = i === shown.length - 1;
  const { cells, detail } = shown[i];
  by("name").textContent = `${shortened(cells[ID])} [${cells[TARGET]}]`;
  by("body").replaceChildren(...details(cells, JSON.parse(detail)));
  by("detail").scrollTop = 0;
  if (!by("detail").open) by("detail").showModal();
  history.replaceState(null, "", `#${encodeURIComponent(cells[ID])} ${encodeURIComponent(cells[TARGET])}`);
}

// Opens what has this key, whether the filters let it pass or not.
function openKey(id, target) {
  const own = (row) => row.cells[ID] === id && row.cells[TARGET] === target;
  if (!shown.some(own)) {
    by("filters").reset();
    update();
  }
  openRow(shown.findIndex(own));
}

function openHash() {
  const parts = location.hash.slice(1).replace("%20", " ").split(" ");
  if (parts.length === 2) openKey(...parts.map(decodeURIComponent));
}

function closed() {
  history.replaceState(null, "", location.pathname + location.search);
  by("table").querySelector(`button[data-row="${current}"]`)?.focus();
}

function details(cells, found) {
  const parts = [statusOf(cells, found), earlierOf(found), operatorsOf(found), layersOf(found), outputsOf(found),
    timesOf(cells, found), countsOf(found), listOf("Warnings", found.warnings), listOf("Numeric exceptions", found.exceptions), logOf(found)];
  return parts.flat().filter(Boolean);
}

function terms(pairs) {
  return make("dl", {}, pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function table(caption, head, lines) {
  const number = (cell) => typeof cell === "number";
  const cellOf = (cell) => make("td", { class: number(cell) ? "number" : undefined }, number(cell) ? grouped(cell) : cell ?? "");
  const numbers = head.map((_, c) => lines.length > 0 && lines.every((line) => number(line[c]) || line[c] === ""));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, make("table", {},
    make("thead", {}, make("tr", {}, head.map((name, c) => make("th", { scope: "col", class: numbers[c] ? "number" : undefined }, name)))),
    make("tbody", {}, lines.map((line) => make("tr", {}, line.map(cellOf))))));
}

function section(title, ...children) { return [make("h3", {}, title), ...children]; }

function statusOf(cells, found) {
  const kind = cells[EXPECTED] ? "good" : "bad";
  const said = found.expectation ? `${found.expectation.status} expected: ${found.expectation.reason}` : "";
  const reasons = (found.reasons || []).map((r) => make("li", {}, [r.opcode && `${r.opcode}: `, r.what, r.tensor && ` (tensor '${r.tensor}')`, r.remedy && `. ${r.remedy}`].filter(Boolean).join("")));
  return [
    make("p", {}, make("span", { class: `verdict ${kind}` }, cells[STATUS]), cells[EXPECTED] ? "" : " (unexpected)", cells[WHY] ? `: ${cells[WHY]}` : ""),
    reasons.length > 1 ? make("ul", {}, reasons) : null,
    terms([["expectation", said], ["model", prefix && cells[ID]], ["tries", (found.tries || []).join(", ")], ["file", found.model.place], ["source", found.model.source],
      ["SHA-256", found.model.sha256 && make("code", {}, found.model.sha256)],
      ["converted", found.converted && make("code", {}, found.converted.sha256)],
      ["artifacts", linked(found.artifacts)],
      ["static memory", found.static && (found.static.error || (found.static.kept ? "kept" : "not kept"))]]),
  ];
}

// A link to what a failure left, next to the page. Nothing else that a result says becomes an address.
function linked(place) {
  return /^artifacts\/[^/\\]*[^/\\.][^/\\]*$/.test(place) ? make("a", { href: encodeURI(place) + "/" }, place) : place;
}

function earlierOf(found) {
  if (!found.earlier) return null;
  const all = [["this one", found.now], ...earlierNames.map((name, i) => [name, found.earlier[i]])];
  const lines = all.map(([name, e]) => e ? [name, e.status, e.why || "", (e.numbers || []).join("; "), e.converted ?? "", e.seconds === undefined ? "" : `${e.seconds.toFixed(3)} s`,
    e.sha256 === found.now.sha256 ? "the same" : "another"] : [name, "not there", "", "", "", "", ""]);
  return section("Earlier sweeps", table("Earlier sweeps", ["sweep", "status", "why", "differences", "converted bytes", "read, convert", "model"], lines));
}

function operatorsOf(found) {
  const paths = Object.entries(found.operators?.paths || {});
  if (!paths.length) return null;
  const kinds = ["integer", "float", "kept"];
  const lines = paths.map(([opcode, counts]) => [opcode, ...kinds.map((k) => counts[k] || 0), meter(kinds, counts)]);
  const reasons = Object.entries(found.operators.reasons || {}).map(([why, n]) => make("li", {}, `${n} × ${why}`));
  return section("Operators by path", table("Operators by path", ["operator", ...kinds, ""], lines), reasons.length ? make("ul", {}, reasons) : null);
}

function meter(kinds, counts) {
  const total = kinds.reduce((sum, k) => sum + (counts[k] || 0), 0);
  const image = drawing(100, 10, "", { class: "meter", preserveAspectRatio: "none", "aria-hidden": "true" });
  let x = 0;
  for (const kind of kinds) {
    const width = 100 * (counts[kind] || 0) / total;
    if (width) image.append(shape("rect", { x, y: 0, width, height: 10, class: kind }));
    x += width;
  }
  return image;
}

function shape(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

function drawing(width, height, label, attributes) {
  return shape("svg", { viewBox: `0 0 ${width} ${height}`, ...(label ? { role: "img", "aria-label": label } : {}), ...attributes });
}

const how = (d) => d.problem || (d.differing ? `${grouped(d.differing)} of ${grouped(d.elements)}, up to ${sized(d)}` : "equal");
const sized = (d) => d.largest === undefined ? "infinity" : `${Number(d.largest.toPrecision(4))}${d.unit === "LSB" ? " LSB" : ""}`;

// A drawing of Observable Plot's, of which the page's style sheet has the colors.
function plotted(label, caption, options) {
  const image = Plot.plot(options);
  for (const part of image.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label"); // it is one image
  image.setAttribute("role", "img");
  image.setAttribute("aria-label", label);
  return make("figure", {}, image, make("figcaption", {}, caption));
}

function layersOf(found) {
  const layers = found.layers;
  if (!layers) return found.layers_why ? section("Layers", make("p", {}, found.layers_why)) : null;
  const count = Object.values(found.operators?.before || {}).reduce((a, b) => a + b, 0);
  const last = Math.max(count - 1, ...layers.diverging.map((d) => d.operator));
  const label = `${layers.differing} of ${layers.compared} results differ`;
  const parts = [];
  for (const entry of new Set(layers.diverging.map((d) => d.entry || ""))) {
    for (const integers of [true, false]) {
      const own = layers.diverging.filter((d) => (d.entry || "") === entry && (d.unit === "LSB") === integers);
      if (own.length) parts.push(layersPlot(own, last, integers, `Largest difference by operator${entry && ` of ${entry}`}`, label));
    }
  }
  const lines = layers.diverging.map((d) => [[d.entry, d.operator].filter((v) => v !== undefined && v !== "").join(": "), d.opcode, d.tensor || "", how(d)]);
  return section("Layers", ...parts, make("details", { open: lines.length < 6 ? "" : undefined }, make("summary", {}, "Those that differ"), table("Layers that differ", ["#", "operator", "result", "difference"], lines)));
}

// Counts from 1 to a power of two, floats from 1e-9 to 1; what is larger, or no number, is as high as the plot.
function layersPlot(own, last, integers, what, label) {
  const most = integers ? 2 ** (4 * Math.max(2, ...own.map((d) => d.largest >= 1 ? Math.ceil(Math.log2(d.largest) / 4) : 0))) : 1;
  const least = integers ? 0.5 : 1e-10;
  const value = (d) => d.problem || d.largest === undefined ? most : Math.min(Math.max(d.largest, 2 * least), most);
  const ticks = [...new Set([0, own[0].operator, last])];
  return plotted(`${what}: ${label}`, `${what}${integers ? ", in LSB" : ""}, on a scale of logarithms; ${label}.`, {
    width: innerWidth < 740 ? 370 : 710, height: 200, marginLeft: 56, marginRight: 14, marginTop: 12, marginBottom: 36,
    x: { domain: [0, last + 1], ticks: ticks.map((n) => n + 0.425), tickFormat: (x) => String(Math.floor(x)), tickSize: 0, label: "operator of the original", labelAnchor: "center", labelArrow: "none" },
    y: { type: "log", base: integers ? 2 : 10, domain: [least, most], ticks: 5, tickSize: 0, label: null, grid: true, tickFormat: integers ? (n) => n < 1 ? "" : n > 65536 ? `2^${Math.log2(n)}` : grouped(n) : (n) => n < 1 ? n.toExponential() : "≥ 1" },
    marks: [
      Plot.rectY(own, { x1: "operator", x2: (d) => d.operator + 0.85, y1: least, y2: value, className: "mark", title: (d) => `operator ${d.operator} ${d.opcode}, ${d.tensor}: ${how(d)}` }),
      Plot.ruleY([least]),
    ],
  });
}

const PARTS = [["verification", "random inputs"], ["given", "your inputs"], ["xnnpack", "random inputs, default kernels"]];

function outputsOf(found) {
  const lines = [], shownParts = [];
  for (const [part, words] of PARTS) {
    const one = found[part];
    if (!one) continue;
    lines.push(...one.outputs.map((d) => [words, d.entry ? `${d.entry}: ${d.name}` : d.name || "", how(d), d.mean === undefined ? "" : d.mean.toPrecision(3)]));
    for (const text of [...(one.failures || []), ...(one.original_failures || []), ...(one.interface || []), ...(one.skipped || [])]) lines.push([words, "", text, ""]);
    shownParts.push(histogram(one.outputs, `${words}: ${one.inputs.join(", ")}`));
  }
  return lines.length ? section("Outputs", table("Outputs", ["run on", "output", "difference", "mean"], lines), make("div", { class: "two" }, shownParts)) : null;
}

// How many elements differ by how much, in powers of two, over outputs of the same unit.
function histogram(outputs, words) {
  const units = new Set(outputs.filter((d) => d.histogram).map((d) => d.unit));
  return [...units].map((unit) => {
    const bins = new Map();
    for (const d of outputs.filter((d) => d.histogram && d.unit === unit)) {
      for (const [power, n] of Object.entries(d.histogram)) bins.set(Number(power), (bins.get(Number(power)) || 0) + n);
    }
    const low = Math.min(...bins.keys()), high = Math.max(...bins.keys());
    const names = [], values = [];
    for (let p = low; p <= high; p++) {
      names.push(unit !== "LSB" ? `2^${p}` : p < 1 ? "1" : `${grouped(2 ** p)}–${grouped(2 ** (p + 1) - 1)}`);
      values.push(bins.get(p) || 0);
    }
    return bars(names, values, `Elements by difference${unit === "LSB" ? " in LSB" : ", from that power of two on"}; ${words}`);
  });
}

function bars(names, values, label) {
  const rows = names.map((name, i) => ({ name, value: values[i] })), every = Math.ceil(rows.length / 8);
  return plotted(`${label}: ${rows.map((d) => `${d.name}: ${d.value}`).join(", ")}`, `${label}. Heights on a scale of logarithms.`, {
    width: 480, height: 174, marginLeft: 18, marginRight: 18, marginTop: 20, marginBottom: 24,
    x: { type: "band", domain: names, ticks: names.filter((_, i) => i % every === 0), tickSize: 0, label: null, padding: rows.length < 6 ? 0.6 : 0.2 },
    y: { type: "symlog", axis: null },
    marks: [
      Plot.barY(rows, { x: "name", y: "value", className: "mark" }),
      Plot.text(rows.length > 16 ? [] : rows.filter((d) => d.value), { x: "name", y: "value", text: (d) => grouped(d.value), dy: -7 }),
      Plot.ruleY([0]),
    ],
  });
}

function timesOf(cells, found) {
  const stages = Object.entries(found.cpu || {}).filter(([name]) => name !== "total");
  const most = Math.max(...stages.map(([, s]) => s), 1e-9);
  const lines = stages.map(([name, s]) => [name, `${s.toFixed(3)} s`, bar(s / most)]);
  const mebibytes = (n) => n ? `${(n / 1048576).toFixed(1)} MiB` : "";
  return [...section("Cost, before and after"), costOf(cells, found), ...section("CPU time of the sweep"), table("CPU time by stage", ["stage", "CPU time", ""], lines),
    terms([["CPU time in all", found.cpu?.total && `${found.cpu.total.toFixed(2)} s`], ["wall time", found.seconds && `${found.seconds.toFixed(2)} s`],
      ["peak memory", mebibytes(found.peak_bytes)], ["until converted", mebibytes(found.peak_convert)]])];
}

function costOf(cells, found) {
  const lines = MEASURES.filter(([c]) => cells[c] !== null || cells[c + 1] !== null).map(([c, name, words]) => {
    const most = Math.max(cells[c] ?? 0, cells[c + 1] ?? 0) || 1;
    return [name, ...[cells[c], cells[c + 1]].map((v) => v === null ? "not known" : [words(v), bar(v / most)]), cells[c + 2] === null ? "" : times(cells[c + 2])];
  });
  const cost = found.cost || {}, problems = (found.run_time || []).filter((t) => t.problem).map((t) => make("p", { class: "dim" }, `Run time: ${t.problem}.`));
  const dynamic = cost.arena?.dynamic || cost.arena_in?.dynamic;
  return make("div", {}, table("Cost", ["", "original", "converted", ""], lines), problems,
    dynamic ? make("p", { class: "dim" }, `The arena is not known before a run: ${dynamic}.`) : null,
    cost.slower ? make("p", {}, `${cost.slower} ${cost.instead || ""}`) : null);
}

function bar(part) {
  const image = drawing(100, 10, "", { class: "meter", preserveAspectRatio: "none", "aria-hidden": "true" });
  image.append(shape("rect", { x: 0, y: 0, width: 100 * part, height: 10, class: "plainmark" }));
  return image;
}

function countsOf(found) {
  if (!found.operators) return null;
  const sum = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);
  const one = (title, counts) => {
    const lines = Object.entries(counts).sort((a, b) => b[1] - a[1]);
    const most = Math.max(...lines.map(([, n]) => n), 1);
    return make("div", {}, make("h4", {}, `${title}: ${grouped(sum(counts))}`), table(title, ["operator", "count", ""], lines.map(([name, n]) => [name, n, bar(n / most)])));
  };
  return section("Operators before and after", make("div", { class: "two" }, one("before", found.operators.before || {}), one("after", found.operators.after || {})));
}

function listOf(title, texts) {
  return texts?.length ? section(title, make("ul", {}, texts.map((text) => make("li", {}, typeof text === "string" ? text : JSON.stringify(text))))) : null;
}

function logOf(found) { return found.log ? section("Log", make("pre", { tabindex: 0 }, found.log)) : null; }
