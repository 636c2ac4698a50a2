// All histograms in one plot: the step curves of this field, with a logarithmic count axis.

function histogram() {
  const state = { log: data.scale.log, width: data.scale.width };
  let shown = [], edges = [];

  const top = () => Math.max(data.scale.max, ...bounds(data.scale.max)) * (state.log ? 1.1 : 1.02);
  const spec = {
    domain() {
      if (!state.log) return [0, top()];
      const lows = data.series.map((series) => (series.bins.length ? series.bins[0][0] * series.bins[0][1][0] : Infinity));
      return [Math.max(Math.min(...lows) * 0.85, state.width / 2), Math.max(top(), state.width * 2)];
    },
    latencies: "x",
    log: () => state.log,
    height: (width) => Math.round(Math.max(260, Math.min(440, width * 0.5))),
    make(size, [min, max]) {
      shown = curves().filter((curve) => curve.shown);
      shown.forEach((curve) => { curve.bins = binned(curve.members, state.width); });
      edges = columnEdges(min, max, state.width, size.width / size.k, state.log);
      const heights = shown.map((curve) => columnHeights(curve.bins, edges));
      const highest = Math.max(2, ...heights.map((each) => each.reduce((a, b) => Math.max(a, b || 0), 0)));
      const range = [FLOOR, highest * 1.4];
      return {
        focus: true,
        data: [edges, ...heights],
        series: [{}, ...shown.map((curve) => ({
          stroke: curveColour(curve.style),
          width: (shown.length > 24 ? 1.2 : 1.8) * size.k,
          dash: DASHES[curve.style.dash].split(" ").filter(Boolean).map((n) => n * size.k),
          paths: uPlot.paths.stepped({ align: 1 }),
          points: { show: false },
        }))],
        scales: { y: { distr: 3, log: 10, range: () => range } },
        axes: [
          {
            label: timed("latency"),
            size: 34 * size.k,
            space: 76 * size.k,
            ...(state.log ? logAxis([min, max], size.width / size.k - 76, 54) : { values: (u, ticks) => ticks.map((tick) => span(tick, 5)) }),
          },
          { size: 52 * size.k, label: "samples per " + span(state.width), ...logAxis(range, size.height / size.k - 60, 24), values: (u, ticks) => ticks.map(countTick) },
        ],
      };
    },
    tip(u, idx) {
      if (idx >= edges.length - 1 || !shown.length) return null;
      const [from, to] = [edges[idx], edges[idx + 1]];
      const start = from < state.width ? 0 : from;
      const rows = shown
        .map((curve, k) => ({ style: curve.style, name: curve.name, n: samplesBetween(curve.bins, start, to), near: u.series[k + 1]._focus === true && shown.length > 1 }))
        .filter((row) => row.n > 0 || row.near)
        .sort((a, b) => b.near - a.near || b.n - a.n);
      if (!rows.length) return null;
      rows.forEach((row) => { row.figure = count(row.n); });
      const head = to - start <= state.width * 1.001 ? `${span(start, 6)} to ${span(to, 6)}` : `${span(start, 4)} to ${span(to, 4)}`;
      return [node("div", { class: "head" }, head + ": samples"), tipRows(rows)];
    },
  };
  const made = chart(byId("histogram-plot"), spec);

  const widths = [];
  for (let width = data.scale.finest, k = 0; widths.length < 8 && width <= data.scale.max; k++) {
    widths.push(width);
    width = data.scale.finest * [1, 2, 5][(k + 1) % 3] * Math.pow(10, Math.floor((k + 1) / 3));
  }
  if (!widths.includes(state.width)) widths.push(state.width);
  widths.sort((a, b) => a - b);
  const select = node("select", { onchange: () => { state.width = Number(select.value); made.reset(); } },
    ...widths.map((width) => node("option", { value: width, selected: width === state.width }, span(width))));

  made.buttons.append(node("button", {
    type: "button", class: "plain", title: "Where 99.9 % of the samples are", onclick: () => made.zoomTo(0, data.scale.bulk * 1.3),
  }, "Bulk"));
  byId("histogram-controls").append(
    made.buttons,
    checkbox("logarithmic latency axis", state.log, (on) => { state.log = on; made.reset(); }),
    node("label", {}, "bins of", select),
    ...choiceControls(),
    node("span", { class: "hint" }, (matchMedia("(pointer: coarse)").matches ? "Two fingers zoom, one shows values." : "Drag over the plot to zoom.") + " In the legend: click for on and off, double-click for one alone."));
  legend(byId("histogram-legend"), (k) => highlight(made, shown, k));
  choice.listeners.push(made.draw);
  made.draw();
}

/** Makes one curve stand out; `k` is its place among all curves of the choice. */
function highlight(made, shown, k) {
  const plot = made.current();
  const key = k == null ? null : curves()[k]?.key;
  const place = shown.findIndex((curve) => curve.key === key);
  if (plot) plot.setSeries(place < 0 ? null : place + 1, { focus: true });
}
