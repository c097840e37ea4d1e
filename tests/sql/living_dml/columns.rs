//! Tests of `UPDATE` on user columns: against a plain model of the documents, in races, and with
//! refused statements.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::AsArray;
use datafusion::prelude::SessionContext;
use datafusion_tadoc::user_columns::merge_columns;
use tadoc::Error;
use tadoc_store::{CommitKind, OptimizeOptions, encode_manifest};
use testkit::random::Random;

use super::{MANY, Notes, count_of};
use crate::fixtures;

/// SQL expression for all columns of a document as one text.
const ROWS: &str = "doc_id || '|' || path || '|' || text || '|' || coalesce(author, 'NULL') || '|' || \
                    coalesce(CAST(number AS VARCHAR), 'NULL')";

async fn rows(context: &SessionContext, table: &str, predicate: &str) -> Vec<String> {
    let sql = format!("SELECT {ROWS} FROM {table} WHERE {predicate} ORDER BY doc_id");
    let batches = context.sql(&sql).await.unwrap().collect().await.unwrap();
    let texts = batches.iter().flat_map(|batch| batch.column(0).as_string_view().iter().flatten());
    texts.map(str::to_owned).collect()
}

async fn optimize(notes: &Notes) -> bool {
    let merge_columns = Some(Arc::new(merge_columns) as _);
    let options = OptimizeOptions { merge_columns, ..OptimizeOptions::default() };
    match notes.store().await.optimize(&options).await {
        Ok(optimized) => optimized.is_some(),
        Err(Error::Conflict { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn columns_are_set_alone_together_and_with_the_text() {
    for (set, expected) in [
        ("author = 'Ada'", "5|p5|text number 5|Ada|5"),
        ("number = number + 1", "5|p5|text number 5|NULL|6"),
        ("number = NULL", "5|p5|text number 5|NULL|NULL"),
        ("number = '70', author = path", "5|p5|text number 5|p5|70"),
        ("number = 3, text = 'x'", "5|p5|x|NULL|3"),
        ("author = text, text = path || number, number = length(text)", "5|p5|p55|text number 5|13"),
        ("author = (SELECT max(path) FROM d)", "5|p5|text number 5|p99|5"),
        ("author = author, number = 9", "5|p5|text number 5|NULL|9"),
        ("number = 1, author = '1'", "5|p5|text number 5|1|1"),
    ] {
        let notes = Notes::new().await;
        notes.run(CommitKind::Insert, MANY).await;
        let update = format!("UPDATE d SET {set} WHERE number = 5");
        let mut all = rows(&notes.context, "d", "true").await;
        assert_eq!(notes.run(CommitKind::Update, &update).await, 1, "{set}");
        all[5] = expected.to_owned();
        assert_eq!(rows(&notes.context, "d", "true").await, all, "{set}");
        assert!(notes.latest().await.sets_columns);
    }
}

#[tokio::test]
async fn what_a_column_does_not_hold_changes_nothing() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, MANY).await;
    for (set, refusal) in [
        ("number = path", "Cannot cast string 'p"),
        ("number = 3000000000", "3000000000"),
        ("doc_id = 1", "and its own columns: author, number"),
        ("words = 1, author = 'x'", "column words cannot be set"),
        ("author = 'x', nothing = 1", "nothing"),
    ] {
        let error = notes.refused(&format!("UPDATE d SET {set}")).await.to_string();
        assert!(error.contains(refusal), "{set}: {error}");
    }
    // The error for a corpus without columns says so.
    let plain = Notes { context: fixtures::session(), folder: notes.folder };
    let place = plain.folder.path().join("plain").display().to_string();
    let create = format!("CREATE EXTERNAL TABLE plain STORED AS TADOC LOCATION '{place}' OPTIONS ('create' 'true')");
    plain.context.sql(&create).await.unwrap().collect().await.unwrap();
    let error = plain.try_run("UPDATE plain SET bytes = 1").await.unwrap_err().to_string();
    assert!(error.contains("it has no columns of its own"), "{error}");
    let error = plain.try_run("UPDATE plain SET severity = 'high'").await.unwrap_err().to_string();
    assert!(error.contains("severity") && error.contains("content"), "{error}");
}

#[tokio::test]
async fn other_sessions_find_columns_that_only_edits_have() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, "INSERT INTO d (path, text) VALUES ('a', 'x'), ('b', 'y')").await;
    let features = |version| encode_manifest(&version, None).unwrap()[16];
    assert_eq!(features(notes.latest().await), 0);
    notes.run(CommitKind::Update, "UPDATE d SET number = 7 WHERE path = 'b'").await;
    notes.run(CommitKind::Insert, "INSERT INTO d (path, text) VALUES ('c', 'z')").await;
    // A build that does not know the feature refuses to read the version, and so to commit.
    assert_eq!(features(notes.latest().await), 1);
    for is_optimized in [false, true] {
        let context = fixtures::session();
        let place = notes.place();
        let create = format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{place}'");
        context.sql(&create).await.unwrap().collect().await.unwrap();
        let found = context.sql("SELECT * FROM d WHERE number = 7").await.unwrap();
        assert_eq!(found.schema().fields().last().unwrap().name(), "number");
        assert_eq!(found.count().await.unwrap(), 1);
        let declared = create.replace(" d ", " other (number VARCHAR) ");
        let error = context.sql(&declared).await.unwrap_err().to_string();
        assert!(error.contains("the corpus has Int32"), "{error}");
        assert_eq!(notes.latest().await.sets_columns, !is_optimized);
        assert_eq!(optimize(&notes).await, !is_optimized);
    }
}

/// A document of the model.
#[derive(Debug, Clone)]
struct Row {
    path: String,
    text: String,
    author: Option<String>,
    number: Option<i64>,
}

impl Row {
    fn new(name: usize) -> Self {
        Self { path: format!("p{name}"), text: format!("text {name}"), author: None, number: None }
    }
}

/// A condition or an assignment, in SQL and in the model.
type Predicate = (&'static str, fn(usize, &Row) -> bool);
type Assignment = (&'static str, fn(&mut Row, &Row));

const PREDICATES: [Predicate; 8] = [
    ("true", |_, _| true),
    ("doc_id % 3 = 1", |id, _| id % 3 == 1),
    ("doc_id IN (0, 2, 5, 11)", |id, _| [0, 2, 5, 11].contains(&id)),
    ("number >= 5", |_, row| row.number.is_some_and(|number| number >= 5)),
    ("number IS NULL", |_, row| row.number.is_none()),
    ("author = 'Ada'", |_, row| row.author.as_deref() == Some("Ada")),
    ("path LIKE 'p1%'", |_, row| row.path.starts_with("p1")),
    ("text LIKE '%x%' AND author IS NOT NULL", |_, row| row.text.contains('x') && row.author.is_some()),
];

const TEXTS: [Assignment; 2] = [
    ("text = text || ' x'", |row, was| row.text = format!("{} x", was.text)),
    ("text = coalesce(author, 'none')", |row, was| {
        row.text = was.author.clone().unwrap_or_else(|| "none".into());
    }),
];

const AUTHORS: [Assignment; 3] = [
    ("author = 'Ada'", |row, _| row.author = Some("Ada".into())),
    ("author = NULL", |row, _| row.author = None),
    ("author = path", |row, was| row.author = Some(was.path.clone())),
];

const NUMBERS: [Assignment; 3] = [
    ("number = coalesce(number, 0) + 1", |row, was| row.number = Some(was.number.unwrap_or(0) + 1)),
    ("number = NULL", |row, _| row.number = None),
    ("number = length(text)", |row, was| row.number = Some(was.text.len() as i64)),
];

/// A living corpus and its expected rows.
struct Modelled {
    notes: Notes,
    rows: Vec<Option<Row>>,
    /// The rows of every version.
    past: BTreeMap<u64, Vec<String>>,
}

impl Modelled {
    fn shown(&self, holds: fn(usize, &Row) -> bool) -> Vec<String> {
        let rows = self.rows.iter().enumerate().filter_map(|(id, row)| Some((id, row.as_ref()?)));
        let rows = rows.filter(|(id, row)| holds(*id, row)).map(|(id, row)| {
            let number = row.number.map_or("NULL".into(), |number| number.to_string());
            let author = row.author.as_deref().unwrap_or("NULL");
            format!("{id}|{}|{}|{author}|{number}", row.path, row.text)
        });
        rows.collect()
    }

    async fn insert(&mut self, random: &mut Random) {
        let num_rows = 1 + random.below(4);
        let has_columns = random.one_in(2);
        let mut sql = "INSERT INTO d (path, text, author, number) VALUES ".to_owned();
        if !has_columns {
            sql = sql.replace(", author, number", "");
        }
        for i in 0..num_rows {
            let mut row = Row::new(self.rows.len());
            let comma = if i == 0 { "" } else { ", " };
            write!(sql, "{comma}('{}', '{}'", row.path, row.text).unwrap();
            if has_columns {
                (row.author, row.number) = (Some("Bob".into()), Some(random.below(9) as i64));
                write!(sql, ", 'Bob', {}", row.number.unwrap()).unwrap();
            }
            sql.push(')');
            self.rows.push(Some(row));
        }
        assert_eq!(self.notes.try_run(&sql).await.unwrap(), num_rows as u64);
    }

    async fn update(&mut self, random: &mut Random) {
        let (condition, holds) = *random.pick(&PREDICATES);
        let kinds: [&[Assignment]; 3] = [&TEXTS, &AUTHORS, &NUMBERS];
        let mut set: Vec<Assignment> = Vec::new();
        while set.is_empty() {
            let kinds = kinds.iter().filter(|_| random.one_in(2)).collect::<Vec<_>>();
            set.extend(kinds.into_iter().map(|kind| *random.pick(kind)));
        }
        let assignments: Vec<&str> = set.iter().map(|(sql, _)| *sql).collect();
        let sql = format!("UPDATE d SET {} WHERE {condition}", assignments.join(", "));
        let mut num_rows = 0;
        for (id, row) in self.rows.iter_mut().enumerate() {
            if let Some(row) = row.as_mut().filter(|row| holds(id, row)) {
                let was = row.clone();
                set.iter().for_each(|(_, assign)| assign(row, &was));
                num_rows += 1;
            }
        }
        assert_eq!(self.notes.try_run(&sql).await.unwrap(), num_rows, "{sql}");
    }

    async fn delete(&mut self, random: &mut Random) {
        let id = random.below(self.rows.len());
        let sql = format!("DELETE FROM d WHERE doc_id = {id}");
        let num_rows = u64::from(self.rows[id].take().is_some());
        assert_eq!(self.notes.try_run(&sql).await.unwrap(), num_rows);
    }

    async fn edit(&mut self, random: &mut Random) {
        let id = random.below(self.rows.len());
        if let Some(row) = &mut self.rows[id] {
            row.text.push('!');
            let sql = format!("INSERT INTO \"d$edits\" (doc_id, text) VALUES ({id}, '!')");
            assert_eq!(self.notes.try_run(&sql).await.unwrap(), 1);
        }
    }

    /// Makes one change and reads everything back.
    async fn step(&mut self, random: &mut Random) {
        let before = self.notes.latest().await.number;
        match random.below(12) {
            0..2 => self.insert(random).await,
            2..8 => self.update(random).await,
            8 => self.delete(random).await,
            9 => self.edit(random).await,
            10 => drop(optimize(&self.notes).await),
            _ => {
                self.notes.context = fixtures::session();
                self.notes.attach(&self.notes.context).await;
            }
        }
        let all = self.shown(|_, _| true);
        let versions: Range<u64> = before + 1..self.notes.latest().await.number + 1;
        self.past.extend(versions.map(|version| (version, all.clone())));
        for (condition, holds) in [PREDICATES[0], *random.pick(&PREDICATES)] {
            let found = rows(&self.notes.context, "d", condition).await;
            assert_eq!(found, self.shown(holds), "{condition}");
        }
    }

    /// Reads every version and compares it with its rows at that time.
    async fn travel(&self) {
        let context = fixtures::session();
        let place = self.notes.place();
        for (version, expected) in &self.past {
            let create = format!(
                "CREATE EXTERNAL TABLE v{version} (author VARCHAR, number INT) STORED AS TADOC \
                 LOCATION '{place}' OPTIONS ('version' '{version}')"
            );
            context.sql(&create).await.unwrap().collect().await.unwrap();
            let found = rows(&context, &format!("v{version}"), "true").await;
            assert_eq!(&found, expected, "version {version}");
        }
    }
}

#[tokio::test]
async fn random_statements_do_what_the_model_does() {
    for seed in 0..8 {
        println!("seed {seed}");
        let notes = Notes::new().await;
        let mut modelled = Modelled { notes, rows: Vec::new(), past: BTreeMap::new() };
        let mut random = Random(seed);
        modelled.insert(&mut random).await;
        for _ in 0..24 {
            modelled.step(&mut random).await;
        }
        modelled.travel().await;
    }
}

/// Sessions set different columns of one document, while others append, drop, edit and optimize.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_set_columns_of_one_document_lose_nothing() {
    const ROUNDS: usize = 6;
    let notes = Arc::new(Notes::new().await);
    notes.run(CommitKind::Insert, MANY).await;
    notes.run(CommitKind::Update, "UPDATE d SET number = 0, author = '' WHERE doc_id = 119").await;
    let is_done = Arc::new(AtomicBool::new(false));
    let statements: [&str; 4] = [
        "UPDATE d SET number = number + 1 WHERE doc_id = 119",
        "UPDATE d SET author = author || 'x', text = text || 'x' WHERE path = 'p119'",
        "INSERT INTO \"d$edits\" (doc_id, text) VALUES (119, 'y')",
        "DELETE FROM d WHERE doc_id = (SELECT min(e.doc_id) FROM d AS e)",
    ];
    let optimizing = tokio::spawn({
        let notes = Arc::clone(&notes);
        let is_done = Arc::clone(&is_done);
        async move {
            let mut num_optimized = 0;
            while !is_done.load(Ordering::Acquire) {
                num_optimized += usize::from(optimize(&notes).await);
                tokio::task::yield_now().await;
            }
            num_optimized
        }
    });
    let mut sessions = Vec::new();
    for statement in statements {
        let context = fixtures::session();
        notes.attach(&context).await;
        sessions.push(tokio::spawn(async move {
            for _ in 0..ROUNDS {
                let rows = context.sql(statement).await.unwrap().collect().await;
                let rows = rows.unwrap_or_else(|error| panic!("{statement}: {error}"));
                assert_eq!(count_of(&rows), 1, "{statement}");
            }
        }));
    }
    for session in sessions {
        session.await.unwrap();
    }
    is_done.store(true, Ordering::Release);
    assert!(optimizing.await.unwrap() > 0);
    let found = rows(&notes.context, "d", "true").await;
    assert_eq!(found.len(), 120 - ROUNDS);
    assert_eq!(found[0], format!("{ROUNDS}|p{ROUNDS}|text number {ROUNDS}|NULL|{ROUNDS}"));
    let mut letters: Vec<char> = notes.documents().await[119].as_ref().unwrap().1.chars().collect();
    letters.drain(.."text number 119".len());
    letters.sort_unstable();
    let letters: String = letters.into_iter().collect();
    assert_eq!(letters, format!("{}{}", "x".repeat(ROUNDS), "y".repeat(ROUNDS)));
    let last = found.last().unwrap();
    assert!(last.ends_with(&format!("|{}|{ROUNDS}", "x".repeat(ROUNDS))), "{last}");
}
