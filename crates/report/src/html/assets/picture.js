// A period of time: lanes of CPUs, threads and devices, drawn anew for what is in view. Items narrower than a pixel share it,
// so that the drawing stays small at every zoom; what is under the pointer is found among all of them.

const LANE = { row: 17, gap: 3, values: 34, head: 26, axis: 24 };

/** An element of SVG with attributes and children. */
function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) if (value != null) made.setAttribute(name, value);
  made.append(...children.filter((child) => child != null));
  return made;
}

/** A time relative to the focus's beginning, with its sign. */
function relative(ns) { return (ns < 0 ? "−" : "+") + span(Math.abs(ns), 6); }

/** Ticks at 1, 2 or 5 times a power of ten, at least `apart` of them from each other. */
function ticks(from, to, least) {
  const power = Math.pow(10, Math.floor(Math.log10(Math.max(least, 1))));
  const step = [1, 2, 5, 10].map((k) => k * power).find((each) => each >= least) || 10 * power;
  const all = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
  return all;
}

function pictures(place, all) {
  let picture = null, view = null, layout = null;
  const svg = shape("svg", { class: "picture", tabindex: "0", role: "application", "aria-roledescription": "timeline" });
  const tip = node("div", { class: "tip", role: "status" });
  const notes = byId("picture-notes");
  place.append(svg, tip);

  const width = () => (printing ? 900 : Math.max(320, Math.floor(place.clientWidth)));
  const labels = () => Math.round(Math.min(190, width() * 0.22));
  const x = (time) => labels() + ((time - view[0]) / (view[1] - view[0])) * (width() - labels());
  const timeAt = (px) => view[0] + ((px - labels()) / (width() - labels())) * (view[1] - view[0]);

  /** Where every lane stands. */
  function arrange() {
    let y = LANE.axis + 4, group = null;
    const lanes = picture.lanes.map((lane) => {
      const first = lane.group !== group;
      if (first && group !== null) y += 6;
      group = lane.group;
      const height = lane.kind === "values" ? LANE.values : lane.rows * LANE.row;
      const placed = { lane, y, height, first };
      y += height + LANE.gap;
      return placed;
    });
    return { lanes, height: y + 4 };
  }

  function draw() {
    layout = arrange();
    const w = width(), left = labels();
    svg.setAttribute("width", w);
    svg.setAttribute("height", layout.height);
    svg.setAttribute("viewBox", `0 0 ${w} ${layout.height}`);
    svg.setAttribute("aria-label", `${picture.title}; arrows move, plus and minus zoom, 0 shows all`);
    const clip = shape("clipPath", { id: "picture-clip" }, shape("rect", { x: left, y: 0, width: w - left, height: layout.height }));
    const inside = shape("g", { "clip-path": "url(#picture-clip)" });
    const outside = shape("g", {});
    axis(inside, left, w);
    inside.append(shape("rect", { class: "focus", x: x(0), y: LANE.axis, width: Math.max(1, x(picture.end) - x(0)), height: layout.height - LANE.axis }));
    for (const placed of layout.lanes) drawLane(placed, inside, outside, left, w);
    arrows(inside);
    edges(inside, left, w);
    svg.replaceChildren(clip, inside, outside);
    place.dataset.items = inside.querySelectorAll(".item").length;
    entry.spec.drawn = true;
    announce();
  }

  function axis(into, left, w) {
    const least = ((view[1] - view[0]) / (w - left)) * 90;
    for (const at of ticks(view[0], view[1], least)) {
      into.append(shape("path", { class: "tick", d: `M${x(at)} ${LANE.axis - 4}V${layout.height}` }));
      if (x(at) < left + 24 || x(at) > w - 24) continue;
      into.append(shape("text", { class: "time", x: x(at), y: 13, "text-anchor": "middle" }, at === 0 ? "0" : relative(at)));
    }
  }

  /** The focus's beginning and end. */
  function edges(into, left, w) {
    const [from, to] = [x(0), x(picture.end)];
    for (const [at, label, side] of [[from, picture.labels[0], "end"], [to, picture.labels[1], "start"]]) {
      if (at < left || at > w) continue;
      into.append(shape("path", { class: "edge", d: `M${at} ${LANE.axis - 6}V${layout.height}` }));
      into.append(shape("text", { class: "edge", x: at + (side === "end" ? -3 : 3), y: LANE.axis, "text-anchor": side }, label));
    }
  }

  function drawLane({ lane, y, height, first }, inside, outside, left, w) {
    const room = Math.floor((left - (first ? 12 : 18)) / (first ? 7.2 : 6.3));
    const cut = (text) => (text.length > room ? text.slice(0, Math.max(1, room - 1)) + "…" : text);
    const label = first ? lane.group : "  " + lane.title;
    const line = shape("text", { class: first ? "group" : "lane", x: first ? 2 : 12, y: y + 12.5 }, cut(label));
    line.append(shape("title", {}, `${lane.group}: ${lane.title}`));
    outside.append(line);
    if (first && lane.hue != null) outside.append(shape("rect", { class: "k" + lane.hue, x: left - 7, y: y + 2, width: 4, height: 12 }));
    inside.append(shape("path", { class: first ? "rule first" : "rule", d: `M${left} ${y - LANE.gap / 2}H${w}` }));
    if (lane.kind === "values") values(lane, y, height, inside); else spans(lane, y, inside);
  }

  function spans(lane, y, inside) {
    const last = [];
    for (const item of lane.items) {
      const [from, length, row, look, word] = item;
      if (from + length < view[0] || from > view[1]) continue;
      const a = Math.max(x(from), labels() - 2), b = Math.min(x(from + length), width() + 2);
      const top = y + row * LANE.row;
      const pixel = Math.floor(b);
      if (b - a < 1 && last[row] === pixel) continue;
      last[row] = pixel;
      const thin = lane.kind === "state" && look > 7;
      const mark = length === 0
        ? shape("path", { class: "item instant k" + look, d: `M${a} ${top + 1}l3.5 6.5l-3.5 6.5l-3.5 -6.5z` })
        : shape("rect", { class: "item k" + look, x: a, y: top + (thin ? 5 : 1), width: Math.max(1, b - a), height: thin ? 6 : LANE.row - 4 });
      inside.append(mark);
      const letters = Math.floor((b - a - 6) / 6.4);
      const text = picture.words[word];
      if (!thin && length && letters >= Math.min(3, text.length)) {
        inside.append(shape("text", { class: "word", x: a + 3, y: top + 12 }, text.length > letters ? text.slice(0, letters - 1) + "…" : text));
      }
    }
  }

  function values(lane, y, height, inside) {
    const all = lane.items.map((item) => item[5]);
    const [low, high] = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
    const at = (value) => y + height - 4 - (high > low ? (value - low) / (high - low) : 0.5) * (height - 10);
    let path = "";
    for (const item of lane.items) path += (path ? `H${x(item[0])}V` : `M${x(item[0])} `) + at(item[5]);
    inside.append(shape("path", { class: "curve item" + (lane.hue != null ? " c" + lane.hue : ""), d: path }));
    for (const item of lane.items) {
      if (item[0] >= view[0] && item[0] <= view[1]) inside.append(shape("circle", { class: "dot", cx: x(item[0]), cy: at(item[5]), r: 2 }));
    }
    inside.append(shape("text", { class: "scale", x: labels() + 3, y: y + (high > low ? 9 : height / 2 + 4) }, count(high)));
    if (high > low) inside.append(shape("text", { class: "scale", x: labels() + 3, y: y + height - 2 }, count(low)));
  }

  /** Wake-ups, as long as they can be distinguished: all of them, or those of the focus's thread, or none. */
  function arrows(inside) {
    let seen = picture.arrows.filter((arrow) => arrow.at >= view[0] && arrow.at <= view[1]);
    if (seen.length > 16) seen = seen.filter((arrow) => arrow.to === picture.own);
    if (seen.length > 60) return;
    for (const arrow of seen) {
      const [from, to] = [layout.lanes[arrow.from], layout.lanes[arrow.to]];
      const [a, b] = [from.y + LANE.row / 2, to.y + LANE.row / 2];
      const way = b > a ? -4 : 4;
      inside.append(shape("path", { class: "wake", d: `M${x(arrow.at)} ${a}V${b}m-3 ${way}l3 ${-way}l3 ${way}` }, shape("title", {}, arrow.label_text)));
    }
  }

  /** The item at a place: the shortest of those within three pixels. */
  function itemAt(px, py) {
    const placed = layout.lanes.find(({ y, height }) => py >= y - 1 && py < y + height + LANE.gap);
    if (!placed || px < labels()) return null;
    const row = Math.floor((py - placed.y) / LANE.row);
    const time = timeAt(px), near = ((view[1] - view[0]) / (width() - labels())) * 3;
    let best = null;
    for (const item of placed.lane.items) {
      const misses = placed.lane.kind === "values" ? item[0] > time : item[2] !== row || item[0] - near > time || item[0] + item[1] + near < time;
      if (misses) continue;
      if (!best || placed.lane.kind === "values" || item[1] <= best[1]) best = item;
    }
    return { placed, item: best, time };
  }

  function describe({ placed, item, time }) {
    const lane = placed.lane;
    const head = node("div", { class: "hint" }, lane.group === lane.title ? lane.group : `${lane.group} · ${lane.title}`);
    if (!item) return [head, node("div", {}, `at ${relative(time)}`)];
    const [from, length, , , word, value, ...details] = item;
    const lines = [node("div", { class: "head" }, picture.words[word] + (value != null ? `: ${count(value)}` : ""))];
    lines.push(node("div", {}, length ? `${span(length, 6)}, from ${relative(from)} to ${relative(from + length)}` : `at ${relative(from)}`));
    for (let k = 0; k + 1 < details.length; k += 2) lines.push(node("div", { class: "detail" }, `${details[k]}: ${details[k + 1]}`));
    return [head, ...lines];
  }

  function show(event) {
    const box = svg.getBoundingClientRect();
    const found = itemAt(event.clientX - box.left, event.clientY - box.top);
    tip.style.display = found ? "block" : "none";
    if (!found) return;
    tip.replaceChildren(...describe(found));
    const px = event.clientX - box.left, py = event.clientY - box.top;
    const beside = px + 16 + tip.offsetWidth < box.width ? px + 16 : px - 16 - tip.offsetWidth;
    tip.style.left = Math.max(2, Math.min(box.width - tip.offsetWidth - 4, beside)) + "px";
    tip.style.top = Math.max(2, py + 14) + "px";
  }

  /** What is in view stands on the element too: for tests, and for scripts that take pictures. */
  function showRange(range) {
    view = range;
    [svg.dataset.from, svg.dataset.to] = range.map(Math.round);
  }
  function setView(from, to) {
    const [least, most] = [picture.from, picture.to];
    const length = Math.min(Math.max(to - from, 20), most - least);
    const begin = Math.min(Math.max(from, least), most - length);
    showRange([begin, begin + length]);
    tip.style.display = "none";
    later(draw);
  }
  function zoomBy(factor, around = 0.5) {
    const length = view[1] - view[0], centre = view[0] + length * around;
    setView(centre - length * factor * around, centre + length * factor * (1 - around));
  }
  function moveBy(share) {
    const by = (view[1] - view[0]) * share;
    setView(view[0] + by, view[1] + by);
  }
  const whole = () => setView(picture.from, picture.to);
  const focus = () => { const margin = Math.max(picture.end * 0.15, 200); setView(-margin, picture.end + margin); };

  function select(k) {
    picture = all[k];
    chooser.value = String(k);
    notes.textContent = [`0 is ${picture.labels[0]}: ${picture.zero} ns on CLOCK_MONOTONIC.`, ...picture.notes].join(" ");
    showRange([picture.from, picture.to]);
    tip.style.display = "none";
    draw();
  }

  // The wheel belongs to the page until the picture has the focus, or Ctrl is held.
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== svg) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    const around = Math.min(1, Math.max(0, (event.clientX - box.left - labels()) / (width() - labels())));
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) moveBy((event.deltaX || event.deltaY) / 600);
    else zoomBy(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 250), around);
  }, { passive: false });
  const keys = {
    ArrowLeft: () => moveBy(-0.2), ArrowRight: () => moveBy(0.2), a: () => moveBy(-0.2), d: () => moveBy(0.2),
    "+": () => zoomBy(0.6), "=": () => zoomBy(0.6), w: () => zoomBy(0.6), "-": () => zoomBy(1 / 0.6), s: () => zoomBy(1 / 0.6),
    0: whole, Home: whole, f: focus, Escape: () => svg.blur(),
  };
  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  drag(svg, { left: labels, zoom: (a, b) => setView(timeAt(a), timeAt(b)), move: (px) => moveBy(-px / (width() - labels())), pinch: zoomBy, pointer: show });
  svg.addEventListener("pointerleave", () => { tip.style.display = "none"; });
  svg.addEventListener("dblclick", whole);
  new ResizeObserver(() => { if (!printing && picture && Number(svg.getAttribute("width")) !== width()) later(draw); }).observe(place);

  const chooser = node("select", { onchange: () => select(Number(chooser.value)) }, ...all.map((each, k) => node("option", { value: k }, each.title)));
  const button = (text, title, onclick) => node("button", { type: "button", class: "plain", title, "aria-label": title, onclick }, text);
  byId("picture-controls").append(
    node("label", {}, "Show", chooser),
    node("span", { class: "buttons", role: "group", "aria-label": "Zoom" },
      button("+", "Zoom in", () => zoomBy(0.5)), button("−", "Zoom out", () => zoomBy(2)), button("‹", "Move left", () => moveBy(-0.3)),
      button("›", "Move right", () => moveBy(0.3)), button("Interval", "Zoom to the interval from its beginning to its end", focus), button("Whole", "Show everything", whole)),
    node("span", { class: "hint" }, "drag: zoom · Shift and drag: move · wheel: after a click, or with Ctrl · keys: ← → + − 0 f"));
  const entry = { draw: () => picture && draw(), spec: { drawn: false } };
  charts.push(entry);
  select(0);
  return { select };
}

/** Dragging with one pointer marks what is to be seen, with Shift it moves; two fingers zoom. */
function drag(svg, act) {
  const fingers = new Map();
  let begun = null, mark = null;
  const at = (event) => event.clientX - svg.getBoundingClientRect().left;
  const share = (px) => Math.min(1, Math.max(0, (px - act.left()) / (svg.clientWidth - act.left())));
  const done = () => { if (mark) mark.remove(); mark = begun = null; };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    svg.focus({ preventScroll: true });
    fingers.set(event.pointerId, at(event));
    done();
    if (fingers.size === 1 && at(event) >= act.left()) begun = { from: at(event), last: at(event), moves: event.shiftKey || event.pointerType === "touch" };
  });
  svg.addEventListener("pointermove", (event) => {
    if (fingers.size === 2 && fingers.has(event.pointerId)) {
      const apart = () => { const [a, b] = [...fingers.values()]; return [Math.max(8, Math.abs(a - b)), (a + b) / 2]; };
      const [before] = apart();
      fingers.set(event.pointerId, at(event));
      const [now, centre] = apart();
      act.pinch(before / now, share(centre));
      return;
    }
    if (!begun) { act.pointer(event); return; }
    if (begun.moves) { act.move(at(event) - begun.last); begun.last = at(event); return; }
    const [a, b] = [Math.min(begun.from, at(event)), Math.max(begun.from, at(event))];
    if (!mark) svg.append(mark = shape("rect", { class: "selection", y: 0, height: svg.clientHeight }));
    if (!mark.isConnected) svg.append(mark);
    mark.setAttribute("x", Math.max(act.left(), a));
    mark.setAttribute("width", Math.max(0, b - Math.max(act.left(), a)));
  });
  addEventListener("pointerup", (event) => {
    fingers.delete(event.pointerId);
    if (begun && mark) {
      const [a, b] = [Math.min(begun.from, at(event)), Math.max(begun.from, at(event))];
      if (b - a > 5) act.zoom(Math.max(act.left(), a), b);
    } else if (begun && event.target.closest && event.target.closest("svg") === svg) act.pointer(event);
    done();
  });
  addEventListener("pointercancel", (event) => { fingers.delete(event.pointerId); done(); });
}
