// Histograms as steps: bins are read from their runs, put together to the wanted width, and drawn column by column, each as
// high as the highest bin in it, so that "samples per 1 µs" means the same at every zoom and a single sample is never lost.

/** [low, width, count, …] of all bins, ascending. */
function unpack(runs) {
  const bins = [];
  for (const [width, steps] of runs) {
    let place = 0;
    for (let k = 0; k < steps.length; k += 2) {
      place += steps[k];
      bins.push(place * width, width, steps[k + 1]);
    }
  }
  return bins;
}

/** Bins of at least `width`, of one or more series together. */
function binned(members, width) {
  const all = [];
  for (const member of members) {
    const bins = member.unpacked || (member.unpacked = unpack(member.bins));
    for (let k = 0; k < bins.length; k += 3) {
      const wide = Math.max(width, bins[k + 1]);
      all.push([bins[k + 1] > width ? bins[k] : Math.floor(bins[k] / width) * width, wide, bins[k + 2]]);
    }
  }
  if (members.length > 1) all.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const low = [], high = [], n = [];
  for (const [at, wide, samples] of all) {
    const last = low.length - 1;
    if (last >= 0 && low[last] === at) {
      n[last] += samples;
      high[last] = Math.max(high[last], at + wide);
    } else {
      low.push(at); high.push(at + wide); n.push(samples);
    }
  }
  return { low, high, n };
}

/** The place of the first value above `wanted` in ascending values. */
function firstAbove(values, wanted) {
  let from = 0, to = values.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] > wanted) to = middle; else from = middle + 1;
  }
  return from;
}

/** Edges of columns from `min` to `max`, each a whole number of bins and about a pixel wide or wider. */
function columnEdges(min, max, width, pixels, log) {
  const edges = [];
  if (!log) {
    const step = width * Math.max(1, Math.ceil((max - min) / width / pixels));
    for (let at = Math.max(0, Math.floor(min / step) * step); at < max + step && edges.length < 20000; at += step) edges.push(at);
    return edges;
  }
  const ratio = Math.pow(max / min, 1 / pixels);
  // Zero has no place on a logarithmic axis: the first bin begins at half its width.
  let at = Math.max(Math.floor(min / width) * width, width / 2);
  while (edges.length < 20000) {
    edges.push(at);
    if (at > max) break;
    at = Math.max(Math.floor(at / width) * width + width, Math.ceil((at * ratio) / width) * width);
  }
  return edges;
}

/** Half a sample is the floor, so that one sample stands above it. */
const FLOOR = 0.5;

/** The height of each column: the highest bin in it; floor beside it; null where the line is not drawn. */
function columnHeights(bins, edges) {
  const heights = new Array(edges.length).fill(null);
  const last = edges.length - 2;
  for (let k = firstAbove(bins.high, edges[0]); k < bins.low.length && bins.low[k] < edges[last + 1]; k++) {
    const from = Math.max(0, firstAbove(edges, bins.low[k]) - 1);
    for (let column = from; column <= last && edges[column] < bins.high[k]; column++) {
      heights[column] = Math.max(heights[column] || 0, bins.n[k]);
    }
  }
  const drawn = heights.slice();
  for (let column = 0; column < heights.length; column++) {
    if (heights[column] == null && ((column > 0 && heights[column - 1] != null) || heights[column + 1] != null)) drawn[column] = FLOOR;
  }
  return drawn;
}

/** Samples between two latencies, by bins that begin there. */
function samplesBetween(bins, from, to) {
  let samples = 0;
  for (let k = firstAbove(bins.low, from - 1e-6); k < bins.low.length && bins.low[k] < to; k++) samples += bins.n[k];
  return samples;
}
