// A kernel under a slider: plain script and canvas, no library, no server, works offline.
// <figure class="kernel-slider" data-views="gram spectrum" data-sliders="gamma" data-kernels="rbf">
// What is drawn is kept in figure.kernel, where a test compares it with NumPy and mercer.
(() => {
  "use strict";
  const N = 40, SIZE = 440, GRID = 44;
  const EPS = 2 ** -52;
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

  // Two half moons, twenty points each, with a little unevenness in place of noise.
  const X = [], y = [];
  for (let i = 0; i < N; i++) {
    const upper = i < N / 2, t = Math.PI * (i % (N / 2)) / (N / 2 - 1);
    const uneven = [0.09 * Math.sin(7 * i), 0.09 * Math.cos(11 * i)];
    const moon = upper ? [Math.cos(t), Math.sin(t)] : [1 - Math.cos(t), 0.5 - Math.sin(t)];
    X.push([moon[0] - 0.5 + uneven[0], moon[1] - 0.25 + uneven[1]]);
    y.push(upper ? 1 : -1);
  }

  const KERNELS = {
    rbf: { name: "RBF: exp(-γ |x - z|²)", f: (g, x, z) => Math.exp(-g * ((x[0] - z[0]) ** 2 + (x[1] - z[1]) ** 2)) },
    polynomial: { name: "polynomial: (γ x·z + 1)³", f: (g, x, z) => (g * dot(x, z) + 1) ** 3 },
    sigmoid: { name: "sigmoid: tanh(γ x·z - 1)", f: (g, x, z) => Math.tanh(g * dot(x, z) - 1) },
    distance: { name: "distance: 1 - γ |x - z|²", f: (g, x, z) => 1 - g * ((x[0] - z[0]) ** 2 + (x[1] - z[1]) ** 2) },
  };

  // Eigenvalues, largest first, and eigenvectors (rows of `vectors`) by Jacobi's rotations.
  function eigen(A) {
    const n = A.length, a = A.map((row) => row.slice());
    const v = a.map((_, i) => a.map((_, j) => (i === j ? 1 : 0)));
    for (let sweep = 0; sweep < 30; sweep++) {
      let off = 0, all = 0;
      for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) { all += a[i][j] ** 2; if (i !== j) off += a[i][j] ** 2; }
      if (off <= EPS * EPS * all) break;
      for (let p = 0; p < n - 1; p++) for (let q = p + 1; q < n; q++) {
        if (a[p][q] === 0) continue;
        const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.hypot(theta, 1));
        const c = 1 / Math.hypot(t, 1), s = t * c;
        for (let k = 0; k < n; k++) { const f = a[k][p], g = a[k][q]; a[k][p] = c * f - s * g; a[k][q] = s * f + c * g; }
        for (let k = 0; k < n; k++) { const f = a[p][k], g = a[q][k]; a[p][k] = c * f - s * g; a[q][k] = s * f + c * g; }
        for (let k = 0; k < n; k++) { const f = v[p][k], g = v[q][k]; v[p][k] = c * f - s * g; v[q][k] = s * f + c * g; }
      }
    }
    const order = a.map((_, i) => i).sort((i, j) => a[j][j] - a[i][i]);
    return { values: order.map((i) => a[i][i]), vectors: order.map((i) => v[i]) };
  }

  // Everything that the pictures need, from gamma and alpha. `before` keeps the signs of axes.
  function compute(kernel, gamma, alpha, before) {
    const k = (x, z) => KERNELS[kernel].f(gamma, x, z);
    const K = X.map((x) => X.map((z) => k(x, z)));
    const means = K.map((row) => dot(row, row.map(() => 1 / N))), all = dot(means, means.map(() => 1 / N));
    const whole = eigen(K), centred = eigen(K.map((row, i) => row.map((value, j) => value - means[i] - means[j] + all)));
    const follow = (space, earlier) => space.vectors.slice(0, 2).forEach((u, j) => {
      const sign = earlier ? dot(u, earlier.vectors[j]) : dot(u, y);
      if (sign < 0) u.forEach((value, i) => { u[i] = -value; });
    });
    follow(whole, before && before.whole);
    follow(centred, before && before.centred);
    const rank = whole.values.filter((value) => value > N * EPS * whole.values[0]).length;
    const kept = whole.vectors.slice(0, rank).map((u, j) => [u, 1 / Math.sqrt(whole.values[j])]);
    const coef = X.map((_, i) => whole.vectors.reduce((sum, u, j) => sum + u[i] * dot(u, y) / (whole.values[j] + alpha), 0));
    const column = (z) => X.map((x) => k(x, z));
    const coordinates = (z) => { const kz = column(z); return kept.map(([u, scale]) => scale * dot(u, kz)); };
    const score = (z, j) => {
      const kz = column(z), mean = dot(kz, kz.map(() => 1 / N));
      return dot(centred.vectors[j], kz.map((value, i) => value - mean - means[i] + all)) / Math.sqrt(centred.values[j]);
    };
    return {
      X, y, K, kernel, gamma, alpha, rank, whole, centred, values: whole.values, coordinates, score, coef,
      predict: (z) => dot(coef, column(z)),
      residual: (z) => { const phi = coordinates(z); return k(z, z) - dot(phi, phi); },
    };
  }

  // --- drawing ------------------------------------------------------------------------------------

  function colours(figure) {
    const text = getComputedStyle(figure).color, light = text.match(/\d+/g).slice(0, 3).reduce((s, v) => s + +v, 0) > 384;
    return { text, blue: light ? [86, 180, 233] : [0, 114, 178], orange: light ? [230, 159, 0] : [213, 94, 0] };
  }
  const rgba = (c, alpha = 1) => `rgba(${c.join(",")},${alpha})`;

  function scatter(ctx, points, col) {
    const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
    const mid = [xs, ys].map((v) => (Math.min(...v) + Math.max(...v)) / 2);
    const half = 1.12 * Math.max(...[xs, ys].map((v) => (Math.max(...v) - Math.min(...v)) / 2), 1e-12);
    dots(ctx, points.map((p) => [(p[0] - mid[0]) / half, (p[1] - mid[1]) / half]), col);
  }
  function dots(ctx, points, col) {
    points.forEach((p, i) => {
      ctx.beginPath();
      ctx.arc(SIZE * (1 + p[0]) / 2, SIZE * (1 - p[1]) / 2, 9, 0, 7);
      ctx.fillStyle = rgba(y[i] > 0 ? col.blue : col.orange);
      ctx.fill();
      ctx.lineWidth = 2; ctx.strokeStyle = "rgba(128,128,128,.9)"; ctx.stroke();
    });
  }
  const REACH = 1.75;
  // A function on the plane: a colour for each sign, a line where it is zero.
  function field(ctx, f, col, contour, shade = col.blue) {
    const step = SIZE / GRID, at = [];
    for (let i = 0; i <= GRID; i++) at.push(Array.from({ length: GRID + 1 }, (_, j) => f([REACH * (2 * j / GRID - 1), REACH * (1 - 2 * i / GRID)])));
    const top = Math.max(...at.flat().map(Math.abs), 1e-12);
    for (let i = 0; i < GRID; i++) for (let j = 0; j < GRID; j++) {
      const value = (at[i][j] + at[i + 1][j] + at[i][j + 1] + at[i + 1][j + 1]) / 4;
      ctx.fillStyle = rgba(value > 0 ? shade : col.orange, 0.75 * Math.min(1, Math.abs(value) / top) ** 0.7);
      ctx.fillRect(j * step, i * step, step, step);
    }
    if (contour) {
      ctx.strokeStyle = col.text; ctx.lineWidth = 3; ctx.beginPath();
      for (let i = 0; i < GRID; i++) for (let j = 0; j < GRID; j++) {
        const corner = [[i, j], [i, j + 1], [i + 1, j + 1], [i + 1, j]], cut = [];
        corner.forEach(([r, c], m) => {
          const [s, d] = corner[(m + 1) % 4], p = at[r][c], q = at[s][d];
          if (p > 0 !== q > 0) { const w = p / (p - q); cut.push([(c + w * (d - c)) * step, (r + w * (s - r)) * step]); }
        });
        for (let m = 0; m + 1 < cut.length; m += 2) { ctx.moveTo(...cut[m]); ctx.lineTo(...cut[m + 1]); }
      }
      ctx.stroke();
    }
    dots(ctx, X.map((x) => [x[0] / REACH, x[1] / REACH]), col);
  }

  const short = (value) => (Math.abs(value) >= 0.01 && Math.abs(value) < 1000 ? String(+value.toPrecision(3)) : value.toExponential(1));
  const VIEWS = {
    gram: {
      title: "kernel matrix", say: (m) => `entries from ${short(Math.min(...m.K.flat()))} to ${short(Math.max(...m.K.flat()))}`,
      draw(ctx, m, col) {
        const top = Math.max(...m.K.flat().map(Math.abs)), step = SIZE / N;
        m.K.forEach((row, i) => row.forEach((value, j) => {
          ctx.fillStyle = rgba(value < 0 ? col.orange : col.blue, Math.abs(value) / top);
          ctx.fillRect(j * step, i * step, step, step);
        }));
      },
    },
    spectrum: {
      title: "eigenvalues", say: (m) => `smallest ${short(m.values[N - 1])}; rank ${m.rank} of ${N}`,
      draw(ctx, m, col) {
        const top = Math.max(...m.values.map(Math.abs)), floor = N * EPS;
        const high = (value) => SIZE * Math.min(1, 0.04 - 0.92 * Math.log10(Math.max(Math.abs(value) / top, 1e-17)) / 17);
        ctx.fillStyle = "rgba(128,128,128,.25)"; ctx.fillRect(0, high(floor * top), SIZE, SIZE);
        ctx.fillStyle = col.text; ctx.font = "24px sans-serif"; ctx.fillText("rounding", 10, SIZE - 12);
        m.values.forEach((value, i) => {
          const noise = Math.abs(value) <= floor * top;
          ctx.beginPath(); ctx.arc(SIZE * (i + 0.7) / (N + 0.4), high(value), 6.5, 0, 7);
          ctx.fillStyle = noise ? "rgba(128,128,128,.8)" : rgba(value < 0 ? col.orange : col.blue); ctx.fill();
        });
      },
    },
    map: {
      title: "map, coordinates 1 and 2", say: (m) => `${m.rank} coordinates`,
      draw: (ctx, m, col) => scatter(ctx, m.X.map((_, i) => [0, 1].map((j) => m.whole.vectors[j][i] * Math.sqrt(m.values[j]))), col),
    },
    residual: {
      title: "unseen: ρ²(z)", say: (m) => `at the centre ${short(Math.max(0, m.residual([0, 0])))}`,
      draw: (ctx, m, col) => field(ctx, (z) => Math.max(0, m.residual(z)), col, false, [128, 128, 128]),
    },
    pca: {
      title: "principal components 1 and 2", say: (m) => {
        const sum = m.centred.values.reduce((s, v) => s + Math.max(v, 0), 0);
        return `${[0, 1].map((j) => Math.round(100 * m.centred.values[j] / sum)).join(" and ")} % of the variance`;
      },
      draw: (ctx, m, col) => scatter(ctx, m.X.map((_, i) => [0, 1].map((j) => m.centred.vectors[j][i] * Math.sqrt(m.centred.values[j]))), col),
    },
    component: { title: "first component as a function", say: () => "the line is where the score is 0", draw: (ctx, m, col) => field(ctx, (z) => m.score(z, 0), col, true) },
    boundary: {
      title: "ridge on ±1", say: (m) => `${m.X.filter((x, i) => m.predict(x) * m.y[i] > 0).length} of ${N} on their side`,
      draw: (ctx, m, col) => field(ctx, m.predict, col, true),
    },
  };

  // --- the page -----------------------------------------------------------------------------------

  const make = (parent, tag, properties = {}) => parent.appendChild(Object.assign(document.createElement(tag), properties));
  const SLIDERS = { gamma: ["gamma", -2, 2, 0], alpha: ["alpha (the penalty)", -6, 1, -2] };

  function start(figure) {
    if (figure.kernel) return; // two sliders on a page load the script twice
    const given = (name, otherwise) => (figure.dataset[name] || otherwise).split(" ");
    const kernels = given("kernels", "rbf"), controls = make(figure, "div", { className: "controls" }), inputs = {};
    let chosen = null;
    if (kernels.length > 1) {
      chosen = make(make(controls, "label", { textContent: "kernel " }), "select", { name: "kernel" });
      kernels.forEach((kernel) => make(chosen, "option", { value: kernel, textContent: KERNELS[kernel].name }));
    }
    for (const name of given("sliders", "gamma")) {
      const [text, low, high, at] = SLIDERS[name], label = make(controls, "label", { textContent: `${text} ` });
      const input = make(label, "input", { type: "range", name, min: low, max: high, step: 0.05 });
      input.value = at;
      inputs[name] = { input, shown: make(label, "output") };
    }
    const panels = given("views", "gram spectrum").map((name) => {
      const panel = make(make(figure, "div", { className: "panel" }), "canvas", { width: SIZE, height: SIZE });
      panel.setAttribute("role", "img");
      make(panel.parentNode, "b", { textContent: VIEWS[name].title });
      return { view: VIEWS[name], panel, words: make(panel.parentNode, "span") };
    });
    function draw() {
      const value = (name, otherwise) => (inputs[name] ? 10 ** inputs[name].input.value : otherwise);
      for (const { input, shown } of Object.values(inputs)) {
        shown.textContent = short(10 ** input.value);
        input.setAttribute("aria-valuetext", shown.textContent);
      }
      const kernel = chosen ? chosen.value : kernels[0], before = figure.kernel;
      figure.kernel = compute(kernel, value("gamma", 1), value("alpha", 0.01), before && before.kernel === kernel ? before : null);
      paint();
    }
    function paint() {
      const col = colours(figure);
      for (const { view, panel, words } of panels) {
        const ctx = panel.getContext("2d");
        ctx.clearRect(0, 0, SIZE, SIZE);
        view.draw(ctx, figure.kernel, col);
        words.textContent = view.say(figure.kernel);
        panel.setAttribute("aria-label", `${view.title}: ${words.textContent}`);
      }
    }
    let waiting = false;
    controls.addEventListener("input", () => {
      if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); }
    });
    new MutationObserver(paint).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
    draw();
  }

  const ready = () => document.querySelectorAll("figure.kernel-slider").forEach(start);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready); else ready();
})();
