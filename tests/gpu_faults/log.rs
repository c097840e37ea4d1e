//! Messages of the library through `tracing`, kept for tests.

use std::fmt::{Debug, Write};
use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Events as `message key=value key=value`.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("datafusion_tadoc")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        LINES.lock().unwrap().push(line.message + &line.fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => write!(self.message, "{value:?}").unwrap(),
            name => write!(self.fields, " {name}={value:?}").unwrap(),
        }
    }
}

/// Keeps all messages from now on.
pub fn listen() {
    tracing::subscriber::set_global_default(Listener).unwrap();
}

/// Returns true if `message` was logged with `part` in it or in its values.
fn has_said(message: &str, part: &str) -> bool {
    let lines = LINES.lock().unwrap();
    lines.iter().any(|line| line.starts_with(message) && line.contains(part))
}

#[track_caller]
pub fn assert_said(message: &str, part: &str) {
    assert!(has_said(message, part), "{message}, {part}: {}", all());
}

/// Returns all messages, to explain a failed check.
pub fn all() -> String {
    LINES.lock().unwrap().join("\n")
}
