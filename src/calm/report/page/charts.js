"use strict";
// The charts. Curves are read from their base64 when they are drawn, and cut into fewer steps
// than there are if many are in view.
const STEPS = 700; // of a curve in view
const COARSE = 250; // of each, if there are more of them
const FRAGMENTS = 400; // more are not shaded
const DASHES = ["solid", "dash", "dot"];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const safe = (name) => name.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("%", "&#37;");
const NAMES = [...new Set(DATA.learners.map((row) => row.learner))];
const ORACLES = new Set(DATA.learners.filter((row) => row.oracle).map((row) => row.learner));

function bytes(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function curveOf(run) {
  if (!run.loss.low) {
    const all = new Float32Array(bytes(run.loss.values).buffer);
    const n = all.length / 3;
    const parts = run.loss.step === 1 ? [all, all, all] : [0, 1, 2].map((i) => all.subarray(i * n, (i + 1) * n));
    [run.loss.low, run.loss.high, run.loss.mean] = parts;
  }
  return run.loss;
}

// lows, highs and means of at most `most` steps between two batches
function cut(curve, from, to, most) {
  const first = Math.floor(from / curve.step);
  const last = Math.min(Math.ceil(to / curve.step), curve.mean.length);
  const merge = Math.max(1, Math.ceil((last - first) / most));
  const found = { x: [], low: [], high: [], mean: [], about: [] };
  for (let i = first; i < last; i += merge) {
    const end = Math.min(i + merge, last);
    let [low, high, sum] = [Infinity, -Infinity, 0];
    for (let j = i; j < end; j++) {
      low = Math.min(low, curve.low[j]);
      high = Math.max(high, curve.high[j]);
      sum += curve.mean[j];
    }
    found.x.push(((i + end) * curve.step - 1) / 2);
    found.low.push(low);
    found.high.push(high);
    found.mean.push(sum / (end - i));
    found.about.push(high > low ? ` (${low.toFixed(2)} to ${high.toFixed(2)})` : "");
  }
  return found;
}

function mixed(color, share) {
  const part = (i) => Math.round(parseInt(color.slice(i, i + 2), 16) * (1 - share) + 255 * share);
  return `rgb(${part(1)}, ${part(3)}, ${part(5)})`;
}

function look(name) {
  const rest = NAMES.filter((other) => ORACLES.has(other) === ORACLES.has(name));
  const place = rest.indexOf(name);
  const { lines } = DATA.look;
  if (ORACLES.has(name)) return { color: css("--soft"), dash: ["dash", "dot", "dashdot"][place % 3] };
  const color = mixed(lines[place % lines.length], Number(css("--lift")));
  return { color, dash: DASHES[Math.floor(place / lines.length) % DASHES.length] };
}

const faint = (color, opacity) => color.startsWith("#")
  ? color + Math.round(opacity * 255).toString(16).padStart(2, "0")
  : color.replace("rgb(", "rgba(").replace(")", `, ${opacity})`);

function layout(more) {
  const axis = { gridcolor: css("--rule"), linecolor: css("--rule"), zeroline: false, fixedrange: true, automargin: true };
  const { xaxis, yaxis, ...rest } = more;
  const titled = ({ title, ...other }) => ({ ...other, title: { text: title, font: { size: 13 }, standoff: 8 } });
  return {
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: css("--soft") },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 52, r: 12, t: 12, b: 44 },
    showlegend: false, hovermode: "x unified",
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--rule"), font: { color: css("--text") } },
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    xaxis: { ...axis, ...titled(xaxis) }, yaxis: { ...axis, ...titled(yaxis) }, ...rest,
  };
}

const CONFIG = { displayModeBar: false, responsive: true };

function bands(x, low, high, color) {
  const line = { width: 0 };
  const common = { x, mode: "lines", line, hoverinfo: "skip" };
  return [{ ...common, y: low }, { ...common, y: high, fill: "tonexty", fillcolor: faint(color, 0.2) }];
}

function shades(stream, place) {
  const { starts, classes, batches } = DATA.streams[stream];
  const ends = [...starts.slice(1), batches];
  const colors = DATA.look.shades;
  const seen = starts.map((start, i) => i).filter((i) => ends[i] > state.from && starts[i] < state.to);
  if (seen.length > FRAGMENTS) return [];
  const opacity = place.y0 ? 1 : Number(css("--shade"));
  return seen.map((i) => ({
    type: "rect", xref: "x", yref: "paper", layer: "below", line: { width: 0 }, opacity, ...place,
    x0: starts[i] - 0.5, x1: ends[i] - 0.5, fillcolor: colors[classes[i] % colors.length],
  }));
}

function runsDrawn() {
  return DATA.runs.filter((run) => run.stream === state.stream && state.drawn.has(DATA.learners[run.learner].learner));
}

function drawLoss() {
  const stream = DATA.streams[state.stream];
  const runs = runsDrawn();
  const few = runs.length <= DATA.look.few;
  const traces = [];
  for (const run of runs) {
    const name = DATA.learners[run.learner].learner;
    const { color, dash } = look(name);
    const part = cut(curveOf(run), state.from, state.to, few ? STEPS : COARSE);
    if (few && part.about.some(Boolean)) traces.push(...bands(part.x, part.low, part.high, color));
    traces.push({ x: part.x, y: part.mean, customdata: part.about, name: safe(name), mode: "lines",
                  line: { color, dash, width: 1.4 }, hovertemplate: "%{y:.3f}%{customdata}" });
  }
  if (traces.length) {
    const { x, y } = traces.at(-1);
    const fragment = (batch) => stream.starts.findLastIndex((start) => start <= batch);
    const text = x.map((batch) => safe(`${stream.names[stream.classes[fragment(batch)]]}, fragment ${fragment(batch)}`));
    traces.unshift({ x, y, text, mode: "lines", line: { width: 0, color: "rgba(0,0,0,0)" }, hovertemplate: "%{text}<extra></extra>" });
  }
  const half = { type: "line", xref: "x", yref: "paper", x0: stream.counted, x1: stream.counted, y0: 0, y1: 1, line: { color: css("--text"), dash: "dot", width: 1 } };
  const inView = stream.counted > state.from && stream.counted < state.to;
  const annotations = inView ? [{ x: stream.counted, y: 1, yref: "paper", text: "counted from here on", showarrow: false, xanchor: "left", yanchor: "top", xshift: 4 }] : [];
  byId("loss-note").textContent = few
    ? "Drag in the chart or move the ends of the slider to look closer; bands span the lowest and the highest batch of a step."
    : `Of more than ${DATA.look.few} learners the means of longer steps are drawn; the closer you look, the shorter they are.`;
  return Plotly.react("loss", traces, layout({
    shapes: [...shades(state.stream, { y0: 0, y1: 1 }).map((shape) => ({ ...shape, opacity: Number(css("--shade")) })), ...(inView ? [half] : [])],
    annotations,
    xaxis: { range: [state.from - 0.5, state.to - 0.5], title: "batch", fixedrange: false, showgrid: false, unifiedhovertitle: { text: "batch %{x:,.0f}" } },
    yaxis: { title: "loss (nats per token)" },
  }), CONFIG);
}

function drawSwitch() {
  const { setting } = DATA.streams[state.stream];
  const traces = [];
  for (const row of DATA.learners.filter((row) => row.setting === setting && (state.drawn.has(row.learner) || row.oracle))) {
    const [mean, low, high] = row.curve;
    const x = mean.map((_, i) => i + 1);
    const { color, dash } = look(row.learner);
    if (row.seeds > 1) traces.push(...bands(x, low, high, color));
    traces.push({ x, y: mean, name: safe(row.learner), mode: row.oracle ? "lines" : "lines+markers",
                  marker: { size: 5 }, line: { color, dash, width: 1.8 }, hovertemplate: "%{y:.3f}" });
  }
  return Plotly.react("switch", traces, layout({
    dragmode: false,
    xaxis: { title: "batches after a switch", tick0: 1, dtick: innerWidth < 600 ? 2 : 1, showgrid: false },
    yaxis: { title: "mean loss (nats per token)" },
  }), CONFIG);
}

function drawGates() {
  const gated = DATA.runs.filter((run) => run.stream === state.stream && run.gates);
  byId("gated").hidden = !gated.length;
  if (!gated.length) return null;
  const run = gated.find((each) => each.learner === state.gate) ?? gated[0];
  options(byId("gate"), gated.map((each) => [String(each.learner), DATA.learners[each.learner].learner]), String(run.learner));
  const { step, experts, low, high, values } = run.gates;
  const levels = bytes(values);
  const n = levels.length / experts;
  const z = Array.from({ length: experts }, (_, i) => Array.from(levels.subarray(i * n, (i + 1) * n), (level) => low + (level / 255) * (high - low)));
  const x = Array.from({ length: n }, (_, i) => i * step + (step - 1) / 2);
  const [cold, middle, warm] = [css("--cold"), css("--card"), css("--warm")];
  const colorscale = low < 0 ? [[0, cold], [0.5, middle], [1, warm]] : [[0, middle], [1, cold]];
  return Plotly.react("gates", [{
    type: "heatmap", x, z, zmin: low, zmax: high, colorscale, hovertemplate: "batch %{x:,.0f}, expert %{y}: %{z:.3f}<extra></extra>",
    colorbar: { thickness: 10, outlinewidth: 0, title: { text: "weight", side: "right" } },
  }], layout({
    dragmode: false, hovermode: "closest", margin: { l: 52, r: 12, t: 28, b: 44 },
    shapes: shades(state.stream, { y0: 1.02, y1: 1.06 }),
    xaxis: { range: [state.from - 0.5, state.to - 0.5], title: "batch", showgrid: false },
    yaxis: { title: "expert", autorange: "reversed", showgrid: false, tickformat: "d" },
  }), CONFIG);
}

// ---- controls of the charts

function swatch(name) {
  const { color, dash } = look(name);
  const draw = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const line = draw("line", { x1: 0, y1: 5, x2: 22, y2: 5, stroke: color, "stroke-width": 3, "stroke-dasharray": { solid: "", dash: "6 3", dot: "2 3", dashdot: "6 3 2 3" }[dash] });
  const svg = draw("svg", { width: 22, height: 10, "aria-hidden": "true" });
  svg.append(line);
  return svg;
}

function renderControls() {
  const { setting } = DATA.streams[state.stream];
  const streams = DATA.streams.map((stream, i) => [String(i), `${DATA.settings[stream.setting].name}, seed ${stream.seed}`]);
  options(byId("stream"), streams, String(state.stream));
  const there = learnersOf(state.stream);
  const rows = DATA.learners.filter((row) => row.setting === setting && there.includes(row.learner));
  const focused = document.activeElement?.dataset?.chip;
  byId("chips").replaceChildren(...rows.map((row) => {
    const box = make("input", { type: "checkbox", "data-chip": row.learner, onchange: () => toggle(row) });
    box.checked = state.drawn.has(row.learner);
    return make("label", { class: "chip" }, box, swatch(row.learner), row.learner + (row.oracle ? " *" : ""));
  }));
  if (focused !== undefined) byId("chips").querySelector(`[data-chip="${CSS.escape(focused)}"]`)?.focus();
  const { names } = DATA.streams[state.stream];
  const { shades: colors } = DATA.look;
  byId("key").replaceChildren(...names.map((name, i) => {
    const patch = make("i");
    patch.style.background = colors[i % colors.length];
    return make("li", {}, patch, name);
  }));
}

function renderZoom() {
  const { batches } = DATA.streams[state.stream];
  for (const key of ["from", "to"]) {
    Object.assign(byId(key), { min: 0, max: batches, step: Math.max(1, Math.round(batches / 500)) });
    byId(key).value = state[key];
  }
  Object.assign(byId("part").style, { left: `${(state.from / batches) * 100}%`, right: `${(1 - state.to / batches) * 100}%` });
  byId("span").textContent = `batches ${state.from.toLocaleString("en")} to ${(state.to - 1).toLocaleString("en")}`;
}

function zoom(from, to) {
  const { batches } = DATA.streams[state.stream];
  const least = Math.min(20, batches);
  state.from = Math.round(Math.max(0, Math.min(from, batches - least)));
  state.to = Math.round(Math.min(batches, Math.max(to, state.from + least)));
  later();
}

let waiting = false;
function later() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    renderZoom();
    drawLoss();
    drawGates();
  });
}

draw = () => {
  renderControls();
  renderZoom();
  const drawn = drawLoss();
  setTimeout(() => {
    drawSwitch();
    drawGates();
  });
  return drawn;
};

byId("from").addEventListener("input", (event) => zoom(Math.min(Number(event.target.value), state.to - 20), state.to));
byId("to").addEventListener("input", (event) => zoom(state.from, Math.max(Number(event.target.value), state.from + 20)));
byId("whole").addEventListener("click", () => zoom(0, DATA.streams[state.stream].batches));
byId("stream").addEventListener("change", (event) => {
  choose(Number(event.target.value));
  renderBoard();
  renderClasses();
  draw();
});
byId("gate").addEventListener("change", (event) => {
  state.gate = Number(event.target.value);
  drawGates();
});
draw().then(() => {
  performance.mark("drawn");
  byId("loss").on("plotly_relayout", (change) => {
    if (change["xaxis.autorange"]) zoom(0, DATA.streams[state.stream].batches);
    else if ("xaxis.range[0]" in change) zoom(change["xaxis.range[0]"] + 0.5, change["xaxis.range[1]"] + 0.5);
  });
});
