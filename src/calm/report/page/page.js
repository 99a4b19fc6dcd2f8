"use strict";
// The tables: leaderboard, classes, runs; and what is chosen. Names are put in as text only.
const DATA = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const COLUMNS = { learner: "learner", corpus: "corpus", length: "λ", ...DATA.columns, speed: "tokens/s", seeds: "seeds" };
const WORDS = new Set(["learner", "corpus"]);
const HIGH_IS_GOOD = new Set(["speed", "seeds"]);
const state = {
  corpus: "", length: "", setting: "", stream: 0, drawn: new Set(), metric: "ppl", gate: 0,
  from: 0, to: 0, sort: "ppl", up: true, runSort: "learner", runUp: true,
};

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function number(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : value.toFixed(2);
}

const whole = (value) => (value === null ? "–" : Math.round(value).toLocaleString("en"));

function pair([mean, interval], best = false) {
  const cell = make("td", best ? { class: "best" } : {}, number(mean));
  if (interval !== null) cell.append(make("span", { class: "spread" }, ` ± ${number(interval)}`));
  return cell;
}

// what is undefined comes last, whichever way it is sorted
function compare(a, b, up) {
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  const order = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  return up ? order : -order;
}

function value(row, key) {
  if (key === "rank") return row.rank;
  if (key in DATA.columns) return Array.isArray(row.scores[key]) ? row.scores[key][0] : row.scores[key];
  if (key === "corpus" || key === "length") return DATA.settings[row.setting][key];
  return row[key];
}

function sortable(table, columns, key, up, choose) {
  const cells = Object.entries(columns).map(([name, heading]) =>
    make("th", { scope: "col", class: WORDS.has(name) ? "text" : null,
                 "aria-sort": name === key ? (up ? "ascending" : "descending") : null },
      make("button", { type: "button", "data-sort": name, onclick: () => {
        choose(name, name === key ? !up : !HIGH_IS_GOOD.has(name));
        table.querySelector(`[data-sort="${name}"]`).focus();
      } }, heading)));
  return make("thead", {}, make("tr", {}, ...cells));
}

// ---- settings and filters

function chosen() {
  return DATA.settings.map((setting, i) => ({ ...setting, i })).filter((setting) =>
    (!state.corpus || setting.corpus === state.corpus)
    && (!state.length || String(setting.length) === state.length)
    && (!state.setting || String(setting.i) === state.setting)).map((setting) => setting.i);
}

function options(select, pairs, current) {
  select.replaceChildren(...pairs.map(([key, label]) => make("option", { value: key }, label)));
  select.value = current;
}

function renderFilters() {
  const all = ["", "all"];
  const some = DATA.settings.map((setting, i) => ({ ...setting, i }));
  const here = some.filter((setting) => !state.corpus || setting.corpus === state.corpus);
  const lengths = [...new Set(here.map((setting) => setting.length))].sort((a, b) => a - b);
  if (state.length && !lengths.map(String).includes(state.length)) state.length = "";
  const left = here.filter((setting) => !state.length || String(setting.length) === state.length);
  if (state.setting && !left.some((setting) => String(setting.i) === state.setting)) state.setting = "";
  const corpora = [...new Set(some.map((setting) => setting.corpus))].sort();
  options(byId("corpus"), [all, ...corpora.map((name) => [name, name])], state.corpus);
  options(byId("length"), [all, ...lengths.map((n) => [String(n), n.toLocaleString("en")])], state.length);
  options(byId("setting"), [all, ...left.map((s) => [String(s.i), s.name])], state.setting);
  const pairs = new Set(some.map((setting) => JSON.stringify([setting.corpus, setting.length])));
  byId("setting-label").hidden = pairs.size === some.length;
}

// ---- tables

function ranked() {
  const places = {};
  const mean = (row) => row.scores.ppl[0];
  for (const row of [...DATA.learners].sort((a, b) => compare(mean(a), mean(b), true))) {
    row.rank = row.oracle ? null : (places[row.setting] = (places[row.setting] ?? 0) + 1);
  }
}

function boardRow(row, bests) {
  const setting = DATA.settings[row.setting];
  const isBest = (key) => !row.oracle && bests[key]?.[row.setting] === row.scores[key][0] && row.scores[key][0] !== null;
  const drawn = row.setting === DATA.streams[state.stream].setting && state.drawn.has(row.learner);
  const runs = DATA.runs.some((run) => DATA.learners[run.learner] === row);
  const name = runs
    ? make("button", { type: "button", class: "draw", "aria-pressed": drawn,
                       title: "Draw its loss, or not", onclick: () => toggle(row) }, row.learner)
    : row.learner;
  return make("tr", { "data-learner": row.learner },
    make("td", {}, row.rank === null ? "–" : String(row.rank)),
    make("th", { scope: "row", class: "text" }, name, row.remark ? make("span", { class: "remark" }, row.remark) : null),
    make("td", { class: "text", title: setting.name }, setting.corpus),
    make("td", {}, setting.length.toLocaleString("en")),
    ...Object.keys(DATA.columns).map((key) => pair(row.scores[key], isBest(key))),
    make("td", {}, whole(row.speed)), make("td", {}, String(row.seeds)));
}

function renderBoard() {
  const settings = new Set(chosen());
  const rows = DATA.learners.filter((row) => settings.has(row.setting)).sort((a, b) =>
    compare(value(a, state.sort), value(b, state.sort), state.up)
    || a.setting - b.setting || compare(a.rank, b.rank, true));
  const contenders = rows.filter((row) => !row.oracle);
  const oracles = rows.filter((row) => row.oracle);
  const bests = {};
  for (const key of Object.keys(DATA.columns)) {
    bests[key] = {};
    for (const row of contenders) {
      const mean = row.scores[key][0];
      if (mean !== null) bests[key][row.setting] = Math.min(mean, bests[key][row.setting] ?? Infinity);
    }
  }
  const table = byId("board");
  const columns = { rank: "#", ...COLUMNS };
  const head = sortable(table, columns, state.sort, state.up, (key, up) => {
    Object.assign(state, { sort: key, up });
    renderBoard();
  });
  const apart = make("tbody", { class: "apart" });
  if (oracles.length) {
    const title = "Oracles: they know what no contender may, and are not ranked";
    apart.append(make("tr", {}, make("th", { colspan: Object.keys(columns).length, class: "text" }, title)));
  }
  apart.append(...oracles.map((row) => boardRow(row, bests)));
  table.replaceChildren(head, make("tbody", {}, ...contenders.map((row) => boardRow(row, bests))), apart);
  byId("shown").textContent = `${rows.length} of ${DATA.learners.length} rows`;
}

function renderClasses() {
  const setting = DATA.streams[state.stream].setting;
  const rows = DATA.learners.filter((row) => row.setting === setting);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.classes)))].sort();
  const line = (row) => make("tr", {}, make("th", { scope: "row", class: "text" }, row.learner),
    ...names.map((name) => pair(row.classes[name]?.[state.metric] ?? [null, null])));
  const head = make("tr", {}, make("th", { scope: "col", class: "text plain" }, "learner"),
    ...names.map((name) => make("th", { scope: "col", class: "plain" }, name)));
  const apart = rows.filter((row) => row.oracle);
  const title = apart.length ? [make("tr", {}, make("th", { colspan: names.length + 1, class: "text" }, "Oracles"))] : [];
  byId("classes").replaceChildren(make("thead", {}, head),
    make("tbody", {}, ...rows.filter((row) => !row.oracle).map(line)),
    make("tbody", { class: "apart" }, ...title, ...apart.map(line)));
}

function details(run, width) {
  const button = make("button", { type: "button", class: "more", "aria-expanded": "false", onclick: () => {
    const row = button.closest("tr");
    const open = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", open);
    if (open) {
      const environment = JSON.stringify(run.environment, null, 2);
      row.after(make("tr", { class: "details" }, make("td", { colspan: width, class: "text" }, make("div", {},
        make("pre", { tabindex: 0 }, `# ${run.folder}\n\n${run.config}`), make("pre", { tabindex: 0 }, environment)))));
    } else row.nextSibling.remove();
  } }, "show");
  return button;
}

function renderRuns() {
  const settings = new Set(chosen());
  const rows = DATA.runs.map((run) => ({ ...DATA.learners[run.learner], ...run, learner: DATA.learners[run.learner].learner }))
    .filter((row) => settings.has(row.setting)).sort((a, b) =>
      compare(value(a, state.runSort), value(b, state.runSort), state.runUp) || a.setting - b.setting || a.seed - b.seed);
  const table = byId("runs");
  const { learner, corpus, length, ...rest } = COLUMNS;
  const columns = { learner, corpus, length, seed: "seed", ...DATA.columns, speed: rest.speed };
  const head = sortable(table, columns, state.runSort, state.runUp, (key, up) => {
    Object.assign(state, { runSort: key, runUp: up });
    renderRuns();
  });
  for (const heading of ["files", "config, environment"]) {
    head.firstChild.append(make("th", { scope: "col", class: "text plain" }, heading));
  }
  table.replaceChildren(head, make("tbody", {}, ...rows.map((run) => make("tr", {},
    make("th", { scope: "row", class: "text" }, run.learner + (run.oracle ? " *" : "")),
    make("td", { class: "text", title: DATA.settings[run.setting].name }, DATA.settings[run.setting].corpus),
    make("td", {}, DATA.settings[run.setting].length.toLocaleString("en")),
    make("td", {}, String(run.seed)),
    ...Object.keys(DATA.columns).map((key) => make("td", {}, number(run.scores[key]))),
    make("td", {}, whole(run.speed)),
    make("td", { class: "text" }, make("span", { class: "links" },
      ...Object.entries(run.links).map(([name, link]) => make("a", { href: link }, name.split(".")[0])))),
    make("td", { class: "text" }, details(run, head.firstChild.childElementCount))))));
}

// ---- what is drawn

const learnersOf = (stream) => DATA.runs.filter((run) => run.stream === stream).map((run) => DATA.learners[run.learner].learner);

function choose(stream) {
  state.stream = stream;
  const there = learnersOf(stream);
  const kept = [...state.drawn].filter((name) => there.includes(name));
  const { few } = DATA.look;
  const rows = DATA.learners.filter((row) => row.setting === DATA.streams[stream].setting && there.includes(row.learner));
  state.drawn = new Set(kept.length ? kept : rows.slice(0, few).map((row) => row.learner));
  [state.from, state.to] = [0, DATA.streams[stream].batches];
}

function toggle(row) {
  const focused = document.activeElement?.closest("tr")?.dataset.learner;
  if (DATA.streams[state.stream].setting !== row.setting) {
    state.drawn = new Set([row.learner]);
    choose(DATA.runs.find((run) => DATA.learners[run.learner] === row).stream);
  } else if (!state.drawn.delete(row.learner)) state.drawn.add(row.learner);
  renderBoard();
  if (focused) byId("board").querySelector(`tr[data-learner="${CSS.escape(focused)}"] button`)?.focus();
  renderClasses();
  draw();
}

function filter() {
  renderFilters();
  const settings = chosen();
  if (!settings.includes(DATA.streams[state.stream].setting)) {
    choose(DATA.streams.findIndex((stream) => stream.setting === settings[0]));
  }
  renderBoard();
  renderClasses();
  renderRuns();
  draw();
}

let draw = () => {}; // until the charts are there

// ---- dark and light

function paint(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").setAttribute("aria-pressed", theme === "dark");
  draw();
}

function begin() {
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  paint(preferred.matches ? "dark" : "light");
  preferred.addEventListener("change", () => paint(preferred.matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () =>
    paint(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
  const learners = new Set(DATA.learners.filter((row) => !row.oracle).map((row) => row.learner));
  byId("summary").textContent = `${count(learners.size, "learner")}, ${count(DATA.settings.length, "setting")}, `
    + `${count(DATA.runs.length, "run")} of online continual learning on text`;
  byId("notes").textContent = "ppl: perplexity over the second half of the stream. ppl@sw: over the 10 batches after a "
    + "switch to a class seen before. rec: batches until the loss is back below what it was. bits: loss per token. "
    + "±: half of the 95 % interval over seeds. –: not defined. The best of a setting is bold.";
  byId("footer").textContent = `Made by calm ${DATA.version}. Everything on this page is in this file.`;
  for (const key of ["corpus", "length", "setting"]) {
    byId(key).addEventListener("change", (event) => {
      state[key] = event.target.value;
      filter();
    });
  }
  options(byId("metric"), Object.keys(Object.values(DATA.learners[0].classes)[0] ?? { ppl: 0 }).map((key) => [key, DATA.columns[key]]), "ppl");
  byId("metric").addEventListener("change", (event) => {
    state.metric = event.target.value;
    renderClasses();
  });
  ranked();
  state.corpus = DATA.settings[0].corpus;
  state.length = String(DATA.settings[0].length);
  choose(0);
  filter();
}

begin();
