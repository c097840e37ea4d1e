// One document: the passage around a hit, or the lines of a log around a line.
const PASSAGE_BYTES = 6000, LINES = 20, MAX_MARKS = 500;
// What is shown: { corpus, state, asking, size, hits, first, last } or the same with `before` and `after` lines.
let opened = null;

// Shows document `state.doc` of `corpus`. `move` puts the place of another hit into the address.
async function openDocument(corpus, state, move) {
  opened?.asking.abort();
  const mine = opened = { corpus, state, move, asking: new AbortController(), hits: [] };
  const id = state.doc, dialog = by("document");
  by("path").textContent = `Document ${id}`;
  by("facts").textContent = "";
  by("passage").replaceChildren();
  for (const hidden of ["walk", "earlier", "later"]) by(hidden).hidden = true;
  if (!dialog.open) dialog.showModal();
  by("passage").focus();
  try {
    const { columns, rows: [row] } = await ask(factsOfDocument(corpus, id), 1, mine.asking.signal);
    if (!row) throw new Error(`There is no document ${id} in ${corpus.name}.`);
    const value = (wanted) => row[columns.findIndex((column) => column.name === wanted)];
    by("path").textContent = value("path") ?? `Document ${id}`;
    const told = columns.map((column, at) => [column.name, row[at]]).filter(([name, value]) => name !== "path" && value !== null);
    by("facts").textContent = told.map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(" \u00b7 ");
    mine.size = Number(value("bytes"));
    if (corpus.isLog) {
      [mine.before, mine.after] = [LINES, LINES];
      await showLines(mine);
    } else {
      const isQuery = state.query && !["words", "sql"].includes(state.view);
      if (isQuery) mine.hits = (await ask(hitsOfDocument(corpus, state, id), MANY, mine.asking.signal)).rows;
      const at = state.at ?? mine.hits[0]?.[0] ?? 0;
      [mine.at, mine.first, mine.last] = [at, Math.max(at - PASSAGE_BYTES, 0), Math.min(at + PASSAGE_BYTES, mine.size)];
      await showPassage(mine);
    }
  } catch (error) {
    if (mine === opened && error.name !== "AbortError") by("passage").replaceChildren(element("p", error.message));
  }
}

async function showPassage(mine) {
  const { hits, first, last } = mine;
  const marked = hits.filter(([at, length]) => at >= first && at + length <= last).slice(0, MAX_MARKS);
  // Hits may overlap. Each begins a mark where the one before it has ended.
  const cuts = [first];
  const marks = new Map();
  for (const [at, length] of marked) {
    if (at < cuts.at(-1)) continue;
    if (at > cuts.at(-1)) cuts.push(at);
    marks.set(cuts.length - 1, at);
    cuts.push(at + length);
  }
  if (last > cuts.at(-1)) cuts.push(last);
  const { rows } = cuts.length > 1 ? await ask(passages(mine.corpus, mine.state.doc, cuts), MANY, mine.asking.signal) : { rows: [] };
  if (mine !== opened) return;
  const texts = rows.map(([text]) => text ?? "");
  // An offset may lie within a character: begin and end with a line, or without the halves of a character.
  if (first > 0 && texts.length && !marks.has(0)) texts[0] = texts[0].replace(/^\ufffd+/, "").replace(/^[^\n]{0,500}\n/, "");
  const end = texts.length - 1;
  if (last < mine.size && end >= 0 && !marks.has(end)) texts[end] = texts[end].replace(/\ufffd+$/, "").replace(/\n[^\n]{0,500}$/, "\n");
  let current = null;
  const made = texts.map((text, at) => {
    if (!marks.has(at)) return document.createTextNode(text);
    const mark = element("mark", text);
    if (marks.get(at) === mine.at) {
      mark.className = "current";
      current = mark;
    }
    return mark;
  });
  by("passage").replaceChildren(...made);
  by("earlier").hidden = first === 0;
  by("later").hidden = last >= mine.size;
  walk(mine);
  (current ?? by("passage").querySelector("mark"))?.scrollIntoView({ block: "center" });
}

// The buttons that go from hit to hit.
function walk(mine) {
  const { hits, at } = mine, now = hits.findIndex(([offset]) => offset === at);
  by("walk").hidden = hits.length === 0;
  by("hit-before").disabled = now <= 0;
  by("hit-after").disabled = now + 1 >= hits.length;
  by("hit").textContent = now < 0 ? plural(hits.length, "hits") : `hit ${grouped(now + 1)} of ${grouped(hits.length)}, line ${grouped(hits[now][2])}`;
  mine.goTo = (step) => hits[now + step] && mine.move(hits[now + step][0]);
}

async function showLines(mine) {
  const { corpus, state, before, after } = mine;
  const { rows } = await ask(linesAround(corpus, state, state.doc, before, after), MANY, mine.asking.signal);
  if (mine !== opened) return;
  let current = null;
  const lines = rows.map(([id, distance, text]) => {
    const line = element("p");
    line.append(element("small", id));
    addMarked(line, text ?? "");
    if (distance === 0) {
      line.className = "current";
      line.ariaCurrent = "true";
      current = line;
    }
    return line;
  });
  by("passage").replaceChildren(...lines);
  by("earlier").hidden = rows.filter(([, distance]) => distance < 0).length < before;
  by("later").hidden = rows.filter(([, distance]) => distance > 0).length < after;
  current?.scrollIntoView({ block: "center" });
}

// Shows more text on one side: bytes of a document, or lines of a log.
function extend(side) {
  const mine = opened, isEarlier = side === "earlier";
  if (!mine) return;
  if (mine.before === undefined) {
    if (isEarlier) mine.first = Math.max(mine.first - 2 * PASSAGE_BYTES, 0);
    else mine.last = Math.min(mine.last + 2 * PASSAGE_BYTES, mine.size);
  } else mine[isEarlier ? "before" : "after"] += 5 * LINES;
  const shown = mine.before === undefined ? showPassage(mine) : showLines(mine);
  shown.catch((error) => {
    if (mine === opened && error.name !== "AbortError") by("passage").append(element("p", error.message));
  });
}

function closeDocument() {
  opened?.asking.abort();
  opened = null;
  if (by("document").open) by("document").close();
}
