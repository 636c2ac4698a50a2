// Which curves are shown, and the legends that say so and change it. Histogram and percentiles share the choice.

const choice = {
  merged: data.merge,
  hidden: { series: new Set(), groups: new Set() },
  listeners: [],
};

data.groups.forEach((group, k) => {
  group.members = data.series.filter((series) => series.group === k);
});
const filled = data.groups.filter((group) => group.members.length);
const canMerge = filled.length < data.series.length;

/** The curves of the present choice: {name, style, members, group, shown}. */
function curves() {
  if (choice.merged) {
    return filled.map((group) => ({
      key: group, name: group.name, style: group.style, members: group.members, group, shown: !choice.hidden.groups.has(group),
    }));
  }
  return data.series.map((series) => ({
    key: series, name: series.full, short: series.short, style: series.style, members: [series], group: data.groups[series.group],
    shown: !choice.hidden.series.has(series),
  }));
}

function hiddenOnes() { return choice.merged ? choice.hidden.groups : choice.hidden.series; }

function changed() { choice.listeners.forEach((listener) => listener()); }

function show(keys, shown) {
  keys.forEach((key) => (shown ? hiddenOnes().delete(key) : hiddenOnes().add(key)));
  changed();
}

/** Only these; all again when only these are shown already. */
function only(keys) {
  const all = curves();
  const alone = all.every((curve) => curve.shown === keys.includes(curve.key));
  all.forEach((curve) => (alone || keys.includes(curve.key) ? hiddenOnes().delete(curve.key) : hiddenOnes().add(curve.key)));
  changed();
}

/** A legend; `highlight(place of the curve or null)` gets the curve under the pointer. */
function legend(place, highlight) {
  function chip(curve, number, name) {
    return node("button", {
      type: "button", class: "chip", "aria-pressed": String(curve.shown), title: curve.name,
      onclick: (event) => (event.shiftKey ? only([curve.key]) : show([curve.key], !curve.shown)),
      ondblclick: () => only([curve.key]),
      onmouseenter: () => highlight(number), onmouseleave: () => highlight(null),
      onfocus: () => highlight(number), onblur: () => highlight(null),
    }, swatch(curve.style), name);
  }
  function fill() {
    const focused = [...place.querySelectorAll("button")].indexOf(document.activeElement);
    const all = curves();
    const grouped = !choice.merged && filled.length > 1 && canMerge;
    const rows = grouped
      ? filled.map((group) => all.filter((curve) => curve.group === group))
      : [all];
    place.replaceChildren(...rows.map((row) => {
      const keys = row.map((curve) => curve.key);
      const title = grouped
        ? node("button", { type: "button", class: "plain title", title: "All of these on or off",
            onclick: () => show(keys, !row.every((curve) => curve.shown)) }, row[0].group.name)
        : null;
      return node("div", { class: "group" }, title,
        ...row.map((curve) => chip(curve, all.indexOf(curve), grouped ? curve.short : curve.name)));
    }));
    if (focused >= 0) [...place.querySelectorAll("button")][focused]?.focus();
  }
  choice.listeners.push(fill);
  fill();
}

/** Buttons and switches that belong to the choice. */
function choiceControls() {
  const keys = () => curves().map((curve) => curve.key);
  const controls = [];
  if (data.series.length > 1) {
    controls.push(node("span", { class: "buttons", role: "group", "aria-label": "Curves" },
      node("button", { type: "button", class: "plain", onclick: () => show(keys(), true) }, "All"),
      node("button", { type: "button", class: "plain", onclick: () => show(keys(), false) }, "None")));
  }
  if (canMerge && !data.apart) {
    controls.push(checkbox("one curve per phase", choice.merged, (on) => { choice.merged = on; changed(); }, (set) => {
      choice.listeners.push(() => set(choice.merged));
    }));
  }
  return controls;
}

function checkbox(text, on, change, follow) {
  const box = node("input", { type: "checkbox", onchange: () => change(box.checked) });
  box.checked = on;
  if (follow) follow((value) => { box.checked = value; });
  return node("label", {}, box, text);
}

/** Rows of a box: a swatch, a name, a figure; the nearest in bold. */
function tipRows(rows) {
  const limit = 12;
  const lines = rows.slice(0, limit).map((row) => node("tr", { class: row.near ? "near" : "" },
    node("td", {}, swatch(row.style)), node("td", {}, row.name), node("td", { class: "n" }, row.figure)));
  if (rows.length > limit) lines.push(node("tr", {}, node("td", {}), node("td", {}, `and ${rows.length - limit} more`)));
  return node("table", {}, ...lines);
}
