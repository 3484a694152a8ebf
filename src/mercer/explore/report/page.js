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

  function press(group, button) {
    for (const other of group.querySelectorAll("button"))
      other.setAttribute("aria-pressed", String(other === button));
  }

  function show(name) {
    settings.limits.forEach((limits, number) => {
      points.data["x" + number] = points.data[name + " x" + number];
      points.data["y" + number] = points.data[name + " y" + number];
      const panel = doc.get_model_by_name("panel " + number);
      const [x0, x1, y0, y1] = limits[name];
      panel.x_range.setv({start: x0, end: x1, reset_start: x0, reset_end: x1});
      panel.y_range.setv({start: y0, end: y1, reset_start: y0, reset_end: y1});
    });
    points.change.emit();
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
  document.documentElement.dataset.ready = "true";
})();
