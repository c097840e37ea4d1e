//! `tadoc export`: writes the documents of a corpus as files of rows, and goes on where an earlier run stopped.
//!
//! ```text
//! documents   0 .. 99,999      100,000 .. 199,999        200,000 ..
//!             ▼                ▼                         ▼
//! FOLDER/     part-00000.jsonl part-00001.jsonl          .writing-00002.jsonl   ─renamed when it is complete─▶
//! FOLDER/     export.json      what is exported; locked as long as an export runs
//! ```
//!
//! Each file has the documents of a range of ids that meet the condition, in order, so the same export always makes
//! the same files. A file has its name once all of it is on the disk. The next run finds in `export.json` that it is
//! asked for the same rows of the same corpus, keeps the files with a name, and writes the others. A living corpus is
//! exported at the version that the first run saw.
//!
//! A condition is looked at for each file. Files and tables that it reads are not compared between runs.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::TryStreamExt;
use serde_json::{Map, Value, json};
use tadoc_documents::display::{parse_size, plain, plural, seconds};
use tadoc_session::{Failure, Outcome, Session, interrupt, note, runtime};

/// Name of the file that says what is exported.
const MANIFEST: &str = "export.json";
/// Begin of the names of files that are being written.
const WRITING: &str = ".writing-";
/// Name of the table of the corpus, for conditions and columns.
const TABLE: &str = "corpus";
/// Columns that are exported where no others are named: all but those that follow from the text.
const USUAL_COLUMNS: &str = "* EXCEPT (bytes, words, content)";

/// Write the documents of a corpus as files of JSON lines or Parquet
///
/// The files lie in a folder, each with the documents of a range of ids. An export that was interrupted,
/// also by kill -9, goes on when it is called again with the same arguments: files that are complete stay.
#[derive(Args)]
#[command(disable_version_flag = true, after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The corpus: a file, a living corpus, or a folder or glob of files; a path or URL
    #[arg(value_name = "CORPUS")]
    corpus: String,

    /// The folder of the files; it is created if it does not exist
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,

    /// Export only documents that meet this condition of SQL, such as "words > 50 AND lang = 'en'"; the table is `corpus`
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
    let mut folder = Folder::open(&arguments.output)?;
    let known = folder.manifest()?;
    let version = arguments.version.or_else(|| known.as_ref().and_then(Manifest::version));
    let session = Session::for_program(arguments.memory_limit, &[]).await?;
    check_sql(&session, arguments)?;
    make_table(&session, &arguments.corpus, version).await?;
    let manifest = Manifest::new(arguments, facts(&session).await?);
    match known {
        Some(known) => known.check_same(&manifest, &folder.path)?,
        None => folder.write_manifest(&manifest)?,
    }
    folder.remove_unfinished()?;
    let num_ids = num_ids(&session).await?;
    let num_files = num_ids.div_ceil(arguments.docs_per_file);
    let mut num_kept = 0;
    let mut num_rows = 0;
    for number in 0..num_files {
        let name = format!("{number:05}.{}", arguments.format.ending());
        let target = folder.path.join(format!("part-{name}"));
        if target.exists() {
            num_kept += 1;
            continue;
        }
        let writing = folder.path.join(format!("{WRITING}{name}"));
        num_rows += write_file(&session, arguments, number, &writing).await?;
        folder.complete(&writing, &target)?;
        if !arguments.quiet {
            note(format_args!("{} of {num_files} files: {}", number + 1, plain(&target.to_string_lossy())));
        }
    }
    if !arguments.quiet {
        let kept =
            if num_kept > 0 { format!("; {} of an earlier run", plural(num_kept, "file")) } else { String::new() };
        note(format_args!(
            "{}: {} in {} in {}{kept}",
            plain(&arguments.output.to_string_lossy()),
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

/// Writes the documents of a file to `path`, and returns their number.
async fn write_file(session: &Session, arguments: &Arguments, number: u64, path: &Path) -> Outcome<u64> {
    let first = number * arguments.docs_per_file;
    let behind = first.saturating_add(arguments.docs_per_file);
    let columns = arguments.columns.as_deref().unwrap_or(USUAL_COLUMNS);
    // A comment at the end of a condition ends with its line.
    let condition = arguments.r#where.as_ref().map_or_else(String::new, |condition| format!("\nAND ({condition}\n)"));
    let target = path.to_string_lossy().replace('\'', "''");
    let statement = format!(
        "COPY (SELECT {columns}\nFROM {TABLE} WHERE doc_id >= {first} AND doc_id < {behind}{condition}\n\
         ORDER BY doc_id) TO '{target}' {}",
        arguments.format.clause()
    );
    let written = rows(session, &statement).await?;
    // A statement without rows may write no file.
    if !path.exists() && arguments.format != Format::Parquet {
        File::create(path).map_err(|error| at(path, &error))?;
    }
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

    /// Returns the version of the living corpus that is exported.
    fn version(&self) -> Option<u64> {
        self.0.get("facts")?.get("version")?.as_str()?.parse().ok()
    }

    /// Checks that an export of `asked` goes on with the files in `folder`, which are those of this one.
    fn check_same(&self, asked: &Self, folder: &Path) -> Outcome {
        let differing = asked.0.iter().find(|(name, value)| self.0.get(*name) != Some(value));
        let Some((name, value)) = differing else { return Ok(()) };
        let folder = plain(&folder.to_string_lossy()).into_owned();
        let difference = if name == "facts" {
            "the corpus has changed since".to_owned()
        } else {
            let before = self.0.get(name).unwrap_or(&Value::Null);
            format!("its {name} is {before}, and now {value}")
        };
        Err(Failure::new(format!(
            "{folder}: has the files of another export: {difference}; choose another folder, or remove this one"
        )))
    }
}

/// The folder of an export, which no other export writes to.
struct Folder {
    path: PathBuf,
    /// The manifest, locked.
    file: File,
}

impl Folder {
    /// Opens the folder, and creates it where it is missing.
    ///
    /// # Errors
    /// Another export runs in it, or it has files and no manifest.
    fn open(path: &Path) -> Outcome<Self> {
        fs::create_dir_all(path).map_err(|error| at(path, &error))?;
        let manifest = path.join(MANIFEST);
        if !manifest.exists() && fs::read_dir(path).map_err(|error| at(path, &error))?.next().is_some() {
            let folder = plain(&path.to_string_lossy()).into_owned();
            return Err(Failure::new(format!(
                "{folder}: has files of something else; choose a folder that is empty or new"
            )));
        }
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(&manifest);
        let file = opened.map_err(|error| at(&manifest, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), file }),
            Err(TryLockError::WouldBlock) => {
                let folder = plain(&path.to_string_lossy()).into_owned();
                Err(Failure::new(format!("{folder}: another export writes to it; wait until it is done")))
            }
            Err(TryLockError::Error(error)) => Err(at(&manifest, &error)),
        }
    }

    /// Returns what is exported here; `None` if nothing is yet.
    fn manifest(&mut self) -> Outcome<Option<Manifest>> {
        let path = self.path.join(MANIFEST);
        let mut text = String::new();
        self.file.read_to_string(&mut text).map_err(|error| at(&path, &error))?;
        // A run that was killed before its first file may have written a part.
        if !text.ends_with('\n') {
            return Ok(None);
        }
        let fields =
            serde_json::from_str(&text).map_err(|error| Failure::with_cause(plain(&path.to_string_lossy()), &error))?;
        Ok(Some(Manifest(fields)))
    }

    fn write_manifest(&mut self, manifest: &Manifest) -> Outcome {
        let text = format!("{:#}\n", Value::Object(manifest.0.clone()));
        let written = self.file.rewind().and_then(|()| self.file.set_len(0));
        let written = written.and_then(|()| self.file.write_all(text.as_bytes())).and_then(|()| self.file.sync_all());
        written.map_err(|error| at(&self.path.join(MANIFEST), &error))
    }

    /// Removes what a killed run was writing.
    fn remove_unfinished(&self) -> Outcome {
        for entry in fs::read_dir(&self.path).map_err(|error| at(&self.path, &error))? {
            let path = entry.map_err(|error| at(&self.path, &error))?.path();
            let name = path.file_name().unwrap_or_default();
            if name.as_encoded_bytes().starts_with(WRITING.as_bytes()) {
                fs::remove_file(&path).map_err(|error| at(&path, &error))?;
            }
        }
        Ok(())
    }

    /// Gives a file its name once it is on the disk.
    fn complete(&self, writing: &Path, target: &Path) -> Outcome {
        let stored = File::open(writing).and_then(|file| file.sync_all());
        let renamed = stored.and_then(|()| fs::rename(writing, target));
        let kept = renamed.and_then(|()| File::open(&self.path)).and_then(|folder| folder.sync_all());
        kept.map_err(|error| at(target, &error))
    }
}

fn at(path: &Path, error: &std::io::Error) -> Failure {
    Failure::with_cause(plain(&path.to_string_lossy()), error)
}
