// Histograms of intervals between points and of functions, and the values of points over time: one at a time, chosen by name.

function chooserOf(all, label, choose, first = 0) {
  const chooser = node("select", { onchange: () => choose(Number(chooser.value)) }, ...all.map((each, k) => node("option", { value: k, selected: k === first }, each.name)));
  return node("label", {}, label, chooser);
}

function intervalHistograms(all) {
  let selected = all[0];
  const positiveOnly = () => selected.buckets.filter(([edge]) => edge > 0);
  const spec = {
    domain() {
      const edges = positiveOnly().map(([edge]) => edge);
      const [low, high] = edges.length ? [edges[0], edges[edges.length - 1]] : [1, 10];
      return [Math.max(0.5, low * 0.9), high * 1.1];
    },
    log: () => true,
    height: (width) => Math.round(Math.max(200, Math.min(300, width * 0.3))),
    make(size, [from, to]) {
      const buckets = positiveOnly();
      const edges = buckets.map(([edge]) => edge), counts = buckets.map(([, n]) => n);
      const high = counts.reduce((a, b) => Math.max(a, b), 1) * 1.6;
      return {
        data: [edges, counts],
        series: [{}, { stroke: colour("h0"), fill: faded(colour("h0"), 22), width: 1.4 * size.k, paths: uPlot.paths.bars({ size: [1, 40 * size.k] }), points: { show: false } }],
        scales: { y: { distr: 3, log: 10, range: () => [0.5, high] } },
        axes: [
          { label: timed("took"), size: 34 * size.k, ...logAxis([from, to], size.width / size.k - 90, 64) },
          { label: "how often", log: true, size: 66 * size.k, values: (u, marks) => marks.map(countTick) },
        ],
      };
    },
    tip(u, idx) {
      const [edge, n] = positiveOnly()[idx] || [];
      return edge == null ? null : [node("div", { class: "head" }, `up to ${micros(edge)}`), node("div", {}, `${count(n)} times`)];
    },
  };
  const made = chart(byId("intervals-plot"), spec);
  byId("intervals-controls").append(chooserOf(all, "Interval", (k) => { selected = all[k]; made.reset(); }), made.buttons);
  made.draw();
}

function valueCurves(all) {
  let selected = all[0];
  const middle = () => selected.at.map((at) => (at + selected.width / 2) / 1e9);
  const spec = {
    domain() {
      const times = middle(), half = selected.width / 2e9;
      return [times[0] - half, times[times.length - 1] + half];
    },
    log: () => false,
    height: (width) => Math.round(Math.max(200, Math.min(300, width * 0.3))),
    make(size) {
      const all = [...selected.min, ...selected.max];
      const [low, high] = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
      const margin = (high - low) * 0.06 || 1;
      const main = colour("h0"), thin = { points: { show: false }, stroke: faded(main, 55), width: size.k };
      return {
        data: [middle(), selected.min, selected.mean, selected.max],
        series: [{}, thin, { ...thin, stroke: main, width: 1.6 * size.k, points: { show: selected.at.length < 80, size: 5 * size.k } }, thin],
        bands: [{ series: [3, 1], fill: faded(main, 18) }],
        scales: { y: { range: () => [low - margin, high + margin] } },
        axes: [
          { label: timed("time since the recording began"), size: 34 * size.k, space: 60 * size.k, values: (u, marks) => marks.map((at) => trimmed(at, 6) + " s") },
          { label: "value", size: 76 * size.k },
        ],
      };
    },
    tip(u, idx) {
      if (selected.at[idx] == null) return null;
      const [from, to] = [selected.at[idx] / 1e9, (selected.at[idx] + selected.width) / 1e9];
      return [
        node("div", { class: "head" }, `${from.toFixed(6)} to ${to.toFixed(6)} s`), node("div", {}, `largest ${count(selected.max[idx])}`),
        node("div", {}, `mean ${trimmed(selected.mean[idx], 6)}`), node("div", {}, `smallest ${count(selected.min[idx])}`), node("div", {}, `${count(selected.n[idx])} values`),
      ];
    },
  };
  const made = chart(byId("values-plot"), spec);
  byId("values-controls").append(chooserOf(all, "Point", (k) => { selected = all[k]; made.reset(); }), made.buttons);
  made.draw();
}
