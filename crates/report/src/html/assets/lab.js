// The plots of a lab: one curve a cell, one series at a time.

/** Chooses the series whose cells are shown; several are compared by switching them on in the legend. */
function seriesChoice() {
  const choose = (group) => {
    data.groups.forEach((each) => each.members.forEach((member) => {
      if (each === group) choice.hidden.series.delete(member); else choice.hidden.series.add(member);
    }));
    changed();
  };
  choose(filled[0]);
  if (filled.length < 2) return null;
  const select = node("select", { onchange: () => choose(filled[Number(select.value)]) },
    ...filled.map((group, k) => node("option", { value: k }, group.name)));
  return node("label", {}, "series", select);
}

root.classList.add("js");
document.querySelectorAll("table.sortable").forEach(sortable);
followTheme();
if (data.series.length) {
  root.classList.add("plotted");
  const select = seriesChoice();
  histogram();
  percentiles();
  if (select) byId("histogram-controls").prepend(select);
}
announce();
