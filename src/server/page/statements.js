"use strict";
// The statements of the page, as SQL. A value of a form becomes a literal, and a name a quoted identifier.
const OPEN = "\u27e6", CLOSE = "\u27e7", ELLIPSIS = "\u2026", MAX_BARS = 60, MANY = 1000000;
const DERIVED = ["doc_id", "path", "bytes", "words", "text", "content"];
const literal = (text) => "'" + String(text).replaceAll("'", "''") + "'";
const name = (text) => '"' + String(text).replaceAll('"', '""') + '"';
const isNumber = (type) => /^(U?Int|Float|Decimal)/.test(type);
const isTime = (type) => /^(Timestamp|Date)/.test(type);
const isText = (type) => /^(Large)?Utf8/.test(type);
const hasHits = (state) => ["search", "kwic", "documents"].includes(state.view);
const canFilter = (state) => !["sql", "collocates"].includes(state.view);

// The columns of a corpus beside those of every corpus. Each is { name, type }.
const userColumns = (corpus) => corpus.columns.filter((column) => !DERIVED.includes(column.name));
const timeColumn = (corpus) => corpus.columns.find((column) => column.name === "ts" && isTime(column.type));

const OPERATORS = {
  "is": (left, value) => `${left} = ${value}`,
  "is not": (left, value) => `${left} <> ${value}`,
  "contains": (left, value) => `contains(${left}, ${value})`,
  "at least": (left, value) => `${left} >= ${value}`,
  "below": (left, value) => `${left} < ${value}`,
  "is empty": (left) => `${left} IS NULL`,
};

// The operators that a column of this type has.
function operators(type) {
  if (isNumber(type) || isTime(type)) return ["at least", "below", "is", "is empty"];
  return isText(type) ? ["is", "contains", "is not", "is empty"] : ["is", "is not", "is empty"];
}

function condition(corpus, [column, operator, value], prefix) {
  const type = corpus.columns.find((known) => known.name === column)?.type;
  const write = Object.hasOwn(OPERATORS, operator) && OPERATORS[operator];
  if (type === undefined || !write) throw new Error(`There is no filter "${column} ${operator}" in ${corpus.name}.`);
  const isNumeric = isNumber(type) && operator !== "is empty";
  if (isNumeric && !/^-?\d+(\.\d+)?$/.test(value.trim())) throw new Error(`${column}: expected a number, got "${value}"`);
  const left = prefix + name(column);
  if (isNumeric) return write(left, value.trim());
  return write(isText(type) || isTime(type) ? left : `CAST(${left} AS VARCHAR)`, literal(value));
}

// A moment of a form, which may have no seconds.
const stamp = (text) => literal(`${text}${text.length === 16 ? ":00" : ""}Z`);

// The conditions on documents, or "" without any.
function conditions(corpus, state, prefix = "") {
  const made = state.filters.map((filter) => condition(corpus, filter, prefix));
  const time = timeColumn(corpus);
  if (time && state.from) made.push(`${prefix}${name(time.name)} >= ${stamp(state.from)}`);
  if (time && state.to) made.push(`${prefix}${name(time.name)} < ${stamp(state.to)}`);
  return made.join(" AND ");
}

const where = (text) => text && `\nWHERE ${text}`;
const ofDocuments = (corpus, state, also = "") => {
  const wanted = conditions(corpus, state);
  const among = wanted && `doc_id IN (SELECT doc_id FROM ${name(corpus.name)} WHERE ${wanted})`;
  return where([also, among].filter(Boolean).join(" AND "));
};

// The page of rows, or "" for all rows.
const rowsOf = (state) => state.isWhole ? "" : `\nLIMIT ${state.rows}` + (state.page > 1 ? ` OFFSET ${(state.page - 1) * state.rows}` : "");

// The order that a view has, or that was asked for: [columns of SQL, "ASC" or "DESC"].
function order(corpus, state, sortable, usual) {
  const asked = Object.hasOwn(sortable, state.sort) && sortable[state.sort];
  const [keys, direction] = asked ? [asked, state.isDescending ? "DESC" : "ASC"] : usual;
  return keys.map((key) => `${key} ${direction}${direction === "DESC" ? " NULLS LAST" : ""}`).join(", ");
}

const call = (corpus, state, name, more = "") =>
  `${name}(${literal(corpus.name)}, ${literal(state.query)}${more}, fold => ${state.fold})`;

// Documents that a query finds. A page is chosen before the texts of its documents are read.
function search(corpus, state) {
  const table = name(corpus.name), users = userColumns(corpus).map((column) => `d.${name(column.name)}, `).join("");
  const ofUsers = Object.fromEntries(userColumns(corpus).map((column) => [column.name, [`d.${name(column.name)}`]]));
  if (!state.query) {
    const sortable = { ...ofUsers, doc_id: ["d.doc_id"], path: ["d.path"], bytes: ["d.bytes"] };
    return `SELECT d.doc_id, d.path, ${users}d.bytes, left(d.text, 300) AS snippet FROM ${table} AS d` +
      where(conditions(corpus, state, "d.")) +
      `\nORDER BY ${order(corpus, state, sortable, [["d.doc_id"], "ASC"])}${rowsOf(state)}`;
  }
  const isByScore = state.sort === "score" || (!corpus.isLog && !state.sort);
  const wanted = conditions(corpus, state, "d.");
  const top = wanted || state.isWhole ? MANY : state.page * state.rows;
  const hits = isByScore ? call(corpus, state, "rank", `, top => ${top}`) : call(corpus, state, "term_count");
  const measure = isByScore ? "score" : "count";
  const sortable = { ...ofUsers, score: ["t.score"], count: ["t.count"], doc_id: ["t.doc_id"], path: ["d.path"] };
  const usual = isByScore ? [["t.score"], "DESC"] : [["t.doc_id"], "ASC"];
  const by = order(corpus, state, sortable, usual) + (/doc_id/.test(state.sort) ? "" : ", t.doc_id");
  return `SELECT t.doc_id, t.${measure}, d.path, ${users}` +
    `snippet(d.text, ${literal(state.query)}, '${OPEN}', '${CLOSE}', '${ELLIPSIS}', ${corpus.isLog ? 64 : 2 * state.width}, ${state.fold}) AS snippet\n` +
    `FROM (\n  SELECT t.doc_id, t.${measure} FROM ${hits} AS t\n  JOIN ${table} AS d USING (doc_id)${where(wanted)}` +
    `\n  ORDER BY ${by}${rowsOf(state)}\n) AS t JOIN ${table} AS d USING (doc_id)\nORDER BY ${by}`;
}

const STATEMENTS = {
  search,
  kwic: (corpus, state) => {
    const sortable = { path: ["path", "doc_id", "byte_offset"], match: ["match"],
      left: [1, 2, 3].map((at) => `left_words[${at}]`), right: [1, 2, 3].map((at) => `right_words[${at}]`) };
    return `SELECT doc_id, path, "left", match, "right", byte_offset, byte_len\n` +
      `FROM ${call(corpus, state, "kwic", `, width => ${state.width}`)}${ofDocuments(corpus, state)}\n` +
      `ORDER BY ${order(corpus, state, sortable, [["doc_id", "byte_offset"], "ASC"])}${rowsOf(state)}`;
  },
  words: (corpus, state) => {
    const sortable = { word: ["word"], count: ["count"] };
    const like = state.query && `word LIKE ${literal(state.query)}`;
    const by = `\nORDER BY ${order(corpus, state, sortable, [["count"], "DESC"])}, word${rowsOf(state)}`;
    if (!conditions(corpus, state)) {
      return `SELECT word, count FROM word_count(${literal(corpus.name)}, fold => ${state.fold})${where(like)}${by}`;
    }
    return `SELECT word, sum(count) AS count FROM term_vector(${literal(corpus.name)}, fold => ${state.fold})` +
      `${ofDocuments(corpus, state, like)}\nGROUP BY word${by}`;
  },
  collocates: (corpus, state) => {
    const sortable = { word: ["word"], score: ["score"], count: ["count"], corpus_count: ["corpus_count"] };
    return `SELECT word, score, count, corpus_count\n` +
      `FROM ${call(corpus, state, "collocates", `, left => ${state.width}, right => ${state.width}`)}\n` +
      `ORDER BY ${order(corpus, state, sortable, [["score"], "DESC"])}, word${rowsOf(state)}`;
  },
  documents: (corpus, state) => {
    const sortable = { path: ["path"], count: ["count"], doc_id: ["doc_id"] };
    return `SELECT doc_id, path, count FROM ${call(corpus, state, "term_count")}${ofDocuments(corpus, state)}\n` +
      `ORDER BY ${order(corpus, state, sortable, [["count"], "DESC"])}, doc_id${rowsOf(state)}`;
  },
  sql: (corpus, state) => state.sql,
};

const statementOf = (corpus, state) => STATEMENTS[state.view](corpus, state);

// The numbers of hits and documents, or of rows. The first column is the number of rows of all pages.
function totals(corpus, state) {
  if (!hasHits(state)) {
    return `SELECT count(*) AS words FROM (\n${statementOf(corpus, { ...state, isWhole: true, sort: "" })}\n)`;
  }
  if (!state.query) return `SELECT count(*) AS documents FROM ${name(corpus.name)}${where(conditions(corpus, state))}`;
  const [documents, hits] = ["count(*) AS documents", "coalesce(sum(count), 0) AS hits"];
  return `SELECT ${state.view === "kwic" ? `${hits}, ${documents}` : `${documents}, ${hits}`}\n` +
    `FROM ${call(corpus, state, "term_count")}${ofDocuments(corpus, state)}`;
}

// What is true of a corpus as a whole: its documents, its first and last moment.
const facts = (corpus) => {
  const time = timeColumn(corpus), column = time && name(time.name);
  return `SELECT count(*) AS documents${time ? `, min(${column}) AS first, max(${column}) AS last` : ""} FROM ${name(corpus.name)}`;
};
// Paths among the first documents: the lines of a log share them.
const samplePaths = (corpus) =>
  `SELECT count(*) AS documents, count(DISTINCT path) AS paths FROM (SELECT path FROM ${name(corpus.name)} LIMIT 1000)`;

// Hits, or documents without a query, in steps of time.
function histogram(corpus, state, seconds) {
  const table = name(corpus.name), time = name(timeColumn(corpus).name);
  const step = `date_bin(INTERVAL '${seconds} seconds', d.${time})`;
  const from = state.query
    ? `sum(t.count) AS n\nFROM ${call(corpus, state, "term_count")} AS t JOIN ${table} AS d USING (doc_id)`
    : `count(*) AS n\nFROM ${table} AS d`;
  return `SELECT ${step} AS step, ${from}${where(conditions(corpus, state, "d."))}\nGROUP BY 1 ORDER BY 1`;
}

// The statements of one document.
const factsOfDocument = (corpus, id) => {
  const users = userColumns(corpus).map((column) => ", " + name(column.name)).join("");
  return `SELECT doc_id, path, bytes, words${users} FROM ${name(corpus.name)} WHERE doc_id = ${id}`;
};
const hitsOfDocument = (corpus, state, id) =>
  `SELECT byte_offset, byte_len, line FROM ${call(corpus, state, "search", `, doc_id => ${id}`)}\nORDER BY byte_offset`;
const linesAround = (corpus, state, id, before, after) => {
  const shown = state.query && state.view !== "words"
    ? `highlight(text, ${literal(state.query)}, '${OPEN}', '${CLOSE}', ${state.fold})` : "text";
  return `SELECT doc_id, distance, ${shown} AS text\n` +
    `FROM context(${literal(corpus.name)}, ${id}, before => ${before}, after => ${after})\nORDER BY distance`;
};
// Passages side by side. `cuts` are the offsets at which they begin, and the end of the last.
const passages = (corpus, id, cuts) => {
  const rows = cuts.slice(1).map((end, at) => `(${at}, ${cuts[at]}, ${end - cuts[at]})`).join(", ");
  return `SELECT extract_text(${literal(corpus.name)}, ${id}, at, length) AS text\n` +
    `FROM (VALUES ${rows}) AS v(number, at, length) ORDER BY number`;
};
