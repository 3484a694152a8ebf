// The page's own script: sends requests, shows updates. Text from the data is only ever set as text.
"use strict";
(function start() {
  const doc = window.Bokeh && Bokeh.documents[0];
  const space = doc && doc.get_model_by_name("space");
  if (!space || !Bokeh.index.roots.length) { setTimeout(start, 30); return; }
  const [ask, marks, look] = space.tags;
  const points = doc.get_model_by_name("points");
  const sketch = makeSketch(space, points, look instanceof Map ? Object.fromEntries(look) : look);
  const $ = (id) => document.getElementById(id);
  const knobs = new Map();
  // Milliseconds from each move of a slider to its first picture, and to that of all points.
  const timing = window.mercerTiming = [], fullTiming = window.mercerFullTiming = [];
  // Requests are numbered from the time of opening: a page that is opened again says something new.
  let about = {}, number = Date.now(), outstanding = null, next = null, last = null, lastMatrix = null, lastPriorDraws = null;

  // --- small parts ------------------------------------------------------------------------------

  function make(tag, text, attributes = {}, parent = null) {
    const element = document.createElement(tag);
    if (text !== null && text !== undefined) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (parent) parent.append(element);
    return element;
  }
  function drawn(tag, attributes, parent) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    parent.append(element);
    return element;
  }
  function digits(value, most = 3) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(1).replace("e+", "e");
    return String(Number(value.toPrecision(most)));
  }
  const percent = (share) => (100 * share < 0.1 && share > 0 ? digits(100 * share, 1) : (100 * share).toFixed(1)) + " %";

  // --- requests ---------------------------------------------------------------------------------

  function send(request) {
    request.id = ++number;
    ask.data = {request: [JSON.stringify(request)]};
    return request.id;
  }
  // One position of a knob at a time is on its way; of those in between only the last counts.
  function turn(knob, value, since) {
    next = {request: {do: "turn", knob, value}, since};
    if (outstanding === null) flush();
  }
  function flush() {
    if (!next) return;
    const {request, since} = next;
    next = null;
    outstanding = last = {id: send(request), since};
    const mine = outstanding;
    setTimeout(() => { if (outstanding === mine) { outstanding = null; flush(); } }, 10000);
  }
  // What was drawn is on the screen when the frame after the next one begins.
  function onScreen(then) { requestAnimationFrame(() => requestAnimationFrame(then)); }
  function answered(id) {
    if (!outstanding || id !== outstanding.id) return;
    const {since} = outstanding;
    onScreen(() => {
      timing.push(performance.now() - since);
      outstanding = null;
      flush();
    });
  }
  function allDrawn(id) {
    if (last && id === last.id) { fullTiming.push(performance.now() - last.since); last = null; }
  }

  // --- knobs ------------------------------------------------------------------------------------

  const STEPS = 600;
  function place(knob, value) {
    if (knob.whole) return (value - knob.low) / (knob.high - knob.low);
    return Math.log(value / knob.low) / Math.log(knob.high / knob.low);
  }
  function valueAt(knob, share) {
    if (knob.whole) return Math.round(knob.low + share * (knob.high - knob.low));
    return Number((knob.low * Math.pow(knob.high / knob.low, share)).toPrecision(4));
  }
  function showKnobs(list) {
    const old = document.activeElement && document.activeElement.dataset.knob;
    const box = $("knobs");
    box.replaceChildren();
    knobs.clear();
    for (const knob of list) {
      const part = make("div", null, {class: "knob"}, box);
      const head = make("header", null, {}, part);
      const label = make("label", knob.label, {for: "knob-" + knob.name}, head);
      const shown = make("output", digits(knob.value, 4), {}, head);
      const steps = knob.whole ? knob.high - knob.low : STEPS;
      const slider = make("input", null, {type: "range", min: 0, max: steps, step: 1, id: "knob-" + knob.name, "data-knob": knob.name}, part);
      const svg = drawn("svg", {viewBox: "0 0 100 40", preserveAspectRatio: "none", "aria-hidden": "true"}, part);
      const foot = make("footer", null, {}, part);
      const back = make("button", "◆ " + digits(knob.mark) + " " + knob.mark_label, {type: "button"}, foot);
      const range = make("span", "", {}, foot);
      const entry = {knob, slider, shown, svg, range, value: knob.value, curve: knob.curve || []};
      knobs.set(knob.name, entry);
      slider.value = Math.round(place(knob, knob.value) * steps);
      slider.setAttribute("aria-valuetext", digits(knob.value, 4));
      const moved = (value, event) => {
        entry.value = value;
        shown.textContent = digits(value, 4);
        slider.setAttribute("aria-valuetext", digits(value, 4));
        showCurve(entry);
        turn(knob.name, value, event.timeStamp);
      };
      slider.addEventListener("input", (event) => moved(valueAt(knob, slider.value / steps), event));
      back.addEventListener("click", (event) => {
        slider.value = Math.round(place(knob, knob.mark) * steps);
        moved(knob.whole ? Math.round(knob.mark) : Number(knob.mark.toPrecision(4)), event);
      });
      showCurve(entry);
      if (old === knob.name) slider.focus();
    }
  }
  function showCurve(entry) {
    const {knob, svg, range, curve} = entry;
    svg.replaceChildren();
    const scores = curve.map((pair) => pair[1]);
    const low = Math.min(...scores), high = Math.max(...scores), spread = high - low || 1;
    const x = (value) => 100 * place(knob, value);
    const mark = Math.min(Math.max(x(knob.mark), 0), 100), now = Math.min(Math.max(x(entry.value), 0), 100);
    drawn("line", {class: "mark", x1: mark, x2: mark, y1: 0, y2: 40}, svg);
    if (curve.length > 1) {
      const line = curve.map(([v, s]) => x(v).toFixed(2) + "," + (38 - 36 * (s - low) / spread).toFixed(2));
      drawn("polyline", {class: "curve", points: line.join(" ")}, svg);
      range.textContent = digits(low, 2) + " to " + digits(high, 2) + ", a sample";
    }
    drawn("line", {class: "now", x1: now, x2: now, y1: 0, y2: 40}, svg);
  }

  // --- what is shown ----------------------------------------------------------------------------

  function options(select, names, none = null) {
    select.replaceChildren();
    if (none !== null) make("option", none, {value: ""}, select);
    for (const name of names) make("option", name.length > 60 ? name.slice(0, 59) + "…" : name, {value: name}, select);
  }
  const shows = {
    about(a) {
      about = a;
      const parts = [a.rows + " rows"];
      if (a.columns !== null) parts.push(a.columns + " columns");
      if (a.task === "classification") parts.push(a.target + ": " + a.classes.length + " classes");
      else if (a.task) parts.push("predicts " + a.target);
      $("about").textContent = parts.join(" · ");
      $("about").title = a.notes.join("\n");
      options($("part"), a.offered);
      options($("columns"), a.names);
      $("build").hidden = !a.offered.length;
      $("metric-label").hidden = !a.metric_possible;
      options($("prior-a"), a.names);
      options($("prior-b"), a.names, "no other");
    },
    views(names) {
      $("views").replaceChildren();
      for (const name of names) make("button", name, {type: "button", "data-view": name, "aria-pressed": "false"}, $("views"));
    },
    view(name) {
      for (const button of $("views").children) button.setAttribute("aria-pressed", String(button.dataset.view === name));
    },
    prior_columns(columns) {
      if (columns.length) $("prior-a").value = about.names[columns[0]];
      $("prior-b").value = columns.length > 1 ? about.names[columns[1]] : "";
      $("prior").hidden = !columns.length;
    },
    expression(text) {
      if (document.activeElement !== $("expression") || $("expression").value.trim() === "") $("expression").value = text;
      $("error").hidden = true;
    },
    knobs: showKnobs,
    curves(found) {
      for (const [name, curve] of Object.entries(found)) {
        const entry = knobs.get(name);
        if (entry) { entry.curve = curve; showCurve(entry); }
      }
    },
    metric(found) {
      $("metric").checked = found.on;
      $("importances").replaceChildren();
      for (const [name, share] of found.importances || []) {
        const line = make("div", null, {class: "share"}, $("importances"));
        make("span", name, {title: name}, line);
        make("i", null, {style: "width: " + Math.max(2, 100 * share) + "%", title: percent(share)}, line);
      }
    },
    drawn(rows) { sketch.use(rows); about.drawn = rows ? rows.length : null; },
    stage(name) {
      const some = about.drawn ? " at " + about.drawn + " of " + about.rows + " rows" : "";
      $("stage").textContent = name === "coarse" ? "a first look" + some : "";
    },
    saved_points(found) {
      const {x, y, ...shared} = points.data;
      for (let i = 0; $("kept-" + i); i++) {
        const still = doc.get_model_by_name("kept" + i).renderers[0].data_source;
        if (found["x" + i]) still.setv({data: {...shared, x: found["x" + i], y: found["y" + i]}}, {sync: false});
      }
    },
    numbers(n) {
      $("score").textContent = n.score === null ? n.dimension.toFixed(1) : n.score.toFixed(3);
      $("score-name").textContent = n.score === null ? "effective dimensions" : "leave-one-out " + n.score_name;
      const facts = [["rank", (n.rank_is_bound ? "at least " : "") + n.rank], ["effective dimensions", n.dimension.toFixed(1)]];
      if (n.score !== null && about.task === "classification") facts.unshift(["wrong when left out", n.wrong + " of " + n.rows]);
      if (n.alpha !== null) facts.push(["penalty", digits(n.alpha)]);
      facts.push(["a kernel?", {"by construction": "by construction", "not refuted": "not refuted here", "refuted": "no: repaired here"}[n.validity]]);
      facts.push(["landmarks miss", n.exact ? "nothing" : percent(n.missed) + " (worst row " + percent(n.worst) + ")"]);
      const keep = $("facts").querySelector("[data-certificate]");
      $("facts").replaceChildren();
      for (const [name, value] of facts) { make("dt", name, {}, $("facts")); make("dd", value, {}, $("facts")); }
      if (keep) certificate(keep.dataset.certificate);
    },
    certificate(c) {
      certificate(c.bound === null ? "none: repaired" : "error below " + digits(c.bound, 2) + "\u00a0k(x,\u00a0x)");
    },
    findings(list) {
      $("findings").replaceChildren();
      for (const text of list) make("li", text, {}, $("findings"));
    },
    spectrum(shares) {
      const svg = drawn("svg", {viewBox: "0 0 240 64", preserveAspectRatio: "none", role: "img", "aria-label": "Spectrum"}, document.createDocumentFragment());
      const most = Math.max(...shares, 1e-9);
      shares.forEach((share, i) => {
        const height = Math.max(0.6, 62 * share / most);
        const bar = drawn("rect", {x: i * 240 / shares.length, y: 64 - height, width: 0.78 * 240 / shares.length, height, rx: 1}, svg);
        drawn("title", {}, bar).textContent = "direction " + (i + 1) + ": " + digits(share) + " %";
      });
      $("spectrum").replaceChildren(svg);
    },
    matrix(found) { lastMatrix = found; showMatrix(); },
    prior_draws(found) { lastPriorDraws = found; showPriorDraws(); },
    about_point: showPoint,
    selection: showSelection,
    saved_views: showSavedViews,
    comparison: showComparison,
    saved(paths) {
      const box = $("saved");
      box.hidden = false;
      box.replaceChildren();
      make("h2", "Saved", {}, box);
      for (const path of paths) make("div", path, {}, box);
      box.scrollIntoView({block: "nearest"});
    },
    csv(text) {
      const link = make("a", null, {download: "selected.csv"});
      link.href = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
      link.click();
    },
    code(text) { document.querySelector("#code pre").textContent = text; },
    error(text) { sketch.hide(); $("error").textContent = text; $("error").hidden = false; $("status").textContent = "";
                  if (outstanding) { outstanding = null; flush(); } },
    status(text) { $("status").textContent = text; },
    busy(on) { $("status").classList.toggle("busy", on); if (!on) $("status").textContent = ""; else if (!$("status").textContent) $("status").textContent = "refining"; },
  };
  function certificate(text) {
    make("dt", "certificate", {}, $("facts"));
    make("dd", text, {"data-certificate": text}, $("facts"));
    const old = $("facts").querySelectorAll("[data-certificate]");
    for (let i = 0; i < old.length - 1; i++) { old[i].previousElementSibling.remove(); old[i].remove(); }
  }

  // --- pictures that are not Bokeh's ------------------------------------------------------------

  const RAMP = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];
  function ramp(share) {
    const at = Math.min(share * (RAMP.length - 1), RAMP.length - 1.001), i = Math.floor(at), part = at - i;
    return RAMP[i].map((c, j) => c + part * (RAMP[i + 1][j] - c));
  }
  function paint(canvas, width, height, colour) {
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d"), image = context.createImageData(width, height);
    for (let i = 0, j = 0; i < width * height; i++) {
      const [red, green, blue] = colour(i);
      image.data[j++] = red; image.data[j++] = green; image.data[j++] = blue; image.data[j++] = 255;
    }
    context.putImageData(image, 0, 0);
    return context;
  }
  const TABLE = Array.from({length: 256}, (_, i) => ramp(i / 255));
  function showMatrix() {
    if (!lastMatrix) return;
    const {size, values, low, high} = lastMatrix;
    const context = paint($("matrix"), size, size, (i) => TABLE[values[i]]);
    const chosen = new Set(points.selected.indices);
    context.fillStyle = "#ff2d2d";
    about.matrix_rows.forEach((row, i) => { if (chosen.has(row)) { context.fillRect(0, i, 3, 1); context.fillRect(i, 0, 1, 3); } });
    $("matrix-note").textContent = size + " rows" + (about.task === "classification" ? " by class" : "") + ", " + digits(low) + " to " + digits(high);
  }
  function showPriorDraws() {
    const box = $("prior-draws"), found = lastPriorDraws;
    box.replaceChildren();
    if (!found) return;
    if (found.curves) {
      const svg = drawn("svg", {viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img", "aria-label": "Functions drawn from the kernel"}, box);
      const colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"];
      found.curves.forEach((curve, c) => {
        const line = curve.map((v, i) => (i ? "L" : "M") + (100 * i / (curve.length - 1)).toFixed(1) + " " + (50 - 47 * v).toFixed(1));
        drawn("path", {d: line.join(""), stroke: colours[c % colours.length]}, svg);
      });
    } else {
      const size = found.surface.length;
      const flat = found.surface.slice().reverse().flat();
      paint(make("canvas", null, {role: "img", "aria-label": "A function drawn from the kernel"}, box), size, size, (i) => {
        const v = flat[i], end = v < 0 ? [0, 114, 178] : [213, 94, 0];
        return end.map((c) => 255 + Math.abs(v) * (c - 255));
      });
    }
    const [[low, high]] = found.ends, note = make("p", null, {}, box);
    make("span", digits(low), {}, note);
    make("span", found.names.join(" across, ") + (found.surface ? " up" : ""), {}, note);
    make("span", digits(high), {}, note);
  }

  // --- points -----------------------------------------------------------------------------------

  function thumbnail(index, caption, parent) {
    const figure = make("figure", null, {}, parent);
    if (points.data.image) make("img", null, {src: points.data.image[index], alt: ""}, figure);
    const button = make("button", caption, {type: "button", title: points.data.text[index] || "Show this row"}, figure);
    button.addEventListener("click", () => send({do: "row", index}));
  }
  function table(rows, parent, heads = null) {
    const scroll = make("div", null, {class: "scroll"}, parent), body = make("table", null, {}, scroll);
    if (heads) { const line = make("tr", null, {}, body); for (const head of heads) make("th", head, {}, line); }
    for (const row of rows) { const line = make("tr", null, {}, body); for (const cell of row) make("td", cell, {}, line); }
  }
  function showPoint(found) {
    const card = $("point"), [title, box] = card.children;
    card.hidden = !found;
    if (!found) return;
    box.replaceChildren();
    const isRow = found.row !== undefined;
    title.textContent = isRow ? "Row " + found.row + (found.label ? ": " + found.label : "") : "What would be here?";
    if (found.predicted !== undefined)
      make("p", (isRow ? "Predicted when left out: " : "Predicted here: ") + found.predicted, {class: found.wrong ? "wrong" : "quiet"}, box);
    const strip = make("div", null, {class: "thumbs"}, box);
    if (isRow && points.data.image) { const f = make("figure", null, {}, strip); make("img", null, {src: points.data.image[found.index], alt: ""}, f); make("figcaption", "this row", {}, f); }
    if (found.seen && found.seen.image) { const f = make("figure", null, {}, strip); make("img", null, {src: found.seen.image, alt: ""}, f); make("figcaption", isRow ? "as these two directions see it" : "pre-image", {}, f); }
    if (found.values && found.values.length) {
      const seen = new Map(found.seen && found.seen.values || []);
      table(found.values.map(([name, value]) => seen.has(name) ? [name, value, seen.get(name)] : [name, value]), box,
            seen.size ? ["column", "this row", "as these two directions see it"] : null);
    } else if (found.seen && found.seen.values) table(found.seen.values, box, ["column", "pre-image"]);
    make("h3", isRow ? "Nearest rows in this space" : "Nearest rows in this picture", {}, box);
    const near = make("div", null, {class: "thumbs"}, box);
    for (const n of found.neighbours) thumbnail(n.index, (n.label || "row") + " · " + n.row, near);
    const close = make("button", "Close", {type: "button"}, box);
    close.addEventListener("click", () => send({do: "forget"}));
  }
  function showSelection(found) {
    const card = $("selection"), [title, box] = card.children;
    card.hidden = !found;
    showMatrix();
    if (!found) return;
    title.textContent = found.size + " of " + found.of + " rows selected";
    box.replaceChildren();
    if (found.classes) make("p", found.classes.map(([name, count]) => name + ": " + count).join(", "), {}, box);
    if (found.mean) make("p", "Mean of " + about.target + ": " + found.mean, {}, box);
    if (found.telling && found.telling.length) table(found.telling, box, ["differs most in", "mean here", "mean elsewhere"]);
    if (points.data.image) { const strip = make("div", null, {class: "thumbs"}, box); for (const i of found.indices.slice(0, 24)) thumbnail(i, points.data.label[i] || String(i), strip); }
  }
  function showSavedViews(list) {
    $("kept").hidden = !list.length;
    for (let i = 0; $("kept-" + i); i++) {
      const card = $("kept-" + i), kept = list[i];
      card.hidden = !kept;
      if (!kept) continue;
      const title = card.querySelector("h3");
      title.replaceChildren();
      if (kept.score !== null) make("b", kept.score.toFixed(3) + " ", {}, title);
      title.append(kept.name);
    }
  }
  function showComparison(found) {
    const card = $("comparison"), [title, box] = card.children;
    card.hidden = !found;
    if (!found) return;
    title.textContent = found.headline;
    box.replaceChildren();
    const scroll = make("div", null, {class: "scroll"}, box), body = make("table", null, {}, scroll);
    const head = make("tr", null, {}, body);
    for (const name of ["model", found.score || ""]) make("th", name, {}, head);
    for (const row of found.rows) {
      const line = make("tr", null, {class: row.best ? "best" : ""}, body);
      make("td", row.name, {}, line);
      make("td", row.score === null ? "" : row.score.toFixed(3) + " ± " + digits(row.interval, 2), {class: "number"}, line);
    }
    const why = make("details", null, {}, box);
    make("summary", "Why", {}, why);
    const reasons = make("ul", null, {}, why);
    for (const reason of found.reasons) make("li", reason, {}, reasons);
    card.scrollIntoView({block: "nearest"});
  }

  // --- what a person does -----------------------------------------------------------------------

  $("typed").addEventListener("submit", (event) => { event.preventDefault(); send({do: "type", expression: $("expression").value}); $("expression").blur(); });
  $("build").addEventListener("click", (event) => {
    const how = event.target.dataset && event.target.dataset.how;
    if (!how) return;
    const some = $("columns-kind").value === "some";
    const columns = some ? Array.from($("columns").selectedOptions, (option) => option.value) : [];
    send({do: "build", kernel: $("part").value, how, columns});
  });
  $("columns-kind").addEventListener("change", () => { $("columns").hidden = $("columns-kind").value !== "some"; });
  $("metric").addEventListener("change", () => send({do: "metric", on: $("metric").checked}));
  $("views").addEventListener("click", (event) => { if (event.target.dataset.view) send({do: "view", view: event.target.dataset.view}); });
  for (const id of ["prior-a", "prior-b"]) $(id).addEventListener("change", () => {
    const columns = [$("prior-a").value, $("prior-b").value].filter((name, i, all) => name && all.indexOf(name) === i);
    send({do: "columns", columns});
  });
  $("legend").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const mine = [];
    Array.from(points.data.label).forEach((label, i) => { if (label === button.dataset.label) mine.push(i); });
    const before = points.selected.indices;
    const same = before.length === mine.length && mine.every((row, i) => row === before[i]);
    points.selected.indices = same ? [] : mine;
  });
  // Clicks in the picture. (Bokeh's own taps become long presses where the page is slow to answer.)
  const near = 9;  // a click within so many pixels of a point is a click on it
  let pressed = null;
  $("space").addEventListener("pointerdown", (event) => { pressed = [event.clientX, event.clientY]; });
  $("space").addEventListener("click", (event) => {
    const view = Bokeh.index.find_one(space), frame = view.frame;
    const onTools = event.composedPath().some((part) => part.classList && /bk-Toolbar/.test(part.className));
    const moved = !pressed || Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 4;
    const box = view.el.getBoundingClientRect(), sx = event.clientX - box.left, sy = event.clientY - box.top;
    const inside = sx >= frame.bbox.left && sx <= frame.bbox.right && sy >= frame.bbox.top && sy <= frame.bbox.bottom;
    if (onTools || moved || !inside) return;
    const reach = near * Math.abs(space.x_range.end - space.x_range.start) / frame.bbox.width;
    send({do: "tap", x: frame.x_scale.invert(sx), y: frame.y_scale.invert(sy), reach});
  });
  $("row").addEventListener("change", () => {
    const index = Array.from(points.data.row).indexOf(Number($("row").value));
    if (index >= 0) send({do: "row", index});
  });
  $("keep").addEventListener("click", () => send({do: "keep"}));
  $("compare").addEventListener("click", () => send({do: "compare"}));
  $("save").addEventListener("click", () => send({do: "save"}));
  $("export").addEventListener("click", () => send({do: "export"}));
  $("clear").addEventListener("click", () => { points.selected.indices = []; });
  $("kept").addEventListener("click", (event) => { const p = event.target.dataset.place; if (p !== undefined) send({do: "drop", place: Number(p)}); });
  $("copy").addEventListener("click", () => navigator.clipboard && navigator.clipboard.writeText(document.querySelector("#code pre").textContent));

  doc.on_message("mercer", ([text, ...arrays]) => {
    const update = JSON.parse(text, (_, value) => value && value.array !== undefined ? arrays[value.array] : value);
    // The picture first, so that it is not kept waiting by anything else.
    if (update.sketch) sketch.show(update.sketch, update.marks);
    if (update.sketch && update.answers) answered(update.answers);
    if (update.marks && !update.sketch) marks.setv({data: update.marks}, {sync: false});
    if (update.points) {
      sketch.end(() => { answered(update.answers); allDrawn(update.answers); });
      points.setv({data: {...points.data, ...update.points}}, {sync: false});
    }
    for (const [key, value] of Object.entries(update)) if (shows[key]) shows[key](value);
    if (update.points) document.documentElement.dataset.ready = "true";
  });
  send({do: "hello"});
})();
