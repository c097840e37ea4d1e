//! Counts of messages of the library about where questions of rows are answered.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static ON_DEVICE: AtomicUsize = AtomicUsize::new(0);
static ON_CPU: AtomicUsize = AtomicUsize::new(0);

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
        event.record(&mut Message);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Message;

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != "message" {
            return;
        }
        match format!("{value:?}").as_str() {
            "answering questions on a device" => ON_DEVICE.fetch_add(1, Ordering::Relaxed),
            "answering questions on the CPU" => ON_CPU.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
    }
}

/// Counts messages from now on.
pub fn listen() {
    tracing::subscriber::set_global_default(Listener).unwrap();
}

/// Returns the number of calls that chose a device, and of batches that it failed at.
pub fn counts() -> (usize, usize) {
    (ON_DEVICE.load(Ordering::Relaxed), ON_CPU.load(Ordering::Relaxed))
}
