//! Tests of the extension as one value, in sessions of other programs, and of the spans that their subscribers see.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::{TadocExtension, register_all, signatures};
use tadoc::build::IngestOptions;
use tempfile::TempDir;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{batches, table};
use crate::fixtures;

#[tokio::test]
async fn one_value_installs_all_parts_in_any_session() {
    let extension = TadocExtension::default().with_setting("max_hits", "7").unwrap();
    let parts = extension.parts();
    let names: Vec<String> = signatures().map(|signature| signature.name.to_owned()).collect();
    assert!(names.iter().all(|name| parts.table_functions.contains(name)), "{parts:?}");
    assert_eq!(parts.table_functions.len(), names.len());
    for (part, all) in [
        ("snippet", &parts.scalar_functions),
        ("TADOC", &parts.file_types),
        ("GSST", &parts.file_types),
        ("statement on a corpus", &parts.analyzer_rules),
    ] {
        assert!(all.iter().any(|name| name == part), "{part}: {all:?}");
    }
    assert!(parts.num_relation_planners == 2 && parts.physical_rules.len() >= 5, "{parts:?}");
    // A session that is built, one that exists, and one that has the extension already.
    let config = SessionConfig::new().with_information_schema(true);
    let builder = SessionStateBuilder::new().with_config(config.clone()).with_default_features();
    let built = SessionContext::new_with_state(extension.extend(builder).build());
    let installed = SessionContext::new_with_config(config.clone());
    extension.install(&installed).unwrap();
    let twice = SessionContext::new_with_config(config);
    register_all(&twice).unwrap();
    extension.install(&twice).unwrap();
    register_all(&twice).unwrap();
    for ctx in [&built, &installed, &twice] {
        let state = ctx.state();
        for name in &parts.analyzer_rules {
            assert_eq!(state.analyzer().rules.iter().filter(|rule| rule.name() == name).count(), 1, "{name}");
        }
        for name in &parts.physical_rules {
            assert_eq!(state.physical_optimizers().iter().filter(|rule| rule.name() == name).count(), 1, "{name}");
        }
        assert!(table(ctx, "SHOW tadoc.max_hits").await.contains("| tadoc.max_hits | 7 "));
    }
    assert!(TadocExtension::default().with_setting("max_hit", "7").is_err());
}

/// Lists of a session show every function, its arguments with their defaults, and what it does.
#[tokio::test]
async fn lists_of_a_session_show_all_functions() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_information_schema(true));
    TadocExtension::default().install(&ctx).unwrap();
    for signature in signatures() {
        let name = signature.name;
        let routine = format!(
            "SELECT description, syntax_example FROM information_schema.routines WHERE routine_name = '{name}' \
             AND function_type = 'TABLE'"
        );
        let routine = table(&ctx, &routine).await;
        assert!(routine.contains(signature.summary) && routine.contains(&signature.to_string()), "{routine}");
        let arguments = format!(
            "SELECT parameter_name, parameter_default FROM information_schema.parameters \
             WHERE specific_name = '{name}' AND parameter_mode = 'IN' ORDER BY ordinal_position"
        );
        let num_rows: usize = batches(&ctx, &arguments).await.unwrap().iter().map(|batch| batch.num_rows()).sum();
        assert_eq!(num_rows, signature.arguments.len(), "{name}");
    }
}

/// Spans that were made, with their parents and fields.
#[derive(Debug, Default, Clone)]
struct Spans(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Name, fields and parent of each span, by its number.
    made: HashMap<u64, (String, String, Option<u64>)>,
    /// Open spans of each thread, the innermost last.
    open: HashMap<std::thread::ThreadId, Vec<u64>>,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && (metadata.target().starts_with("datafusion_tadoc") || metadata.name() == "statement")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut state = self.0.lock().unwrap();
        let mut fields = Fields(String::new());
        attributes.record(&mut fields);
        let number = state.made.len() as u64 + 1;
        let current = state.open.get(&std::thread::current().id()).and_then(|open| open.last().copied());
        let parent = if attributes.is_root() { None } else { attributes.parent().map(Id::into_u64).or(current) };
        state.made.insert(number, (attributes.metadata().name().to_owned(), fields.0, parent));
        Id::from_u64(number)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        let mut state = self.0.lock().unwrap();
        state.open.entry(std::thread::current().id()).or_default().push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut state = self.0.lock().unwrap();
        let open = state.open.entry(std::thread::current().id()).or_default();
        if let Some(place) = open.iter().rposition(|number| *number == span.into_u64()) {
            open.remove(place);
        }
    }
}

/// A subscriber sees each scan below the span of the statement, and its loading and computing below the scan.
#[test]
fn scans_are_spans_below_those_of_the_program() {
    let spans = Spans::default();
    let subscriber = spans.clone();
    let folder = TempDir::new().unwrap();
    let corpus = folder.path().join("c.tadoc");
    fixtures::write_corpus(&corpus, IngestOptions::default(), &fixtures::PLAYS);
    let sql = format!("SELECT * FROM search('{}', 'be')", corpus.display());
    // Threads of the runtime have no subscriber of their own: the program has one for all.
    tracing::dispatcher::set_global_default(tracing::Dispatch::new(subscriber)).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let ctx = SessionContext::new();
        register_all(&ctx).unwrap();
        let statement = tracing::info_span!("statement");
        tracing::Instrument::instrument(batches(&ctx, &sql), statement).await.unwrap();
    });
    let state = spans.0.lock().unwrap();
    let of_scans: Vec<u64> = state
        .made
        .iter()
        .filter(|(_, (name, fields, _))| name == "tadoc_scan" && fields.contains(&corpus.display().to_string()))
        .map(|(number, _)| *number)
        .collect();
    assert!(!of_scans.is_empty(), "{state:?}");
    for scan in of_scans {
        let (_, fields, parent) = &state.made[&scan];
        assert!(fields.contains("function=\"search\"") && fields.contains("partition=0"), "{fields}");
        assert_eq!(state.made[&parent.unwrap()].0, "statement");
        let mut below: Vec<&str> = state
            .made
            .values()
            .filter(|(_, _, parent)| *parent == Some(scan))
            .map(|(name, ..)| name.as_str())
            .collect();
        below.sort_unstable();
        assert_eq!(below, ["tadoc_compute", "tadoc_load"]);
    }
}
