// What everything else stands on: the data, elements, colours, figures. Data becomes text only (textContent), never markup.

const root = document.documentElement;
root.dataset.errors = "0";
addEventListener("error", () => { root.dataset.errors = String(Number(root.dataset.errors) + 1); });

const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const DASHES = ["", "7 3", "2 2"];

function byId(id) { return document.getElementById(id); }

/** An element with attributes, listeners (`on…`) and children (elements or texts). */
function node(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

/** A short line that looks like the curve. */
function swatch(style) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 10");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", "M1 5H23");
  line.setAttribute("class", "h" + style.hue);
  line.setAttribute("stroke-dasharray", DASHES[style.dash]);
  line.setAttribute("stroke-opacity", style.strength / 100);
  svg.append(line);
  return svg;
}

/** A colour of the style sheet, which knows about dark and print. */
function colour(name) { return getComputedStyle(root).getPropertyValue("--" + name).trim(); }

function faded(hex, percent) { return hex + Math.round(percent * 2.55).toString(16).padStart(2, "0"); }

function curveColour(style) { return faded(colour("h" + style.hue), style.strength); }

function count(n) { return Math.round(n).toLocaleString("en-US"); }

function trimmed(value, digits) { return String(Number(value.toPrecision(digits))); }

/** A span with the unit that suits it, as on the axes. */
function span(ns, digits = 4) {
  const size = Math.abs(ns);
  if (size < 1e3) return trimmed(ns, digits) + " ns";
  if (size < 1e6) return trimmed(ns / 1e3, digits) + " µs";
  if (size < 1e9) return trimmed(ns / 1e6, digits) + " ms";
  return trimmed(ns / 1e9, digits) + " s";
}

/** The title of an axis of times, with whose time it is. */
function timed(title) { return data.timebase ? `${title} (${data.timebase})` : title; }

/** Microseconds as in the tables, exact to the nanosecond. */
function micros(ns) {
  return (ns / 1e3).toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 3 }) + " µs";
}

function powerOfTen(value) { return Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9; }

/** 1, 10, 100, 1 k … at the powers of ten, nothing between them. */
function countTick(n) {
  if (!powerOfTen(n) || n < 1) return "";
  return n < 1e3 ? String(Math.round(n)) : n < 1e6 ? n / 1e3 + " k" : n < 1e9 ? n / 1e6 + " M" : n / 1e9 + " G";
}
