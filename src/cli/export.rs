//! `tadoc export`: writes the documents of a corpus as files of rows, and goes on where an earlier run stopped.
//!
//! ```text
//! documents   0 .. 99,999      100,000 .. 199,999        200,000 ..
//!             ▼                ▼                         ▼
//! PLACE/      part-00000.jsonl part-00001.jsonl          part-00002.jsonl   visible when it is complete
//! PLACE/      export.json      what is exported
//! ```
//!
//! Each file has the documents of a range of ids that meet the condition, in order, so the same export always makes
//! the same files. A file has its name once all of it is there. The next run finds in `export.json` that it is
//! asked for the same rows of the same corpus, keeps the files with a name, and writes the others. A living corpus is
//! exported at the version that the first run saw. [`Place`] is a folder, or a prefix of an object store.
//!
//! A condition is looked at for each file. Files and tables that it reads are not compared between runs.

mod place;

use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::TryStreamExt;
use serde_json::{Map, Value, json};
use tadoc_documents::display::{parse_size, plural, seconds};
use tadoc_session::{Failure, Outcome, Session, interrupt, note, runtime};

use self::place::{MANIFEST, Place};

/// Name of the table of the corpus, for conditions and columns.
const TABLE: &str = "corpus";
/// Columns that are exported where no others are named: all but those that follow from the text.
const USUAL_COLUMNS: &str = "* EXCEPT (bytes, words, content)";

/// Write the documents of a corpus as files of JSON lines or Parquet
///
/// The files lie in a folder or in an object store, each with the documents of a range of ids. An export that was
/// interrupted, also by kill -9, goes on when it is called again with the same arguments: files that are complete stay.
#[derive(Args)]
#[command(disable_version_flag = true, after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The corpus: a file, a living corpus, or a folder or glob of files; a path or URL
    #[arg(value_name = "CORPUS")]
    corpus: String,

    /// The folder of the files, which is created if it does not exist, or a URL such as s3://bucket/train
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,

    /// Export only documents that meet this condition of SQL, such as "words > 50 AND lang = 'en'"; the table is
    /// `corpus`
    #[arg(short, long, value_name = "CONDITION")]
    r#where: Option<String>,

    /// Columns, as SQL has them behind SELECT (default: all but bytes, words and content)
    #[arg(long, value_name = "LIST")]
    columns: Option<String>,

    /// Form of the files
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,

    /// Number of ids of a file, whether or not their documents meet the condition
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    docs_per_file: u64,

    /// Maximum memory, such as 4GiB (default: no limit)
    #[arg(short, long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    /// For a living corpus: export this version (default: the latest one when the export begins)
    #[arg(long, value_name = "N")]
    version: Option<u64>,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  tadoc export notes.tadoc -o notes/
  tadoc export web.tadoc -o train/ --format jsonl.zst --where \"language(text)['code'] = 'eng'\"
  tadoc export web.tadoc -o train/ --columns \"path, text, text_quality(text)['words'] AS words\"
  tadoc export web.tadoc -o train/ --where \"doc_id IN (SELECT doc_id FROM 'kept.parquet')\"
  tadoc export s3://bucket/web.tadoc -o s3://bucket/train --format parquet

The exit status is 130 after Ctrl-C. Call the command again to go on.";

/// A form of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    #[value(name = "jsonl")]
    Jsonl,
    #[value(name = "jsonl.gz")]
    JsonlGz,
    #[value(name = "jsonl.zst")]
    JsonlZst,
    #[value(name = "parquet")]
    Parquet,
}

impl Format {
    fn ending(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::JsonlGz => "jsonl.gz",
            Self::JsonlZst => "jsonl.zst",
            Self::Parquet => "parquet",
        }
    }

    /// Returns the end of a `COPY` of this form.
    fn clause(self) -> &'static str {
        match self {
            Self::Jsonl => "STORED AS JSON",
            Self::JsonlGz => "STORED AS JSON OPTIONS ('format.compression' 'gzip')",
            Self::JsonlZst => "STORED AS JSON OPTIONS ('format.compression' 'zstd')",
            Self::Parquet => "STORED AS PARQUET OPTIONS ('format.compression' 'zstd(3)')",
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The corpus cannot be read, the folder has another export, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Outcome {
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let interrupted = interrupt::watch();
        tokio::select! {
            outcome = export(arguments) => outcome,
            () = interrupted.notified() => Err(Failure::interrupted()),
        }
    });
    // Dropping the runtime would wait for a statement that never ends.
    runtime.shutdown_timeout(interrupt::GRACE);
    outcome
}

async fn export(arguments: &Arguments) -> Outcome {
    let start = Instant::now();
    let mut place = Place::open(&arguments.output).await?;
    let known = place.manifest().await?.map(|text| Manifest::parse(&text, place.shown())).transpose()?;
    let version = arguments.version.or_else(|| known.as_ref().and_then(Manifest::version));
    let session = Session::for_program(arguments.memory_limit, &[]).await?;
    check_sql(&session, arguments)?;
    make_table(&session, &arguments.corpus, version).await?;
    // A name that is wrong is told before the place has a manifest.
    session.plan(session.parse_one(&query(arguments, 0..0))?).await?;
    let manifest = Manifest::new(arguments, facts(&session).await?);
    match known {
        Some(known) => known.check_same(&manifest, place.shown())?,
        None => place.write_manifest(&manifest.text()).await?,
    }
    let complete = place.complete_files().await?;
    let num_files = num_ids(&session).await?.div_ceil(arguments.docs_per_file);
    let mut num_kept = 0;
    let mut num_rows = 0;
    for number in 0..num_files {
        let name = format!("part-{number:05}.{}", arguments.format.ending());
        if complete.contains(&name) {
            num_kept += 1;
            continue;
        }
        num_rows += write_file(&session, arguments, number, &place.begin(&name)).await?;
        // A statement without rows writes no file of JSON lines.
        place.complete(&name, arguments.format == Format::Jsonl).await?;
        if !arguments.quiet {
            note(format_args!("{} of {num_files} files: {}", number + 1, place.shown_file(&name)));
        }
    }
    if !arguments.quiet {
        let kept =
            if num_kept > 0 { format!("; {} of an earlier run", plural(num_kept, "file")) } else { String::new() };
        note(format_args!(
            "{}: {} in {} in {}{kept}",
            place.shown(),
            plural(num_rows, "document"),
            plural(num_files - num_kept, "file"),
            seconds(start.elapsed())
        ));
    }
    Ok(())
}

/// Checks that condition and columns end where their statement goes on.
fn check_sql(session: &Session, arguments: &Arguments) -> Outcome {
    let dialect = session.dialect()?;
    let check = |name: &str, text: &Option<String>, parse: &dyn Fn(&mut Parser<'_>) -> Result<(), ParserError>| {
        let Some(text) = text else { return Ok(()) };
        let parsed = Parser::new(dialect.as_ref()).try_with_sql(text).and_then(|mut parser| {
            parse(&mut parser)?;
            parser.expect_token(&Token::EOF)
        });
        parsed.map(|_end| ()).map_err(|error| Failure::usage(format!("{name}: {error}")))
    };
    check("--where", &arguments.r#where, &|parser| parser.parse_expr().map(|_condition| ()))?;
    check("--columns", &arguments.columns, &|parser| {
        parser.parse_comma_separated(|parser| parser.parse_select_item()).map(|_columns| ())
    })
}

/// Makes the table of the corpus.
async fn make_table(session: &Session, corpus: &str, version: Option<u64>) -> Outcome {
    let location = corpus.replace('\'', "''");
    let options = version.map_or_else(String::new, |version| format!(" OPTIONS ('version' '{version}')"));
    let create = format!("CREATE EXTERNAL TABLE {TABLE} STORED AS TADOC LOCATION '{location}'{options}");
    rows(session, &create).await.map_err(|failure| failure.about(corpus))?;
    Ok(())
}

/// Returns the facts by which two runs know the same corpus.
async fn facts(session: &Session) -> Outcome<Map<String, Value>> {
    let mut facts = Map::new();
    for batch in rows(session, &format!("SELECT name, value FROM corpus_info('{TABLE}')")).await? {
        let names = batch.column(0).as_string_view();
        let values = batch.column(1).as_string_view();
        for (name, value) in names.iter().zip(values).filter_map(|(name, value)| name.zip(value)) {
            facts.insert(name.to_owned(), value.into());
        }
    }
    Ok(facts)
}

/// Returns the number behind the largest id.
async fn num_ids(session: &Session) -> Outcome<u64> {
    let found = rows(session, &format!("SELECT coalesce(max(doc_id) + 1, 0) FROM {TABLE}")).await?;
    let ids = found.iter().filter_map(|batch| batch.column(0).as_primitive_opt::<Int64Type>());
    Ok(ids.flat_map(|ids| ids.values().to_vec()).max().and_then(|max| u64::try_from(max).ok()).unwrap_or(0))
}

/// Returns the query for the documents with these ids.
fn query(arguments: &Arguments, ids: Range<u64>) -> String {
    let columns = arguments.columns.as_deref().unwrap_or(USUAL_COLUMNS);
    // A comment at the end of a condition ends with its line.
    let condition = arguments.r#where.as_ref().map_or_else(String::new, |condition| format!("\nAND ({condition}\n)"));
    let Range { start, end } = ids;
    format!("SELECT {columns}\nFROM {TABLE} WHERE doc_id >= {start} AND doc_id < {end}{condition}\nORDER BY doc_id")
}

/// Writes the documents of a file to `location`, and returns their number.
async fn write_file(session: &Session, arguments: &Arguments, number: u64, location: &str) -> Outcome<u64> {
    let first = number * arguments.docs_per_file;
    let behind = first.saturating_add(arguments.docs_per_file);
    let target = location.replace('\'', "''");
    let rows_of_file = query(arguments, first..behind);
    let statement = format!("COPY ({rows_of_file}) TO '{target}' {}", arguments.format.clause());
    let written = rows(session, &statement).await?;
    let counts = written.iter().filter_map(|batch| batch.column(0).as_primitive_opt::<UInt64Type>());
    Ok(counts.flat_map(|counts| counts.values().to_vec()).sum())
}

/// Runs a statement and returns its rows.
async fn rows(session: &Session, statement: &str) -> Outcome<Vec<RecordBatch>> {
    let plan = session.plan(session.parse_one(statement)?).await?;
    match plan {
        Some(plan) => Ok(session.start(plan).await?.take(|rows| rows.try_collect()).await?),
        None => Ok(Vec::new()),
    }
}

/// The facts and arguments of an export.
#[derive(Debug, PartialEq)]
struct Manifest(Map<String, Value>);

impl Manifest {
    fn new(arguments: &Arguments, facts: Map<String, Value>) -> Self {
        let mut fields = Map::new();
        for (name, value) in [
            ("corpus", json!(arguments.corpus)),
            ("where", json!(arguments.r#where)),
            ("columns", json!(arguments.columns)),
            ("format", json!(arguments.format.ending())),
            ("docs_per_file", json!(arguments.docs_per_file)),
            ("facts", Value::Object(facts)),
        ] {
            fields.insert(name.to_owned(), value);
        }
        Self(fields)
    }

    /// Returns the manifest with this text, of the export at `place`.
    fn parse(text: &str, place: &str) -> Outcome<Self> {
        let fields = serde_json::from_str(text);
        fields.map(Self).map_err(|error| Failure::with_cause(format!("{place}: {MANIFEST}"), &error))
    }

    fn text(&self) -> String {
        format!("{:#}\n", Value::Object(self.0.clone()))
    }

    /// Returns the version of the living corpus that is exported.
    fn version(&self) -> Option<u64> {
        self.0.get("facts")?.get("version")?.as_str()?.parse().ok()
    }

    /// Checks that an export of `asked` goes on with the files at `place`, which are those of this one.
    fn check_same(&self, asked: &Self, place: &str) -> Outcome {
        let differing = asked.0.iter().find(|(name, value)| self.0.get(*name) != Some(value));
        let Some((name, value)) = differing else { return Ok(()) };
        let difference = if name == "facts" {
            "the corpus has changed since".to_owned()
        } else {
            let before = self.0.get(name).unwrap_or(&Value::Null);
            format!("its {name} is {before}, and now {value}")
        };
        Err(Failure::new(format!(
            "{place}: has the files of another export: {difference}; choose another folder, or remove this one"
        )))
    }
}
