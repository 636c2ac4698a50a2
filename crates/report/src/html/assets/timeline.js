// One series over time: a band from the smallest to the largest latency of each bucket, the mean, and the worst samples.

function timeline() {
  const state = { series: worstSeries(), log: false, marked: null };
  let buckets = null, joined = null;

  function worstSeries() {
    if (data.lead != null) return data.lead;
    let worst = 0;
    data.series.forEach((series, k) => {
      const weight = (one) => (one.time.at.length || one.worst.length ? one.max ?? -1 : -2);
      if (weight(series) > weight(data.series[worst])) worst = k;
    });
    return worst;
  }
  /** Buckets in s, each a step from its beginning to its end, with a hole where there was a gap. Windows lie on whole seconds of their clock: what
      of the first and the last lies outside of the phase is not shown. */
  function read(series) {
    const { time } = series;
    const lines = { x: [], min: [], mean: [], max: [], n: [], from: [], to: [] };
    let begin = 0;
    time.at.forEach((step, k) => {
      begin += step;
      if (k > 0 && step > time.gap) add((begin - step / 2) / 1e6, null, null, k);
      const from = time.since_phase ? Math.max(begin, 0) : begin;
      const to = Math.max(from, Math.min(begin + time.width, time.until ?? Infinity));
      add(from / 1e6, from, to, k);
      // A little before the end, where the next begins.
      if (to > from) add((to - Math.min(1, (to - from) / 2)) / 1e6, from, to, k);
    });
    function add(x, from, to, k) {
      const has = from != null;
      lines.x.push(x);
      lines.min.push(has ? time.min[k] : null);
      lines.mean.push(has ? time.mean[k] : null);
      lines.max.push(has ? time.max[k] : null);
      lines.n.push(has ? time.n[k] : 0);
      lines.from.push(has ? from / 1e6 : x);
      lines.to.push(has ? to / 1e6 : x);
    }
    return lines;
  }
  const selected = () => data.series[state.series];
  const known = () => (data.causes || []).filter((_, cause) => selected().worst.some((sample) => sample[4] === cause));
  /** The colour of samples without a known cause: none that a cause has, where some are known. */
  const unknown = () => (known().length ? "muted" : "h1");
  const spec = {
    domain() {
      const times = [...buckets.from, ...buckets.to, ...selected().worst.map((sample) => sample[1] / 1e6)];
      if (!times.length) return [0, 1];
      const [from, to] = [times.reduce((a, b) => Math.min(a, b)), times.reduce((a, b) => Math.max(a, b))];
      return to > from ? [from - (to - from) * 0.01, to + (to - from) * 0.01] : [from - 0.5, to + 0.5];
    },
    latencies: "y",
    log: () => false,
    height: (width) => Math.round(Math.max(240, Math.min(380, width * 0.4))),
    make(size, [from, to]) {
      const marked = selected().worst.slice().sort((a, b) => a[1] - b[1]);
      const own = (values) => values.map((value) => (value == null ? null : positive(value, state.log)));
      joined = uPlot.join([
        [buckets.x, own(buckets.min), own(buckets.mean), own(buckets.max)],
        [marked.map((sample) => sample[1] / 1e6), marked.map((sample) => positive(sample[0], state.log))],
      ], [[2, 2, 2], [0]]);
      const inside = (x) => x >= from && x <= to;
      const maxima = [...buckets.max.filter((value, k) => value != null && inside(buckets.x[k])), ...marked.filter((s) => inside(s[1] / 1e6)).map((s) => s[0])];
      const minima = [...buckets.min.filter((value, k) => value != null && inside(buckets.x[k])), ...maxima];
      const worst = maxima.reduce((a, b) => Math.max(a, b), 1), low = minima.reduce((a, b) => Math.min(a, b), worst);
      const high = Math.max(worst, ...bounds(worst));
      const range = state.log ? [Math.max(1, low * 0.8), high * 1.3] : [Math.min(0, low * 1.05), high * 1.06];
      const main = colour("h0");
      const thin = { points: { show: false }, stroke: faded(main, 55), width: size.k };
      return {
        data: joined,
        series: [{}, thin, { ...thin, stroke: main, width: 1.6 * size.k }, thin,
          { stroke: colour(unknown()), width: 0, points: { show: true, size: 7 * size.k, width: 1.6 * size.k, stroke: colour(unknown()), fill: colour("bg") } }],
        bands: [{ series: [3, 1], fill: faded(main, 18) }],
        scales: { y: { distr: state.log ? 3 : 1, log: 10, range: () => range } },
        axes: [
          { label: timed(selected().time.since_phase ? "time since the phase began" : "time since the series began"), size: 34 * size.k, space: 60 * size.k, values: (u, ticks) => ticks.map((tick) => seconds(tick, u)) },
          latencyAxis(state.log, range, size),
        ],
        draw: (u) => {
          for (const sample of selected().worst) {
            const cause = data.causes?.[sample[4]];
            if (cause) rings(u, [{ x: sample[1] / 1e6, y: sample[0], colour: curveColour(cause.style) }], 4 * size.k);
          }
          const sample = state.marked == null ? null : selected().worst[state.marked];
          if (sample) rings(u, [{ x: sample[1] / 1e6, y: sample[0], colour: colour("bad") }], 7 * size.k);
        },
      };
    },
    tip(u, idx) {
      const pointer = u.posToVal(u.cursor.left, "x");
      const near = nearest(u, selected().worst);
      if (near) {
        const [latency, time, cpu, seq, cause] = near;
        const why = data.causes?.[cause];
        return [node("div", { class: "head" }, micros(latency)), node("div", {}, `due at ${(time / 1e6).toFixed(6)} s`), node("div", {}, `CPU ${cpu}, sample ${count(seq)}`),
          ...(why ? [node("div", {}, "mostly " + why.words)] : [])];
      }
      const k = buckets.from.findIndex((from, place) => buckets.n[place] && pointer >= from && pointer <= Math.max(buckets.to[place], from));
      if (k < 0) return null;
      return [
        node("div", { class: "head" }, `${buckets.from[k].toFixed(3)} to ${buckets.to[k].toFixed(3)} s`),
        node("div", {}, `largest ${micros(buckets.max[k])}`), node("div", {}, `mean ${micros(buckets.mean[k])}`),
        node("div", {}, `smallest ${micros(buckets.min[k])}`), node("div", {}, `${count(buckets.n[k])} samples`),
      ];
    },
  };
  function nearest(u, samples) {
    let best = null, distance = 14;
    for (const sample of samples) {
      const dx = u.valToPos(sample[1] / 1e6, "x") - u.cursor.left, dy = u.valToPos(positive(sample[0], state.log), "y") - u.cursor.top;
      if (Math.hypot(dx, dy) < distance) { best = sample; distance = Math.hypot(dx, dy); }
    }
    return best;
  }
  function seconds(x, u) {
    const width = u.scales.x.max - u.scales.x.min;
    if (width > 7200) return trimmed(x / 3600, 6) + " h";
    if (width > 300) return trimmed(x / 60, 6) + " min";
    return width < 0.05 ? x.toFixed(4) + " s" : trimmed(x, 6) + " s";
  }
  function select(k, marked) {
    state.series = k;
    state.marked = marked;
    buckets = read(selected());
    const values = selected().time;
    const body = values.mean.length ? values.mean.reduce((a, b) => a + b, 0) / values.mean.length : 0;
    state.log = (selected().max ?? 0) > body * 20;
    logBox.querySelector("input").checked = state.log;
    chooser.value = String(k);
    byId("time-note").textContent = values.note;
    const causes = known().map((cause) => node("span", { class: "cause" }, swatch(cause.style), cause.words));
    const others = causes.length && selected().worst.some((sample) => sample[4] < 0);
    byId("time-causes").replaceChildren(...causes, others ? node("span", { class: "cause" }, "grey: not explained") : "");
    const root = byId("time-plot");
    root.dataset.from = buckets.from[0] ?? "";
    root.dataset.to = buckets.to[buckets.to.length - 1] ?? "";
    root.dataset.points = buckets.mean.filter((mean) => mean != null).length;
  }
  const options = filled.map((group) => {
    const own = group.members.map((series) => node("option", { value: data.series.indexOf(series) }, series.full));
    return filled.length > 1 && canMerge ? node("optgroup", { label: group.name }, ...own) : own;
  }).flat();
  const chooser = node("select", { onchange: () => { select(Number(chooser.value), null); made.reset(); } }, ...options);
  const logBox = checkbox("logarithmic latency axis", false, (on) => { state.log = on; made.draw(); });
  select(state.series, null);
  const made = chart(byId("time-plot"), spec);
  byId("time-controls").append(node("label", {}, "Series", chooser), made.buttons, logBox);
  made.draw();
  return {
    /** Shows a sample of a series, with what was around it. */
    show(series, sample) {
      select(series, sample);
      const [from, to] = spec.domain();
      const time = selected().worst[sample][1] / 1e6;
      const around = (to - from) / 50;
      made.reset();
      made.zoomTo(time - around, time + around);
      byId("time").scrollIntoView();
    },
  };
}
