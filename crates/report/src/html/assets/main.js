// Tables that can be sorted, buttons that lead from a worst sample to its place in time, and the plots.

function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const original = [...body.rows];
  heads.forEach((head, column) => {
    const button = node("button", { type: "button", onclick: () => sort(column) }, head.textContent);
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
  });
  function sort(column) {
    const numeric = heads[column].classList.contains("n");
    const [first, second] = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
    const now = heads[column].getAttribute("aria-sort");
    const next = now === "none" ? first : now === first ? second : "none";
    heads.forEach((head) => head.setAttribute("aria-sort", "none"));
    heads[column].setAttribute("aria-sort", next);
    const value = (row) => {
      const cell = row.cells[column];
      return cell.dataset.v != null ? Number(cell.dataset.v) : numeric ? null : cell.textContent;
    };
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      // What is missing stands last, whichever way.
      if (x == null || y == null) return (x == null) - (y == null);
      const order = typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
      return next === "ascending" ? order : -order;
    };
    body.replaceChildren(...(next === "none" ? original : original.slice().sort(compare)));
  }
}

function leads(time) {
  document.querySelectorAll("[data-series]").forEach((cell) => {
    const text = cell.querySelector(".text");
    const button = node("button", { type: "button", class: "go", title: "Show it in time", onclick: () => time.show(Number(cell.dataset.series), Number(cell.dataset.sample)) }, text.textContent);
    text.replaceWith(button);
  });
}

/** What there is of recordings. */
function recordings({ pictures: all, intervals, values }) {
  if (all.length) pictures(byId("picture-plot"), all);
  if (intervals.length) intervalHistograms(intervals);
  if (values.length) valueCurves(values);
}

root.classList.add("js");
document.querySelectorAll("table.sortable").forEach(sortable);
followTheme();
recordings(data.recording);
if (data.series.length) {
  root.classList.add("plotted");
  histogram();
  percentiles();
  if (data.series.some((series) => series.time.at.length || series.worst.length)) {
    leads(timeline());
  } else {
    byId("time-plot").replaceWith(node("p", { class: "remark" }, data.series[0].time.note));
  }
}
announce();
