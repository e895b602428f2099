// What the models cost before and after: a drawing for each measure, of those that the filters let pass.
const SYMBOLS = [["circle", "●"], ["triangle", "▲"], ["square", "■"], ["diamond2", "◆"]];
const CELLS = 90;  // of a side of a drawing: of several models in one of them, one is drawn
let plottedFor = "";

function plotCosts(filter) {
  const key = JSON.stringify(filter);
  if (key === plottedFor) return;
  plottedFor = key;
  const targets = [...new Set(rows.map((row) => row.cells[TARGET]))];
  const figures = MEASURES.map(([c, name, words]) => costPlot(c, name, words, targets)).filter(Boolean);
  by("costs").replaceChildren(...figures);
  by("costs-part").hidden = !figures.length;
  by("costs-targets").replaceChildren(...(targets.length > 1 ? targets.map((target, i) => make("span", {}, make("span", { class: `key${i % 4}`, "aria-hidden": "true" }, SYMBOLS[i % 4][1]), ` ${target}`)) : []));
}

function costPlot(c, name, words, targets) {
  const own = shown.filter((row) => row.cells[c] > 0 && row.cells[c + 1] > 0);
  if (!own.length) return null;
  const values = own.flatMap((row) => [row.cells[c], row.cells[c + 1]]);
  const domain = [Math.min(...values) / 1.6, Math.max(...values) * 1.6];
  const seen = new Map(), place = (v) => Math.round(CELLS * Math.log(v / domain[0]) / Math.log(domain[1] / domain[0]));
  for (const row of own) seen.set(`${row.cells[TARGET]} ${place(row.cells[c])} ${place(row.cells[c + 1])}`, row);
  const dots = [...seen.values()];
  const parts = targets.map((target, i) => [i, dots.filter((row) => row.cells[TARGET] === target)]).filter(([, part]) => part.length);
  const said = targets.map((target) => spread(own.filter((row) => row.cells[TARGET] === target).map((row) => row.cells[c + 2]), targets.length > 1 ? `${target} ` : "")).filter(Boolean).join("; ");
  const line = (factor) => [{ v: domain[0], factor }, { v: domain[1], factor }];
  const scale = { type: "log", domain, ticks: ticksBetween(domain, c === RUN), tickFormat: (v) => words(v), tickSize: 0, grid: true };
  const factors = [1, 10].filter((factor) => factor * domain[0] < domain[1]);
  const figure = plotted(`${name} of ${own.length} models before and after: ${said}`, `${name}: ${said}.`, {
    width: 400, height: 360, marginLeft: 62, marginRight: 24, marginTop: 26, marginBottom: 44,
    x: { ...scale, label: "original", labelAnchor: "center", labelArrow: "none" },
    y: { ...scale, label: "converted", labelArrow: "none", labelAnchor: "top" },
    marks: [
      factors.map((factor) => Plot.line(line(factor), { x: "v", y: (d) => d.v * factor, className: "axis diagonal", clip: true })),
      Plot.text(factors, { x: (f) => domain[1] / f, y: () => domain[1], text: (f) => `×${f}`, dy: -8 }),
      parts.map(([i, part]) => Plot.dot(part, {
        x: (row) => row.cells[c], y: (row) => row.cells[c + 1], r: 3.5, symbol: SYMBOLS[i % 4][0], className: `dots target${i % 4}`,
        title: (row) => `${shortened(row.cells[ID])} [${row.cells[TARGET]}]\n${words(row.cells[c])} → ${words(row.cells[c + 1])}, ${times(row.cells[c + 2])}`,
      })),
    ],
  });
  figure.querySelectorAll(".dots").forEach((group, g) => group.addEventListener("click", (event) => {
    const row = parts[g][1][event.target.__data__];
    if (row) openKey(row.cells[ID], row.cells[TARGET]);
  }));
  return figure;
}

function spread(ratios, name) {
  ratios.sort((a, b) => a - b);
  if (ratios.length === 1) return `${name}${times(ratios[0])}`;
  return ratios.length ? `${name}${times(ratios[ratios.length >> 1])} in the median, ${times(ratios[0])} to ${times(ratios[ratios.length - 1])}` : "";
}

// Powers of ten of a unit that people read: 1, 10, 100 KiB; 1, 10, 100 ms; every second of them if there are many.
function ticksBetween([low, high], seconds) {
  const units = seconds ? [1e-6, 1e-3, 1] : [1, 1024, 1048576, 1073741824];
  const all = units.flatMap((unit) => [1, 10, 100].map((n) => n * unit)).filter((v) => v >= low && v <= high);
  return all.length > 6 ? all.filter((_, i) => i % 2 === 0) : all;
}
