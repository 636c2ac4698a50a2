// The histogram stacked by cause: the height of a column is its number of samples, its colours are the shares of their time.

function stacked({ parts, series }) {
  // At first the same as over time.
  let selected = series.find((one) => one.series === data.lead) || series[0];
  const hidden = new Set();
  const low = (k) => 10 ** (k / selected.per_decade);
  const share = (column, part) => {
    const all = column.slice(2).reduce((a, b) => a + b, 0);
    return all ? column[2 + part] / all : 0;
  };
  const used = () => parts.map((part, k) => k).filter((k) => series.some((one) => one.columns.some((column) => column[2 + k] > 0)));
  const spec = {
    domain() {
      const numbers = selected.columns.map(([k]) => k);
      return [low(numbers[0]) * 0.9, low(numbers[numbers.length - 1] + 1) * 1.1];
    },
    latencies: "x",
    log: () => true,
    height: (width) => Math.round(Math.max(240, Math.min(400, width * 0.42))),
    make(size, [from, to]) {
      const high = selected.columns.reduce((a, [, n]) => Math.max(a, n), 1) * 1.6, range = [0.5, high];
      return {
        data: [selected.columns.map(([k]) => low(k + 0.5)), selected.columns.map(([, n]) => n)],
        series: [{}, { stroke: "transparent", points: { show: false } }],
        scales: { y: { distr: 3, log: 10, range: () => range } },
        axes: [
          { label: timed("latency"), size: 34 * size.k, ...logAxis([from, to], size.width / size.k - 76, 54) },
          { size: 52 * size.k, label: "samples", ...logAxis(range, size.height / size.k - 60, 24), values: (u, ticks) => ticks.map(countTick) },
        ],
        draw(u) {
          const { ctx, bbox } = u;
          const floor = u.valToPos(range[0], "y", true);
          ctx.save();
          ctx.beginPath();
          ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
          ctx.clip();
          for (const column of selected.columns) {
            const left = Math.round(u.valToPos(low(column[0]), "x", true)), right = Math.round(u.valToPos(low(column[0] + 1), "x", true));
            const height = floor - u.valToPos(column[1], "y", true);
            let y = floor;
            for (const k of used()) {
              if (hidden.has(k)) continue;
              const tall = height * share(column, k);
              ctx.fillStyle = curveColour(parts[k].style);
              ctx.fillRect(left, y - tall, Math.max(1, right - left - (right - left > 5 ? 1 : 0)), tall);
              y -= tall;
            }
          }
          ctx.restore();
        },
      };
    },
    tip(u, idx) {
      const column = selected.columns[idx];
      if (!column) return null;
      const rows = used().filter((k) => column[2 + k] > 0).sort((a, b) => column[2 + b] - column[2 + a])
        .map((k) => ({ style: parts[k].style, name: parts[k].title, figure: `${(share(column, k) * 100).toFixed(1)} % · ${micros(column[2 + k] / column[1])}` }));
      return [node("div", { class: "head" }, `${span(low(column[0]), 4)} to ${span(low(column[0] + 1), 4)}: ${count(column[1])} samples`), tipRows(rows)];
    },
  };
  const made = chart(byId("account-plot"), spec);
  if (series.length > 1) byId("account-controls").append(chooserOf(series, "Series", (k) => { selected = series[k]; made.reset(); }, series.indexOf(selected)));
  byId("account-controls").append(made.buttons);

  const place = byId("account-legend");
  function set(hide) { hidden.clear(); hide.forEach((k) => hidden.add(k)); fill(); made.draw(); }
  function only(k) { const others = used().filter((other) => other !== k); set(others.every((other) => hidden.has(other)) && !hidden.has(k) ? [] : others); }
  function fill() {
    const focused = [...place.querySelectorAll("button")].indexOf(document.activeElement);
    place.replaceChildren(node("div", { class: "group" }, ...used().map((k) => node("button", {
      type: "button", class: "chip", "aria-pressed": String(!hidden.has(k)), title: "Click: on or off. Shift-click or double-click: only this one",
      onclick: (event) => { if (event.shiftKey) { only(k); } else { const hide = new Set(hidden); if (!hide.delete(k)) hide.add(k); set([...hide]); } },
      ondblclick: () => only(k),
    }, swatch(parts[k].style), parts[k].title))));
    if (focused >= 0) [...place.querySelectorAll("button")][focused]?.focus();
  }
  fill();
  made.draw();
}
