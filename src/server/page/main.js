// The form, the address and the requests. The address says all that is shown, so that it can be shared, and Back goes
// to what was shown before.
const FIELDS = ["corpus", "query", "width", "rows", "sql", "from", "to"];
const MAX_ROWS = 10000;
let token = sessionStorage.getItem("token"), corpora = new Map(), running = null, shownQuery = null;

const whole = (id, text) => {
  const input = by(id), value = Math.trunc(Number(text));
  return Math.min(Math.max(value || Number(input.defaultValue), Number(input.min)), Number(input.max));
};
const view = () => document.querySelector("input[name=view]:checked").value;

// What the form asks for.
function formState() {
  const filters = [...by("conditions").children].map((line) => [...line.querySelectorAll("select, input")].map((input) => input.value));
  return {
    view: view(), corpus: by("corpus").value, query: by("query").value.trim(), fold: by("fold").checked,
    width: whole("width", by("width").value), rows: whole("rows", by("rows").value), sql: by("sql").value,
    from: by("from").value, to: by("to").value, filters, page: 1, sort: "", isDescending: false, doc: null, at: null,
  };
}

function address(state) {
  const made = new URLSearchParams({ view: state.view, corpus: state.corpus });
  if (state.view === "sql") made.set("sql", state.sql);
  else made.set("query", state.query);
  made.set("fold", state.fold);
  for (const [key, usual] of [["width", 8], ["rows", 50], ["page", 1], ["from", ""], ["to", ""]]) {
    if (state[key] !== usual) made.set(key, state[key]);
  }
  for (const filter of state.filters) made.append("filter", JSON.stringify(filter));
  if (state.sort) made.set("sort", (state.isDescending ? "-" : "") + state.sort);
  if (state.doc !== null) made.set("doc", state.doc);
  if (state.doc !== null && state.at !== null) made.set("at", state.at);
  return "#" + made;
}

const count = (text) => /^\d{1,15}$/.test(text ?? "") ? Number(text) : null;

// What an address asks for; null if it asks for nothing. Anybody may have written it.
function addressState() {
  const given = new URLSearchParams(location.hash.slice(1));
  const radio = [...document.querySelectorAll("input[name=view]")].find((radio) => radio.value === given.get("view"));
  if (!radio) return null;
  const filters = given.getAll("filter").map((text) => {
    try { return JSON.parse(text); } catch { return null; }
  });
  const isFilter = (filter) => Array.isArray(filter) && filter.length === 3 && filter.every((part) => typeof part === "string");
  const moment = (key) => /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(given.get(key) ?? "") ? given.get(key) : "";
  const sort = given.get("sort") ?? "";
  return {
    view: radio.value, corpus: given.get("corpus") ?? by("corpus").value, query: (given.get("query") ?? "").trim(),
    fold: given.get("fold") !== "false", width: whole("width", given.get("width")), rows: whole("rows", given.get("rows")),
    sql: given.get("sql") ?? "", from: moment("from"), to: moment("to"), filters: filters.filter(isFilter),
    page: Math.max(count(given.get("page")) ?? 1, 1), sort: sort.replace(/^-/, ""), isDescending: sort.startsWith("-"),
    doc: count(given.get("doc")), at: count(given.get("at")),
  };
}

function fillForm(state) {
  document.querySelector(`input[name=view][value=${state.view}]`).checked = true;
  for (const id of FIELDS) if (id !== "sql" || state.view === "sql") by(id).value = state[id];
  by("fold").checked = state.fold;
  adapt();
  by("conditions").replaceChildren();
  for (const filter of state.filters) addFilter(filter);
  numFilters();
}

// Integers that a number rounds stay texts, in browsers that show the source of a value.
const exact = (key, value, context) => Number.isInteger(value) && !Number.isSafeInteger(value) && context ? context.source : value;

async function request(body, signal) {
  const headers = { "content-type": "application/json" };
  if (token) headers.authorization = "Bearer " + token;
  const response = await fetch("query", { method: "POST", headers, body: JSON.stringify(body), signal });
  if (response.status === 401) { by("token").hidden = false; throw new Error("The server asks for its token: Token…"); }
  if (!response.ok) throw new Error(JSON.parse(await response.text()).error);
  return response;
}

const ask = async (sql, maxRows, signal) => JSON.parse(await (await request({ sql, max_rows: maxRows }, signal)).text(), exact);

function say(text, isError) {
  by("status").textContent = text;
  by("status").classList.toggle("error", Boolean(isError));
}

function busy(work) {
  running = work;
  by("stop").hidden = !work;
  for (const id of ["result", "chart", "histogram"]) by(id).ariaBusy = String(Boolean(work));
}

function stop() {
  if (!running) return;
  running.abort();
  busy(null);
  shownQuery = null;
  say("Stopped.");
}

// Goes to what `state` asks for.
function go(state, isReplaced) {
  const to = address(state);
  if (isReplaced || to === location.hash) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  show();
}

// Shows what the address asks for.
function show() {
  const state = addressState();
  if (!state) {
    // Back to the page as it was opened.
    if (shownQuery !== null) location.reload();
    return;
  }
  const corpus = corpora.get(state.corpus);
  fillForm(state);
  const asked = address({ ...state, doc: null });
  if (asked !== shownQuery) run(corpus, state, asked);
  if (state.doc === null) closeDocument();
  else if (corpus) factsFor(corpus).then(() => openDocument(corpus, state, (at) => go({ ...state, at }, true)), () => {});
}

// Learns what is true of a corpus as a whole, once.
function factsFor(corpus) {
  corpus.learned ??= Promise.all([facts(corpus), samplePaths(corpus)].map((sql) => ask(sql, 1))).then(([whole, sample]) => {
    const [, first, last] = whole.rows[0], [documents, paths] = sample.rows[0];
    corpus.isLog = documents > 1 && 2 * paths <= documents;
    if (first) [corpus.first, corpus.last] = [first, last].map((text) => moment(String(text)) / 1000);
  }).catch((error) => {
    corpus.learned = undefined;
    throw error;
  });
  return corpus.learned;
}

async function run(corpus, state, asked) {
  running?.abort();
  const mine = new AbortController(), started = performance.now();
  let isShown = false;
  shownQuery = asked;
  busy(mine);
  say("Running…");
  try {
    if (!corpus && state.view !== "sql") throw new Error(`There is no corpus "${state.corpus}" here.`);
    if (state.view !== "sql") await factsFor(corpus);
    const sql = statementOf(corpus, state);
    by("shown").textContent = sql;
    const isSql = state.view === "sql";
    const beside = isSql ? [] : [ask(totals(corpus, state), 1, mine.signal), bars(corpus, state, mine.signal)];
    // An error of theirs is told below.
    for (const work of beside) work.catch(() => {});
    const answer = await ask(sql, isSql ? MAX_ROWS : state.rows, mine.signal);
    if (mine !== running) return;
    showRows(corpus, state, answer);
    isShown = true;
    const time = `${Math.round(performance.now() - started)} ms`;
    const notes = answer.notices ? ". Note: " + answer.notices.join(". ") : "";
    const told = `${plural(answer.rows.length, "rows")}${isSql && answer.truncated ? ", and more" : ""}, ${time}${notes}`;
    if (isSql) by("histogram").replaceChildren();
    else say("Counting…");
    const total = await beside[0];
    if (mine !== running) return;
    showPages(state, isSql ? answer.rows.length : Number(total.rows[0][0]));
    const counts = total ? ". " + total.columns.map((column, at) => plural(total.rows[0][at], column.name)).join(", ") : "";
    const drawn = await beside[1];
    if (mine !== running) return;
    const isAtBar = by("histogram").contains(document.activeElement);
    if (drawn) by("histogram").replaceChildren(...drawn);
    if (isAtBar) by("result").focus();
    busy(null);
    say(told + counts);
  } catch (error) {
    if (mine !== running || error.name === "AbortError") return;
    busy(null);
    // Rows stay if only their number or the bars over time cannot be told.
    for (const id of isShown ? ["histogram"] : ["result", "chart", "histogram"]) by(id).replaceChildren();
    by("pages").hidden = true;
    say(error.message, true);
  }
}

// Asks for the bars over time; nothing where there is no time.
async function bars(corpus, state, signal) {
  if (!hasHits(state) || !timeColumn(corpus) || corpus.first === undefined) return [];
  const [first, last] = [state.from ? moment(state.from) / 1000 : corpus.first, state.to ? moment(state.to) / 1000 - 1 : corpus.last];
  if (!(first <= last)) return [];
  const step = stepFor(first, last), answer = await ask(histogram(corpus, state, step), MAX_ROWS, signal);
  return timeBars(answer, first, last, step, (from, to) => go({ ...state, from: shownTime(from), to: shownTime(to), page: 1 }));
}

const UNSORTED = ["snippet", "content"];

function showRows(corpus, state, answer) {
  const isSql = state.view === "sql", places = answer.columns.map((column) => column.name);
  const isList = ["words", "collocates"].includes(state.view);
  const value = (row, wanted) => row[places.indexOf(wanted)] ?? null;
  const link = (column, row) => {
    if (isList && column === "word") return address({ ...formOf(state), view: "kwic", query: `"${value(row, "word").replaceAll('"', '""')}"` });
    const opens = !isSql && (column === "doc_id" || column === "path") && value(row, "doc_id") !== null;
    return opens ? address({ ...state, doc: value(row, "doc_id"), at: value(row, "byte_offset") }) : null;
  };
  const sort = (column) => {
    if (UNSORTED.includes(column.name) || (state.view === "kwic" && column.name === "doc_id")) return null;
    // The usual direction first, then the other one, then the order of the view.
    const isFirst = state.sort !== column.name, usual = isNumber(column.type);
    const isLast = !isFirst && state.isDescending !== usual;
    return () => go({ ...state, sort: isLast ? "" : column.name, isDescending: !isLast && isFirst === usual, page: 1 });
  };
  const sorted = state.sort && { column: state.sort, isDescending: state.isDescending };
  const shown = isSql ? { ...answer, rows: pageOf(state, answer) } : answer;
  const groups = corpus?.isLog && state.view !== "documents";
  // Who orders rows by keyboard stays at the head of the column.
  const focused = document.activeElement.closest("#result th")?.cellIndex;
  by("result").replaceChildren(...(answer.columns.length ? [table(shown, { link, sort, sorted, groups })] : []));
  if (focused !== undefined) by("result").querySelectorAll("th")[focused]?.querySelector("button")?.focus();
  by("chart").replaceChildren(...(["search", "kwic"].includes(state.view) ? [] : chart(shown)));
}

const formOf = (state) => ({ ...state, page: 1, sort: "", isDescending: false, doc: null, at: null });

// The rows of a statement of the user are ordered and divided here.
function pageOf(state, { columns, rows }) {
  const at = columns.findIndex((column) => column.name === state.sort), sorted = [...rows];
  const compare = (a, b) => a === null ? 1 : b === null ? -1 : (a < b ? -1 : a > b ? 1 : 0) * (state.isDescending ? -1 : 1);
  if (at >= 0) sorted.sort((a, b) => compare(a[at], b[at]));
  return sorted.slice((state.page - 1) * state.rows, state.page * state.rows);
}

function showPages(state, numRows) {
  const last = Math.max(Math.ceil(numRows / state.rows), 1);
  by("pages").hidden = last === 1 && state.page === 1;
  by("page").textContent = `Page ${grouped(state.page)} of ${grouped(last)}`;
  by("previous").disabled = state.page <= 1;
  by("next").disabled = state.page >= last;
}

function turn(step) {
  const state = addressState();
  if (state) go({ ...state, page: state.page + step, doc: null, at: null });
}

function adapt() {
  const now = view(), corpus = corpora.get(by("corpus").value);
  by("for-sql").hidden = now !== "sql";
  for (const id of ["for-query", "for-fold"]) by(id).hidden = now === "sql";
  by("help").hidden = ["words", "sql"].includes(now);
  by("for-width").hidden = !["search", "kwic", "collocates"].includes(now);
  by("filters").hidden = !canFilter({ view: now }) || !corpus;
  by("times").hidden = !corpus || !timeColumn(corpus);
  by("query").placeholder = now === "words" ? "all words, or a pattern such as power%" : "";
}

function numFilters() {
  const num = by("conditions").children.length + ["from", "to"].filter((id) => by(id).value).length;
  by("num-filters").textContent = num ? `(${num})` : "";
  if (num) by("filters").open = true;
}

// Adds a line with a filter to the form.
function addFilter([column, operator, value] = []) {
  const corpus = corpora.get(by("corpus").value);
  if (!corpus) return;
  const line = element("p"), columns = element("select"), kinds = element("select"), input = element("input");
  const usable = corpus.columns.filter(({ name }) => !["text", "content"].includes(name));
  columns.append(...usable.map(({ name }) => element("option", name)));
  [columns.ariaLabel, kinds.ariaLabel, input.ariaLabel] = ["Column", "Condition", "Value"];
  const fit = () => {
    const type = usable.find(({ name }) => name === columns.value)?.type ?? "";
    kinds.replaceChildren(...operators(type).map((kind) => element("option", kind)));
    input.placeholder = isTime(type) ? "2026-11-30T12:00:00Z" : "";
  };
  if (column !== undefined) columns.value = column;
  else columns.value = (userColumns(corpus)[0] ?? { name: "path" }).name;
  fit();
  columns.addEventListener("change", fit);
  if (operator !== undefined) kinds.value = operator;
  input.value = value ?? "";
  line.append(columns, kinds, input, button("Remove", () => { line.remove(); numFilters(); by("add").focus(); }));
  by("conditions").append(line);
  return columns;
}

// Gives all rows of the statement as a file.
async function download(format) {
  const state = { ...(addressState() ?? formState()), isWhole: true }, corpus = corpora.get(state.corpus);
  stop();
  const mine = new AbortController();
  busy(mine);
  say("Reading all rows…");
  try {
    const response = await request({ sql: statementOf(corpus, state), format }, mine.signal), content = await response.blob();
    if (mine !== running) return;
    const link = element("a");
    link.href = URL.createObjectURL(content);
    link.download = `${state.corpus || "rows"}-${state.view}.${format}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    busy(null);
    say(`${grouped(content.size)} bytes in ${link.download}.`);
  } catch (error) {
    if (mine !== running || error.name === "AbortError") return;
    busy(null);
    say(error.message, true);
  }
}

async function copy() {
  const state = formState();
  try {
    const sql = statementOf(corpora.get(state.corpus), state) + ";";
    by("shown").textContent = sql;
    by("shown").parentElement.open = true;
    await navigator.clipboard.writeText(sql);
    say("Copied.");
  } catch {
    getSelection().selectAllChildren(by("shown"));
    say("The statement is selected below: copy it with Ctrl+C.");
  }
}

async function start() {
  try {
    const sql = "SELECT table_name, column_name, data_type FROM information_schema.columns " +
      "WHERE table_schema = 'public' ORDER BY table_name, ordinal_position";
    corpora = new Map();
    for (const [table, column, type] of (await ask(sql, MAX_ROWS)).rows) {
      if (!corpora.has(table)) corpora.set(table, { name: table, columns: [], isLog: false });
      corpora.get(table).columns.push({ name: column, type });
    }
    by("corpus").replaceChildren(...[...corpora.keys()].map((name) => element("option", name)));
    by("sql").value = by("sql").value || `SELECT * FROM corpus_info(${literal(by("corpus").value)})`;
    say("");
    adapt();
    shownQuery = null;
    show();
  } catch (error) {
    say(error.message, true);
  }
}

by("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const state = formState();
  if (["kwic", "collocates", "documents"].includes(state.view) && !state.query) { by("query").focus(); return; }
  const before = addressState();
  const isSameList = before && before.view === state.view && before.corpus === state.corpus;
  if (isSameList) [state.sort, state.isDescending] = [before.sort, before.isDescending];
  // The same question again runs again.
  shownQuery = null;
  go(state);
});
by("views").addEventListener("change", adapt);
by("corpus").addEventListener("change", () => { by("conditions").replaceChildren(); numFilters(); adapt(); });
by("add").addEventListener("click", () => { addFilter()?.focus(); numFilters(); });
by("stop").addEventListener("click", stop);
by("copy").addEventListener("click", copy);
for (const format of ["csv", "arrow"]) by(format).addEventListener("click", () => download(format));
by("previous").addEventListener("click", () => turn(-1));
by("next").addEventListener("click", () => turn(1));
for (const side of ["earlier", "later"]) by(side).addEventListener("click", () => extend(side));
by("hit-before").addEventListener("click", () => opened?.goTo?.(-1));
by("hit-after").addEventListener("click", () => opened?.goTo?.(1));
by("close").addEventListener("click", () => by("document").close());
// Escape and the button leave the document in the address, too.
by("document").addEventListener("close", () => {
  const state = addressState();
  if (state && state.doc !== null) go({ ...state, doc: null, at: null });
});
window.addEventListener("popstate", show);
by("token").hidden = !token;
by("token").addEventListener("click", () => {
  const given = prompt("Token of the server");
  if (given === null) return;
  token = given.trim();
  sessionStorage.setItem("token", token);
  start();
});
by("sql").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); by("form").requestSubmit(); }
});
document.addEventListener("keydown", (event) => {
  const writes = /^(INPUT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "radio";
  if (event.key === "/" && !writes && !event.ctrlKey && !by("document").open) { event.preventDefault(); by("query").focus(); by("query").select(); }
  if (event.key === "Escape" && running && !by("document").open) { event.preventDefault(); stop(); }
});
adapt();
start();
