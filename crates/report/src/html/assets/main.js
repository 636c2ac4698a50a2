// Buttons that lead from a worst sample to its place in time, and the plots.

function leads(time) {
  document.querySelectorAll("[data-series]").forEach((cell) => {
    const text = cell.querySelector(".text");
    const button = node("button", { type: "button", class: "go", title: "Show it in time", onclick: () => time.show(Number(cell.dataset.series), Number(cell.dataset.sample)) }, text.textContent);
    text.replaceWith(button);
  });
}

/** What there is of recordings. */
function recordings({ pictures: all, intervals, values }) {
  if (all.length) {
    const shown = pictures(byId("picture-plot"), all);
    document.querySelectorAll("[data-picture]").forEach((button) => button.addEventListener("click", () => {
      shown.select(Number(button.dataset.picture));
      byId("picture").scrollIntoView();
    }));
  }
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
  if (data.account.series.length) stacked(data.account);
  if (data.series.some((series) => series.time.at.length || series.worst.length)) {
    leads(timeline());
  } else {
    byId("time-plot").replaceWith(node("p", { class: "remark" }, data.series[0].time.note));
  }
}
announce();
