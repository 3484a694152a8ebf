// Switches, legend and the strip of selected points. Text from the data is only ever set as text.
"use strict";
(function start() {
  const doc = Bokeh.documents[0];
  const points = doc && doc.get_model_by_name("points");
  if (!points) { setTimeout(start, 30); return; }
  const settings = JSON.parse(document.getElementById("settings").textContent);
  const hint = document.getElementById("selection");
  const strip = document.getElementById("strip");
  const invitation = hint.textContent;
  const mostShown = 60;

  // The dark end of the colour scale cannot be seen on a dark page: all of it is mixed with white.
  if (settings.scale && matchMedia("(prefers-color-scheme: dark)").matches) {
    const lighter = (pair) => Math.round(0.65 * parseInt(pair, 16) + 0.35 * 255).toString(16).padStart(2, "0");
    points.data.colour = Array.from(points.data.colour, (colour) => "#" + colour.slice(1).match(/../g).map(lighter).join(""));
    points.change.emit();
  }

  function press(group, button) {
    for (const other of group.querySelectorAll("button"))
      other.setAttribute("aria-pressed", String(other === button));
  }

  function show(name) {
    const kept = points.selected.indices;
    for (let number = 0; number < settings.n_panels; number++) {
      points.data["x" + number] = points.data[name + " x" + number];
      points.data["y" + number] = points.data[name + " y" + number];
    }
    points.change.emit();
    for (let number = 0; number < settings.n_panels; number++) {
      const panel = doc.get_model_by_name("panel " + number);
      const [across, up] = settings.axes[name];
      panel.below[0].axis_label = across;
      panel.left[0].axis_label = up;
      panel.reset.emit();  // the ranges follow the data again, in equal units
    }
    points.selected.indices = kept;  // a reset lets the selection go
  }

  const embeddings = document.getElementById("embeddings");
  embeddings.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    press(embeddings, button);
    show(button.dataset.embedding);
  });

  const shown = document.getElementById("shown");
  if (shown) shown.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    press(shown, button);
    doc.get_model_by_name("shown").booleans = button.dataset.shown === "new" ? settings.new : null;
  });

  const legend = document.getElementById("legend");
  if (legend) legend.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const mine = [];
    points.data.label.forEach((label, i) => { if (label === button.dataset.label) mine.push(i); });
    const before = points.selected.indices;
    const same = before.length === mine.length && mine.every((row, i) => row === before[i]);
    points.selected.indices = same ? [] : mine;
  });

  function describe() {
    const chosen = Array.from(points.selected.indices);
    strip.replaceChildren();
    strip.hidden = chosen.length === 0;
    if (chosen.length === 0) { hint.textContent = invitation; return; }
    let text = chosen.length + (chosen.length === 1 ? " point" : " points") + " selected";
    if (settings.classes) {
      const counts = new Map();
      for (const i of chosen) counts.set(points.data.label[i], (counts.get(points.data.label[i]) || 0) + 1);
      const parts = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([label, n]) => n + " of " + label);
      text += ": " + parts.join(", ");
    }
    hint.textContent = text + ". A click on empty space lets them go.";
    for (const i of chosen.slice(0, mostShown)) strip.append(sample(i));
  }

  // --- the selected rows as a table ---------------------------------------------------------------
  const section = document.getElementById("chosen");
  const body = document.getElementById("rows");
  const mostRows = 200;
  let order = {column: -1, down: false};

  function header() {
    return ["row", settings.target].concat(settings.table.names);
  }

  function record(i) {
    return [points.data.row[i], points.data.label[i]].concat(settings.table.rows[i]);
  }

  function compare(a, b) {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, {numeric: true});
  }

  function tabulate() {
    const chosen = Array.from(points.selected.indices);
    section.hidden = !settings.table || chosen.length === 0;
    if (section.hidden) return;
    const records = chosen.map(record);
    if (order.column >= 0) records.sort((a, b) => (order.down ? -1 : 1) * compare(a[order.column], b[order.column]));
    const head = document.createElement("tr");
    header().forEach((name, column) => {
      const cell = document.createElement("th");
      cell.textContent = name + (column === order.column ? (order.down ? " ▾" : " ▴") : "");
      cell.addEventListener("click", () => {
        order = {column, down: order.column === column && !order.down};
        tabulate();
      });
      head.append(cell);
    });
    const lines = records.slice(0, mostRows).map((values) => {
      const line = document.createElement("tr");
      for (const value of values) {
        const cell = document.createElement("td");
        cell.textContent = value === null ? "" : String(value);
        line.append(cell);
      }
      return line;
    });
    body.replaceChildren(head, ...lines);
    const rest = records.length > mostRows ? " Only " + mostRows + " of " + records.length + " rows are shown; the csv has all." : "";
    document.getElementById("difference").textContent = difference(chosen) + rest;
  }

  // What sets the selected rows apart from all others, column by column.
  function difference(chosen) {
    const inside = new Set(chosen);
    const rows = settings.table.rows;
    const found = [];
    settings.table.names.forEach((name, column) => {
      const mine = [], theirs = [];
      rows.forEach((row, i) => { if (row[column] !== null) (inside.has(i) ? mine : theirs).push(row[column]); });
      if (mine.length === 0 || theirs.length === 0) return;
      if (typeof mine[0] === "number") {
        const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
        const all = mine.concat(theirs), centre = mean(all);
        const spread = Math.sqrt(mean(all.map((v) => (v - centre) ** 2)));
        if (spread > 0) found.push([Math.abs(mean(mine) - mean(theirs)) / spread,
          name + " " + mean(mine).toPrecision(3) + " on average (others " + mean(theirs).toPrecision(3) + ")"]);
      } else {
        const share = (values, v) => values.filter((w) => w === v).length / values.length;
        let best = null;
        for (const v of new Set(mine)) {
          const gap = share(mine, v) - share(theirs, v);
          if (best === null || gap > best[0]) best = [gap, v];
        }
        if (best && best[0] > 0.1) found.push([2 * best[0], name + " is " + best[1] + " in " + Math.round(100 * share(mine, best[1])) +
          " % (others " + Math.round(100 * share(theirs, best[1])) + " %)"]);
      }
    });
    const top = found.filter(([size]) => size > 0.3).sort((a, b) => b[0] - a[0]).slice(0, 3).map(([, text]) => text);
    return top.length ? "What sets them apart: " + top.join("; ") + "." : "";
  }

  document.getElementById("export").addEventListener("click", () => {
    const quoted = (value) => {
      let text = value === null ? "" : String(value);
      // Spreadsheets run texts that begin like a formula.
      if (typeof value === "string" && /^[\s]*[=+@-]/.test(text)) text = "'" + text;
      return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
    };
    const lines = [header(), ...Array.from(points.selected.indices).map(record)].map((values) => values.map(quoted).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], {type: "text/csv"}));
    link.download = "selected.csv";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  const copy = document.getElementById("copy");
  if (copy) copy.addEventListener("click", () => {
    const code = document.getElementById("code");
    const done = () => { copy.textContent = "copied"; setTimeout(() => { copy.textContent = "copy"; }, 1500); };
    const selectIt = () => { const range = document.createRange(); range.selectNodeContents(code);
      const selection = getSelection(); selection.removeAllRanges(); selection.addRange(range); document.execCommand("copy"); done(); };
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, selectIt); else selectIt();
  });

  function sample(i) {
    const image = points.data.image && points.data.image[i];
    const element = document.createElement(image ? "img" : "span");
    if (image) { element.src = image; element.alt = ""; }
    else element.textContent = points.data.text[i].replaceAll("\n", ", ") || "row " + points.data.row[i];
    element.style.borderColor = points.data.colour[i];
    element.title = (points.data.label[i] + " row " + points.data.row[i]).trim();
    return element;
  }

  points.selected.properties.indices.change.connect(describe);
  points.selected.properties.indices.change.connect(tabulate);
  document.documentElement.dataset.ready = "true";
})();
