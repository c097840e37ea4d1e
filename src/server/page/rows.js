// Rows, charts and the histogram, as elements. Texts of documents only become text nodes and attributes that are
// shown. The policy of the page forbids anything else.
const MAX_CHART = 30, MAX_CELL = 600;
// The places of hits lead to documents, and are not shown.
const PLACES = ["byte_offset", "byte_len"];
const by = (id) => document.getElementById(id);

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function button(text, work) {
  const made = element("button", text);
  made.type = "button";
  made.addEventListener("click", work);
  return made;
}

function drawing(name, attributes, text) {
  const made = document.createElementNS("http:\/\/www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const short = (number) => String(number).length <= 12 ? String(number) : number.toPrecision(6);
const grouped = (number) => Number(number).toLocaleString("en");
const plural = (number, what) => `${grouped(number)} ${Number(number) === 1 && what.endsWith("s") ? what.slice(0, -1) : what}`;

// Adds a text in which marks are written as OPEN and CLOSE.
function addMarked(to, text) {
  for (const [at, part] of text.split(OPEN).entries()) {
    const [marked, ...rest] = at ? part.split(CLOSE) : [undefined, part];
    if (marked !== undefined) to.append(element("mark", marked));
    to.append(rest.join(CLOSE));
  }
}

// A button in the place of what was cut, which shows all.
const more = (cell, text) => button(`${ELLIPSIS} ${grouped(text.length - MAX_CELL)} characters`, () => { cell.textContent = text; });

function cell(value, column) {
  if (value === null) return element("td", "NULL");
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  const kind = isNumber(column.type) ? "number" : isTime(column.type) ? "time" : "";
  const made = element("td", undefined, kind || (["left", "match"].includes(column.name) ? column.name : ""));
  if (column.name === "snippet") {
    addMarked(made, text);
    return made;
  }
  // A plan is shown whole.
  const isCut = text.length > MAX_CELL && column.name !== "plan";
  made.textContent = typeof value === "number" ? short(value) : isCut ? text.slice(0, MAX_CELL) : text;
  if (isCut) made.append(more(made, text));
  return made;
}

// A table. `links` gives the address that a column of a row leads to, `sort` is called with a column that can order
// rows. With `groups` rows that follow each other and have one path stand below it.
function table({ columns, rows }, { link, sort, sorted, groups }) {
  const made = element("table"), head = element("tr"), body = element("tbody");
  const path = columns.findIndex((column) => column.name === "path");
  const isGrouped = groups && path >= 0;
  const shown = columns.map((column, at) => !PLACES.includes(column.name) && !(isGrouped && at === path));
  columns.forEach((column, at) => {
    if (!shown[at]) return;
    const cell = element("th");
    cell.scope = "col";
    const isSorted = sorted && sorted.column === column.name;
    if (isSorted) cell.ariaSort = sorted.isDescending ? "descending" : "ascending";
    const mark = isSorted ? (sorted.isDescending ? " \u25bc" : " \u25b2") : "";
    cell.append(sort(column) ? button(column.name + mark, () => sort(column)()) : column.name);
    head.append(cell);
  });
  let before;
  for (const row of rows) {
    if (isGrouped && row[path] !== before) {
      before = row[path];
      const group = element("tr"), cell = element("th", before);
      [cell.scope, cell.colSpan] = ["rowgroup", shown.filter(Boolean).length];
      group.append(cell);
      body.append(group);
    }
    const line = element("tr");
    row.forEach((value, at) => {
      if (!shown[at]) return;
      const made = cell(value, columns[at]), to = link(columns[at].name, row);
      made.dataset.name = columns[at].name;
      if (to) {
        const anchor = element("a");
        anchor.href = to;
        anchor.append(...made.childNodes);
        made.append(anchor);
      }
      line.append(made);
    });
    body.append(line);
  }
  made.append(element("thead"), body);
  made.tHead.append(head);
  return made;
}

// Bars of the first column of numbers, named by the first column of texts; or nothing.
function chart({ columns, rows }) {
  const names = columns.findIndex((column) => !isNumber(column.type) && column.name !== "snippet");
  const values = columns.findIndex((column) => isNumber(column.type) && column.name !== "doc_id");
  if (names < 0 || values < 0 || rows.length < 2) return [];
  const bars = rows.slice(0, MAX_CHART), most = Math.max(...bars.map((row) => Math.abs(Number(row[values]))));
  const [left, room, cut] = by("chart").clientWidth > 600 ? [230, 640, 32] : [120, 190, 15];
  const svg = drawing("svg", { viewBox: `0 0 ${left + room + 130} ${bars.length * 20}`, role: "img" });
  svg.append(drawing("title", {}, `${columns[values].name} by ${columns[names].name}`));
  bars.forEach((row, at) => {
    const name = String(row[names]), width = most > 0 ? Math.abs(Number(row[values])) / most * room : 0;
    svg.append(
      drawing("text", { x: left, y: at * 20 + 15, "text-anchor": "end" }, name.length > cut ? name.slice(0, cut - 1) + ELLIPSIS : name),
      drawing("rect", { x: left + 10, y: at * 20 + 3, width, height: 14, rx: 2 }),
      drawing("text", { x: left + 16 + width, y: at * 20 + 15 }, row[values] === null ? "NULL" : short(Number(row[values]))));
  });
  return [svg];
}

const STEPS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400, 604800, 2592000, 31536000];
const STEP_NAMES = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
// A moment of the server, which may have no zone and has more digits than a browser takes.
const moment = (text) => Date.parse(text.replace(/(\.\d{3})\d+/, "$1").replace(/([^Z])$/, (end) => /[+-]\d\d:\d\d$/.test(text) ? end : end + "Z"));
const shownTime = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19);
const stepFor = (first, last) => STEPS.find((step) => (last - first) / step < MAX_BARS - 1) ?? Math.ceil((last - first) / (MAX_BARS - 1));

// Bars over time from `first` to `last`, in seconds. Arrow keys go from bar to bar, Enter and a click choose one.
function timeBars({ rows }, first, last, step, choose) {
  const counts = new Map(rows.filter(([at]) => at !== null).map(([at, n]) => [Math.round(moment(at) / 1000), Number(n)]));
  const begin = Math.floor(first / step) * step, num = Math.min(Math.floor((last - begin) / step) + 1, MAX_BARS);
  const most = Math.max(1, ...counts.values()), unit = STEP_NAMES.find(([size]) => step % size === 0);
  const svg = drawing("svg", { viewBox: `0 0 ${num} 100`, preserveAspectRatio: "none", role: "group", "aria-label": "Hits over time" });
  const spots = [];
  for (let at = 0; at < num; at++) {
    const from = begin + at * step, n = counts.get(from) ?? 0, height = n ? Math.max(n / most * 100, 2) : 0;
    const label = `${shownTime(from)}: ${grouped(n)}`;
    const spot = drawing("rect", { class: "all", x: at, y: 0, width: 1, height: 100, role: "button",
      tabindex: at ? -1 : 0, "aria-label": label });
    spot.append(drawing("title", {}, label));
    spot.addEventListener("click", () => choose(from, from + step));
    spots.push(spot);
    svg.append(drawing("rect", { x: at + 0.05, y: 100 - height, width: 0.9, height }), spot);
  }
  svg.addEventListener("keydown", (event) => {
    const now = spots.indexOf(document.activeElement);
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: num - 1 }[event.key];
    if (now >= 0 && (event.key === "Enter" || event.key === " ")) spots[now].dispatchEvent(new MouseEvent("click"));
    else if (now >= 0 && spots[to]) {
      spots[now].setAttribute("tabindex", -1);
      spots[to].setAttribute("tabindex", 0);
      spots[to].focus();
    } else return;
    event.preventDefault();
  });
  const line = element("p"), each = step / unit[0];
  line.append(element("span", shownTime(begin)), element("span", `a bar is ${each === 1 ? `a${unit[1] === "hour" ? "n" : ""}` : each} ${unit[1]}${each === 1 ? "" : "s"}`),
    element("span", shownTime(begin + num * step)));
  return [svg, line];
}
