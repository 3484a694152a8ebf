// The picture while it moves: some thousand points, drawn at once on a canvas above Bokeh's own.
"use strict";
function makeSketch(space, points, look) {
  const canvas = document.getElementById("sketch"), holder = document.getElementById("space");
  const TOOLS = 34;  // pixels on the right that belong to Bokeh's buttons
  const star = Array.from({length: 10}, (_, i) => [i % 2 ? 0.4 : 1, Math.PI * (i / 5 - 0.5)]).map(([r, a]) => [r * Math.cos(a), r * Math.sin(a)]);
  const CORNERS = {
    triangle: [[-1, 0.8], [1, 0.8], [0, -1]],
    inverted_triangle: [[-1, -0.8], [1, -0.8], [0, 1]],
    square: [[-1, -1], [1, -1], [1, 1], [-1, 1]],
    diamond: [[0, -1], [0.8, 0], [0, 1], [-0.8, 0]],
    plus: [[-1, -0.35], [-0.35, -0.35], [-0.35, -1], [0.35, -1], [0.35, -0.35], [1, -0.35], [1, 0.35], [0.35, 0.35], [0.35, 1], [-0.35, 1], [-0.35, 0.35], [-1, 0.35]],
    star,
  };
  CORNERS.x = CORNERS.plus.map(([a, b]) => [(a - b) * 0.7, (a + b) * 0.7]);
  let rows = null, groups = [], x = [], y = [], wrong = [], marks = null, place = null, version = 0;

  // Points of one colour and shape together: the canvas is told of each colour once.
  function use(drawn) {
    const {colour, shape} = points.data, found = new Map();
    rows = drawn || Array.from(colour, (_, i) => i);
    rows.forEach((row, i) => {
      const key = colour[row] + shape[row];
      if (!found.has(key)) found.set(key, {colour: colour[row], corners: CORNERS[shape[row]], members: []});
      found.get(key).members.push(i);
    });
    groups = [...found.values()];
    wrong = new Uint8Array(rows.length);
  }
  function outline(context, corners, px, py, size) {
    if (!corners) { context.moveTo(px + size, py); context.arc(px, py, size, 0, 2 * Math.PI); return; }
    corners.forEach(([a, b], i) => context[i ? "lineTo" : "moveTo"](px + a * size, py + b * size));
    context.closePath();
  }
  function cover() {
    const view = Bokeh.index.find_one(space), bbox = view && view.frame.bbox;
    if (!bbox || !bbox.width) return;  // Bokeh has not yet found its place on the page
    const inner = view.el.getBoundingClientRect(), outer = holder.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    // One pixel on each side is left to the frame's line.
    const width = bbox.width - TOOLS, height = bbox.height - 2;
    const left = inner.left - outer.left + bbox.left + 1, top = inner.top - outer.top + bbox.top + 1;
    place = {width, height, frame: bbox, ratio};
    Object.assign(canvas.style, {left: left + "px", top: top + "px", width: width + "px", height: height + "px"});
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  function draw() {
    if (!place) cover();
    canvas.hidden = !place;
    if (!place) return;
    const {width, height, frame, ratio} = place, {x_range: across, y_range: up} = space;
    const context = canvas.getContext("2d"), size = look.size / 2;
    const sx = frame.width / (across.end - across.start), sy = frame.height / (up.end - up.start);
    const px = (v) => (v - across.start) * sx - 1, py = (v) => (up.end - v) * sy - 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const chosen = new Set(points.selected.indices);
    for (const {colour, corners, members} of groups) {
      context.fillStyle = colour;
      for (const i of members) {
        context.globalAlpha = !chosen.size ? 0.75 : chosen.has(rows[i]) ? 1 : 0.14;
        context.beginPath();
        outline(context, corners, px(x[i]), py(y[i]), size);
        context.fill();
        if (wrong[i] && (!chosen.size || chosen.has(rows[i]))) {
          context.globalAlpha = 1;
          context.strokeStyle = look.wrong;
          context.lineWidth = 1.6;
          context.stroke();
        }
      }
    }
    context.globalAlpha = 1;
    context.strokeStyle = "#888888";
    context.lineWidth = 2.2;
    for (let i = 0; marks && i < marks.x.length; i++) {
      context.beginPath();
      context.arc(px(marks.x[i]), py(marks.y[i]), marks.size[i] / 2, 0, 2 * Math.PI);
      context.stroke();
    }
  }
  function hide() { canvas.hidden = true; place = null; }
  window.addEventListener("resize", () => { if (place) { place = null; draw(); } });
  return {
    use,
    hide,
    show(found, rings) {
      const same = !found.x && found.wrong && found.wrong.every((value, i) => value === wrong[i]);
      if (found.x) { x = found.x; y = found.y; }
      if (found.wrong) wrong = found.wrong;
      if (rings) marks = rings;
      if (!x.length || same || (!found.x && !place)) return;
      version += 1;
      draw();
    },
    // Once Bokeh has drawn all points: unless something newer was sketched meanwhile.
    end(then) {
      const mine = version, view = Bokeh.index.find_one(space);
      const painted = () => {
        view.repainted.disconnect(painted);
        if (mine === version) hide();
        then();
      };
      if (view) view.repainted.connect(painted); else then();
    },
  };
}
