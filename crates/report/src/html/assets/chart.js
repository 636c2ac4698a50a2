// A plot in its place: drawn anew whenever its size, the theme or what it shows changes; zoomed by dragging, pinching and
// buttons; with a box that says what is under the pointer.

let printing = false;
const charts = [];

/**
 * `spec` defines what to draw:
 *   domain()         [min, max] of the horizontal axis when nothing is zoomed
 *   log()            whether that axis is logarithmic
 *   height(width)    in CSS pixels
 *   make(size, view) {series, data, scales, axes, bands, draw} for uPlot; sizes are to be multiplied by size.k
 *   tip(u, idx)      nodes for the box, or null
 *   latencies        the axis that latencies are on, for the lines of required bounds and deadlines
 */
function chart(place, spec) {
  let plot = null, view = null;
  const tip = node("div", { class: "tip", role: "status" });

  function clamped(min, max) {
    const [from, to] = spec.domain();
    const least = spec.log() ? min * 1e-4 : (to - from) * 1e-7;
    const a = Math.max(from, min), b = Math.min(to, max);
    return b - a > least ? [a, b] : null;
  }

  function draw() {
    // Print is drawn at twice its size and shrunk by the style sheet, to be sharp.
    const k = printing ? 2 : 1;
    const width = printing ? 680 * k : Math.max(260, Math.floor(place.clientWidth));
    const size = { k, width, height: spec.height(width / k) * k };
    const [min, max] = view || spec.domain();
    const made = spec.make(size, [min, max]);
    if (plot) plot.destroy();
    place.replaceChildren();
    place.classList.toggle("print", printing);
    tip.style.display = "none";
    plot = new uPlot({
      width: size.width,
      height: size.height,
      padding: [8 * k, 24 * k, 0, 0],
      legend: { show: false },
      focus: { alpha: 0.22 },
      cursor: {
        drag: { x: true, y: false, setScale: false, dist: 6 },
        focus: { prox: made.focus ? 14 : -1 },
        points: { show: false },
        y: false,
        bind: { dblclick: () => () => null },
      },
      series: made.series,
      bands: made.bands,
      scales: { x: { time: false, distr: spec.log() ? 3 : 1, log: 10, auto: false, range: () => [min, max] }, ...made.scales },
      axes: made.axes.map((axis) => ({
        stroke: colour("muted"),
        font: 12 * k + "px system-ui, sans-serif",
        labelFont: 12 * k + "px system-ui, sans-serif",
        labelSize: 20 * k,
        labelGap: 2 * k,
        gap: 5 * k,
        grid: { stroke: faded(colour("line"), 70), width: k, filter: (u, ticks) => (axis.log ? ticks.map((tick) => (powerOfTen(tick) ? tick : null)) : ticks) },
        ticks: { stroke: colour("line"), width: k, size: 5 * k },
        ...axis,
      })),
      hooks: {
        setSelect: [(u) => {
          if (u.select.width < 6) return;
          const a = u.posToVal(u.select.left, "x"), b = u.posToVal(u.select.left + u.select.width, "x");
          zoomTo(Math.min(a, b), Math.max(a, b));
        }],
        setCursor: [showTip],
        draw: [made.draw || (() => {}), (u) => boundLines(u, spec.latencies, size.k), () => { spec.drawn = true; announce(); }],
      },
    }, made.data, place);
    place.append(tip);
  }

  function showTip(u) {
    const { idx, left, top } = u.cursor;
    const inside = idx != null && left >= 0 && top >= 0;
    const said = inside ? spec.tip(u, idx) : null;
    tip.style.display = said ? "block" : "none";
    if (!said) return;
    tip.replaceChildren(...said);
    const over = u.over.getBoundingClientRect(), box = place.getBoundingClientRect();
    const x = over.left - box.left + left, room = box.width - tip.offsetWidth - 4;
    const beside = x + 16 + tip.offsetWidth < box.width ? x + 16 : x - 16 - tip.offsetWidth;
    tip.style.left = Math.max(2, Math.min(room, beside)) + "px";
    tip.style.top = Math.max(2, Math.min(box.height - tip.offsetHeight - 4, over.top - box.top + top - tip.offsetHeight / 2)) + "px";
  }

  function zoomTo(min, max) {
    const wanted = clamped(min, max);
    if (wanted) { view = wanted; draw(); }
  }

  function reset() { view = null; draw(); }

  /** Zooms around a place (a share of the axis); factors below 1 come nearer. `shift` moves it, in shares. */
  function zoomBy(factor, around = 0.5, shift = 0) {
    const log = spec.log();
    const into = log ? Math.log : (x) => x, outof = log ? Math.exp : (x) => x;
    const [from, to] = spec.domain();
    const [min, max] = (view || [from, to]).map(into);
    const length = max - min, centre = min + length * around;
    let a = centre - length * around * factor - shift * length, b = a + length * factor;
    const over = Math.max(0, into(from) - a) - Math.max(0, b - into(to));
    a += over; b += over;
    if (b - a >= into(to) - into(from) - 1e-12) reset(); else zoomTo(outof(a), outof(b));
  }

  place.addEventListener("dblclick", reset);
  touch(place, () => plot, zoomBy);
  new ResizeObserver(() => {
    if (!printing && plot && Math.abs(plot.width - place.clientWidth) > 1) later(draw);
  }).observe(place);

  const buttons = node("span", { class: "buttons", role: "group", "aria-label": "Zoom" },
    node("button", { type: "button", class: "plain", "aria-label": "Zoom in", title: "Zoom in (or drag over the plot)", onclick: () => zoomBy(0.5) }, "+"),
    node("button", { type: "button", class: "plain", "aria-label": "Zoom out", title: "Zoom out", onclick: () => zoomBy(2) }, "−"),
    node("button", { type: "button", class: "plain", "aria-label": "Move left", onclick: () => zoomBy(1, 0.5, 0.3) }, "‹"),
    node("button", { type: "button", class: "plain", "aria-label": "Move right", onclick: () => zoomBy(1, 0.5, -0.3) }, "›"),
    node("button", { type: "button", class: "plain", title: "Show everything (or double-click the plot)", onclick: reset }, "Whole"));
  const made = { draw, zoomTo, reset, buttons, spec, current: () => plot, view: () => view };
  charts.push(made);
  return made;
}

/** Bounds that are required of latencies and deadlines, in words, by their place. */
const limits = new Map([
  ...(data.deadlines || []).map((at) => [at, "deadline: " + span(at)]),
  ...(data.bounds || []).map((at) => [at, "required: " + span(at)]),
]);

/** Those that are not far beyond what was measured: there they would press all else aside. */
function bounds(most) { return [...limits.keys()].filter((bound) => bound <= most * 5); }

/** A dashed line at each of them. */
function boundLines(u, axis, k) {
  if (!axis) return;
  const { ctx, bbox } = u, { min, max } = u.scales[axis];
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("bad");
  ctx.lineWidth = 1.4 * k;
  ctx.setLineDash([6 * k, 4 * k]);
  ctx.font = 11 * k + "px system-ui, sans-serif";
  // A label that would touch another one stands a line lower.
  const labels = [], line = 14 * k;
  for (const [bound, text] of [...limits].filter(([each]) => each >= min && each <= max)) {
    const at = u.valToPos(bound, axis, true);
    ctx.beginPath();
    if (axis === "x") { ctx.moveTo(at, bbox.top); ctx.lineTo(at, bbox.top + bbox.height); } else { ctx.moveTo(bbox.left, at); ctx.lineTo(bbox.left + bbox.width, at); }
    ctx.stroke();
    const wide = ctx.measureText(text).width, over = axis === "x" && at + wide + 6 * k > bbox.left + bbox.width;
    ctx.textAlign = axis === "x" && !over ? "left" : "right";
    const x = axis === "x" ? at + (over ? -4 : 4) * k : bbox.left + bbox.width - 4 * k;
    const from = ctx.textAlign === "left" ? x : x - wide;
    let y = axis === "x" ? bbox.top + 11 * k : at - 4 * k;
    const touches = (other) => Math.abs(other.y - y) < line && from < other.to + 4 * k && other.from < from + wide + 4 * k;
    while (labels.some(touches)) y += line;
    labels.push({ from, to: from + wide, y });
    // Legible also where curves are dense.
    ctx.save();
    ctx.setLineDash([]);
    ctx.lineWidth = 3 * k;
    ctx.strokeStyle = colour("bg");
    ctx.strokeText(text, x, y);
    ctx.fillText(text, x, y);
    ctx.restore();
  }
  ctx.restore();
}

/**
 * Ticks of a logarithmic axis from `min` to `max` that is `length` pixels long: at 1, 2, 3, … 10, 20, 30, …; labels on as many
 * of them as stand `apart` pixels or more from each other.
 */
function logAxis([min, max], length, apart) {
  const ticks = [];
  for (let decade = Math.pow(10, Math.floor(Math.log10(min))); decade <= max; decade *= 10) {
    for (let n = 1; n < 10; n++) if (n * decade >= min && n * decade <= max) ticks.push(n * decade);
  }
  const perDecade = length / Math.log10(max / min);
  const wanted = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];
  const fits = (steps) => [...steps, 10].every((step, k, all) => k === 0 || Math.log10(step / all[k - 1]) * perDecade >= apart);
  const steps = wanted.find(fits) || [1];
  const labelled = (tick) => steps.some((step) => powerOfTen(tick / step));
  return { log: true, splits: () => ticks, filter: (u, all) => all, values: (u, all) => all.map((tick) => (labelled(tick) ? span(tick, 5) : "")) };
}

/** A vertical latency axis. */
function latencyAxis(log, range, size) {
  return {
    label: timed("latency"),
    size: 66 * size.k,
    ...(log ? logAxis(range, size.height / size.k - 60, 24) : { values: (u, ticks) => ticks.map((tick) => span(tick, 5)) }),
  };
}

/** Fingers: one moves the pointer's line, two zoom and move. */
function touch(place, plot, zoomBy) {
  const fingers = new Map();
  let before = null;
  const share = (x) => {
    const over = plot().over.getBoundingClientRect();
    return (x - over.left) / over.width;
  };
  const pair = () => {
    const [a, b] = [...fingers.values()];
    return { centre: (share(a.x) + share(b.x)) / 2, apart: Math.max(0.02, Math.abs(share(a.x) - share(b.x))) };
  };
  place.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" || !plot()) return;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    // What is under the finger is drawn anew while it moves; the place stays.
    place.setPointerCapture(event.pointerId);
    before = fingers.size === 2 ? pair() : null;
  });
  place.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId) || !plot()) return;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const over = plot().over.getBoundingClientRect();
    if (fingers.size === 1) plot().setCursor({ left: event.clientX - over.left, top: event.clientY - over.top });
    if (fingers.size === 2 && before) {
      later(() => {
        if (fingers.size !== 2 || !before) return;
        const now = pair();
        zoomBy(before.apart / now.apart, now.centre, now.centre - before.centre);
        before = now;
      });
    }
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    addEventListener(kind, (event) => { fingers.delete(event.pointerId); before = null; });
  }
}

/** Once before the next picture, however often it is asked for. */
const waiting = new Set();
function later(work) {
  if (!waiting.size) requestAnimationFrame(() => {
    const all = [...waiting];
    waiting.clear();
    all.forEach((each) => each());
  });
  waiting.add(work);
}

function drawAll() { charts.forEach((each) => each.draw()); }

/** Says on the root element how many plots stand there: for tests, and for scripts that take pictures. */
function announce() {
  if (charts.every((each) => each.spec.drawn)) root.dataset.ready = "plots:" + charts.length;
}

function followTheme() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  const print = (on) => {
    if (printing === on) return;
    printing = on;
    root.classList.toggle("printing", on);
    drawAll();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
}
