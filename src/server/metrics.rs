//! Counters of the server, in the text format of Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::refusal::Kind;

/// Upper bounds of the histogram of times, in seconds.
const TIMES_S: [f64; 10] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

/// Outcomes of statements, in the order of [`Metrics::outcomes`].
const OUTCOMES: [&str; 8] =
    ["done", "invalid", "forbidden", "exhausted", "timed_out", "stalled", "cancelled", "broken"];

/// Counters of the server. All only grow, but for the numbers of what is open or running.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Connections that are open.
    pub connections: AtomicU64,
    /// Connections that were accepted.
    pub connections_total: AtomicU64,
    /// Connections that were closed, or not taken, because there were too many.
    pub connections_refused: AtomicU64,
    /// Statements that are open: they wait, run, or send rows.
    pub statements: AtomicU64,
    /// Rows that were sent.
    pub rows: AtomicU64,
    outcomes: [AtomicU64; OUTCOMES.len()],
    times: [AtomicU64; TIMES_S.len() + 1],
    total_us: AtomicU64,
}

impl Metrics {
    /// Counts a statement that has ended, with its kind if it failed.
    pub fn end(&self, failed: Option<Kind>, took: Duration) {
        let outcome = match failed {
            None => 0,
            Some(Kind::Invalid) => 1,
            Some(Kind::Forbidden) => 2,
            Some(Kind::Exhausted) => 3,
            Some(Kind::TimedOut) => 4,
            Some(Kind::Stalled) => 5,
            Some(Kind::Cancelled) => 6,
            Some(Kind::Broken) => 7,
        };
        self.outcomes[outcome].fetch_add(1, Ordering::Relaxed);
        let seconds = took.as_secs_f64();
        let bucket = TIMES_S.partition_point(|&bound| bound < seconds);
        self.times[bucket].fetch_add(1, Ordering::Relaxed);
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.total_us.fetch_add(took_us, Ordering::Relaxed);
    }

    /// Returns all counters as text. `reserved_bytes` is what the memory pool has given out.
    pub fn text(&self, reserved_bytes: usize) -> String {
        let mut text = String::new();
        let gauges = [
            ("tadoc_connections", "connections that are open", &self.connections),
            ("tadoc_statements", "statements that wait, run or send rows", &self.statements),
        ];
        let counters = [
            ("tadoc_connections_total", "accepted connections", &self.connections_total),
            (
                "tadoc_connections_refused_total",
                "connections closed because there were too many",
                &self.connections_refused,
            ),
            ("tadoc_rows_total", "rows of statements", &self.rows),
        ];
        let kinds = gauges.map(|gauge| (gauge, "gauge")).into_iter();
        for ((name, help, value), kind) in kinds.chain(counters.map(|value| (value, "counter"))) {
            family(&mut text, name, help, kind);
            let _ = writeln!(text, "{name} {}", value.load(Ordering::Relaxed));
        }
        let name = "tadoc_memory_reserved_bytes";
        family(&mut text, name, "memory of open corpora and of statements", "gauge");
        let _ = writeln!(text, "{name} {reserved_bytes}");
        self.write_outcomes(&mut text);
        self.write_times(&mut text);
        text
    }

    fn write_outcomes(&self, text: &mut String) {
        let name = "tadoc_statements_total";
        family(text, name, "statements that have ended, by outcome", "counter");
        for (outcome, count) in OUTCOMES.iter().zip(&self.outcomes) {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}{{outcome=\"{outcome}\"}} {count}");
        }
    }

    fn write_times(&self, text: &mut String) {
        let name = "tadoc_statement_seconds";
        family(text, name, "time from the request to the last row", "histogram");
        let mut sum = 0;
        for (at, count) in self.times.iter().enumerate() {
            sum += count.load(Ordering::Relaxed);
            let bound = TIMES_S.get(at).map_or_else(|| "+Inf".to_owned(), f64::to_string);
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        let seconds = self.total_us.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(text, "{name}_sum {seconds}\n{name}_count {sum}");
    }
}

fn family(text: &mut String, name: &str, help: &str, kind: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_text() {
        let metrics = Metrics::default();
        metrics.end(None, Duration::from_millis(2));
        metrics.end(Some(Kind::TimedOut), Duration::from_secs(40));
        metrics.rows.fetch_add(7, Ordering::Relaxed);
        let text = metrics.text(5);
        for line in [
            "tadoc_rows_total 7",
            "tadoc_memory_reserved_bytes 5",
            "tadoc_statements_total{outcome=\"done\"} 1",
            "tadoc_statements_total{outcome=\"timed_out\"} 1",
            "tadoc_statement_seconds_bucket{le=\"0.001\"} 0",
            "tadoc_statement_seconds_bucket{le=\"0.003\"} 1",
            "tadoc_statement_seconds_bucket{le=\"30\"} 1",
            "tadoc_statement_seconds_bucket{le=\"+Inf\"} 2",
            "tadoc_statement_seconds_sum 40.002",
            "tadoc_statement_seconds_count 2",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in {text}");
        }
    }
}
