// Latency by percentile, over log10(1 / (1 - p)): each further nine takes the same space.

function percentiles() {
  const hasCorrected = data.series.some((series) => series.corrected);
  const state = { log: data.scale.log, corrected: hasCorrected };
  let drawn = [];

  /** Points of one curve: x and latency, ending at the maximum. */
  function points(values, samples, max) {
    const line = values.map((latency, k) => [k / data.per_decade, latency]);
    if (samples > 0 && max != null) line.push([Math.log10(samples), max]);
    return line;
  }
  function sum(curve, field) { return curve.members.reduce((total, member) => total + member[field], 0); }
  function lines() {
    const all = [];
    for (const curve of curves().filter((each) => each.shown)) {
      const one = curve.members.length === 1 ? curve.members[0] : null;
      const samples = sum(curve, "count");
      const max = Math.max(...curve.members.map((member) => member.max ?? -Infinity));
      if (!samples) continue;
      const plain = one ? one.percentiles : curve.group.together || [];
      all.push({ curve, name: curve.name, line: points(plain, samples, max), support: Math.log10(samples / 10), corrected: false });
      const corrected = one ? one.corrected : curve.group.together_corrected;
      if (state.corrected && corrected) {
        all.push({ curve, name: curve.name + ", corrected", line: points(corrected, sum(curve, "corrected_count"), max), support: null, corrected: true });
      }
    }
    return all;
  }
  const label = (x) => {
    const share = 100 * (1 - Math.pow(10, -x));
    return (x < 1 ? share.toFixed(x < 0.5 ? 0 : 1) : share.toFixed(Math.max(0, Math.ceil(x) - 1) + (Number.isInteger(x) ? 0 : 1))).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "") + " %";
  };
  const spec = {
    domain: () => [0, Math.max(1, ...curves().map((curve) => Math.log10(Math.max(1, sum(curve, state.corrected ? "corrected_count" : "count"))))) + 0.05],
    latencies: "y",
    log: () => false,
    height: (width) => Math.round(Math.max(240, Math.min(380, width * 0.42))),
    make(size, [min, max]) {
      drawn = lines();
      const table = uPlot.join(drawn.map((each) => [each.line.map((point) => point[0]), each.line.map((point) => positive(point[1], state.log))]));
      const values = drawn.flatMap((each) => each.line.filter((point) => point[0] >= min && point[0] <= max).map((point) => point[1]));
      // The corrected view holds latencies down to nothing: they are not what the plot is for.
      const plain = drawn.filter((each) => !each.corrected).map((each) => each.line[0][1]);
      const low = (min > 0.01 ? values : plain).reduce((a, b) => Math.min(a, b), Number.MAX_SAFE_INTEGER), worst = values.reduce((a, b) => Math.max(a, b), 1);
      const high = Math.max(worst, ...bounds(worst));
      const range = state.log ? [Math.max(1, low * 0.8), Math.max(10, high * 1.25)] : [0, high * 1.05];
      return {
        focus: true,
        data: drawn.length ? table : [[min, max]],
        series: [{}, ...drawn.map((each) => ({
          stroke: curveColour(each.curve.style),
          width: 1.8 * size.k,
          dash: (each.corrected ? [2, 3] : DASHES[each.curve.style.dash].split(" ").filter(Boolean).map(Number)).map((n) => n * size.k),
          spanGaps: true,
          points: { show: false },
        }))],
        scales: { y: { distr: state.log ? 3 : 1, log: 10, range: () => range } },
        axes: [
          { label: "share of samples at or below", size: 34 * size.k, splits: () => [0, Math.log10(2), 1, 2, 3, 4, 5, 6, 7, 8, 9].filter((x) => x >= min && x <= max && (x !== Math.log10(2) || size.width / size.k * x / (max - min) > 48)), values: (u, ticks) => ticks.map(label) },
          latencyAxis(state.log, range, size),
        ],
        draw: (u) => rings(u, drawn.map((each) => ({ x: each.support, colour: curveColour(each.curve.style), y: each.support == null ? null : between(each.line, each.support, state.log) })), 3.5 * size.k),
      };
    },
    tip(u, idx) {
      const x = u.data[0][idx];
      if (x == null || !drawn.length) return null;
      const rows = drawn
        .map((each, k) => ({ style: each.curve.style, name: each.name, latency: x <= each.line[each.line.length - 1][0] ? at(each.line, x) : null, near: u.series[k + 1]._focus === true && drawn.length > 1 }))
        .filter((row) => row.latency != null)
        .sort((a, b) => b.near - a.near || b.latency - a.latency);
      rows.forEach((row) => { row.figure = micros(row.latency); });
      return rows.length ? [node("div", { class: "head" }, label(x) + " at or below"), tipRows(rows)] : null;
    },
  };
  const made = chart(byId("percentiles-plot"), spec);
  const controls = [made.buttons, checkbox("logarithmic latency axis", state.log, (on) => { state.log = on; made.draw(); })];
  if (hasCorrected) controls.push(checkbox("corrected curves (dotted)", true, (on) => { state.corrected = on; made.draw(); }));
  byId("percentiles-controls").append(...controls, ...choiceControls());
  legend(byId("percentiles-legend"), (k) => highlight(made, drawn.map((each) => each.curve), k));
  choice.listeners.push(made.draw);
  made.draw();
}

/** The latency of a curve of points at x. */
function at(line, x) {
  const place = line.findIndex((point) => point[0] >= x - 1e-9);
  return place < 0 ? null : line[place][1];
}

/** The height of the drawn line of points at x. */
function between(line, x, log) {
  const place = line.findIndex((point) => point[0] >= x - 1e-9);
  if (place <= 0) return null;
  const [[x0, y0], [x1, y1]] = [line[place - 1], line[place]];
  const share = x1 > x0 ? (x - x0) / (x1 - x0) : 1;
  return log && y0 > 0 ? y0 * Math.pow(y1 / y0, share) : y0 + (y1 - y0) * share;
}

function positive(value, log) { return log && value < 1 ? 1 : value; }

function rings(u, places, radius) {
  for (const { x, y, colour: stroke } of places) {
    if (x == null || y == null || x < u.scales.x.min || x > u.scales.x.max) continue;
    const [left, top] = [u.valToPos(x, "x", true), u.valToPos(positive(y, u.scales.y.distr === 3), "y", true)];
    u.ctx.save();
    u.ctx.setLineDash([]);
    u.ctx.beginPath();
    u.ctx.arc(left, top, radius * devicePixelRatio, 0, 2 * Math.PI);
    u.ctx.fillStyle = colour("bg");
    u.ctx.fill();
    u.ctx.lineWidth = 1.8 * devicePixelRatio;
    u.ctx.strokeStyle = stroke;
    u.ctx.stroke();
    u.ctx.restore();
  }
}

