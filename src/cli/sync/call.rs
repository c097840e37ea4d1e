//! `CALL sync('folder/', 'corpus/', …)`: one round of a sync, from a statement.
//!
//! Its options are those of the command. A call becomes a command line, so that both refuse the same values.

use clap::Parser;
use tadoc_session::{CallArgument, CallValue, Failure, Outcome, Procedure};

use super::Arguments;
use super::round::Kind;

/// The procedure.
pub const PROCEDURE: Procedure = Procedure { name: "sync", usage: USAGE, run: call };
const USAGE: &str = "CALL sync('folder/', 'corpus/', dry_run => true)";
/// Options of the command alone: a statement runs one round, and its answer is a row.
const OF_COMMAND: [&str; 8] = ["watch", "interval", "verbose", "json", "quiet", "threads", "blocks_at_once", "device"];

/// A call as a command line.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

/// Runs one round, and returns its counts.
fn call(arguments: &[CallArgument]) -> Outcome<Vec<(&'static str, u64)>> {
    let mut options = vec!["--quiet".to_owned()];
    let mut places = vec!["--".to_owned()];
    for CallArgument { name, value } in arguments {
        match (name, value) {
            (Some(name), _) if OF_COMMAND.contains(&name.as_str()) => {
                return Err(Failure::usage(format!("CALL sync has no option {name}; as in {USAGE}")));
            }
            (Some(name), CallValue::Text(text)) => options.push(format!("{}={text}", flag(name))),
            (Some(name), CallValue::Truth(true)) => options.push(flag(name)),
            (Some(_), CallValue::Truth(false)) => {}
            (None, CallValue::Text(text)) => places.push(text.clone()),
            (None, CallValue::Truth(_)) => {
                return Err(Failure::usage(format!("CALL sync: expected a folder and a corpus, as in {USAGE}")));
            }
        }
    }
    let line = Line::try_parse_from(options.into_iter().chain(places)).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        Failure::usage(format!("CALL sync: {first}; expected {USAGE}"))
    })?;
    let report = line.arguments.once()?;
    let version = report.version.as_ref().map_or(0, |version| version.number);
    Ok(vec![
        ("version", version),
        ("added", report.count(Kind::Added)),
        ("changed", report.count(Kind::Changed)),
        ("dropped", report.count(Kind::Dropped)),
        ("unchanged", report.unchanged),
    ])
}

/// Returns the flag of the option `name`.
fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}
