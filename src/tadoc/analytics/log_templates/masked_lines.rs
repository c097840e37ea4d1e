//! Distinct masked lines, with their numbers of occurrences and an example of each.
//!
//! ```text
//! lines        usb 1: ok     usb 2: ok     disk full
//! masked       usb <*>: ok, 2 times, least line "usb 1: ok"     disk full, 1 time
//! ```
//!
//! Each task numbers the lines that it meets itself. Numbers are joined afterwards, so they depend
//! on the tasks, and nothing else does: counts are added, and the example is the least line.

use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};

/// Bytes of a masked line beside its text and its example.
const ENTRY_BYTES: u64 = 128;

/// Memory that a search for templates may take. Tasks share it.
#[derive(Debug)]
pub(super) struct Budget {
    used_bytes: AtomicU64,
    max_bytes: u64,
}

impl Budget {
    /// Creates a budget of `max_bytes`, of which nothing is used.
    pub fn new(max_bytes: u64) -> Self {
        Self { used_bytes: AtomicU64::new(0), max_bytes }
    }

    /// Uses `len_bytes` more.
    ///
    /// # Errors
    /// [`Error::Capacity`] if there is not so much left.
    pub fn take(&self, len_bytes: u64) -> Result<()> {
        let before = self.used_bytes.fetch_add(len_bytes, Ordering::Relaxed);
        let used_bytes = before.saturating_add(len_bytes);
        if used_bytes <= self.max_bytes {
            Ok(())
        } else {
            Err(Error::memory_of_task(
                "looking for templates of lines (bytes)",
                used_bytes,
                self.max_bytes,
            ))
        }
    }

    /// Gives `len_bytes` back.
    fn give_back(&self, len_bytes: u64) {
        self.used_bytes.fetch_sub(len_bytes, Ordering::Relaxed);
    }

    /// Returns the bytes that are used.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }
}

/// Facts of a masked line.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// Number of lines with this form.
    pub count: u64,
    /// Least of these lines.
    pub example: String,
}

/// Distinct masked lines, numbered as they were met.
#[derive(Debug, Default)]
pub(super) struct MaskedLines {
    numbers: FxHashMap<Box<str>, u32>,
    facts: Vec<Facts>,
}

impl MaskedLines {
    /// Adds `count` lines `line`, which are masked as `masked`, and returns the number of the form.
    ///
    /// # Errors
    /// [`Error::Capacity`] if a new form does not fit into `budget`.
    pub fn add(&mut self, masked: &str, line: &str, count: u64, budget: &Budget) -> Result<u32> {
        if let Some(&number) = self.numbers.get(masked) {
            self.facts[number as usize].join(count, line);
            return Ok(number);
        }
        budget.take(entry_bytes(masked, line))?;
        let number = self.facts.len() as u32;
        self.numbers.insert(masked.into(), number);
        self.facts.push(Facts { count, example: line.to_owned() });
        Ok(number)
    }

    /// Adds the lines of `others`. Returns the new number of each of their forms. `budget` gets the
    /// memory of forms back that both have.
    pub fn absorb(&mut self, others: Self, budget: &Budget) -> Vec<u32> {
        let mut facts: Vec<Option<Facts>> = others.facts.into_iter().map(Some).collect();
        let mut renumbered = vec![0; facts.len()];
        for (masked, number) in others.numbers {
            let Some(facts) = facts[number as usize].take() else { continue };
            renumbered[number as usize] = match self.numbers.entry(masked) {
                Entry::Occupied(known) => {
                    budget.give_back(entry_bytes(known.key(), &facts.example));
                    self.facts[*known.get() as usize].join(facts.count, &facts.example);
                    *known.get()
                }
                Entry::Vacant(free) => {
                    self.facts.push(facts);
                    *free.insert(self.facts.len() as u32 - 1)
                }
            };
        }
        renumbered
    }

    /// Returns the forms and their facts, by number.
    pub fn into_parts(self) -> (Vec<Box<str>>, Vec<Facts>) {
        let mut forms: Vec<Box<str>> = vec![Box::default(); self.facts.len()];
        for (form, number) in self.numbers {
            forms[number as usize] = form;
        }
        (forms, self.facts)
    }
}

fn entry_bytes(masked: &str, example: &str) -> u64 {
    (masked.len() + example.len()) as u64 + ENTRY_BYTES
}

impl Facts {
    /// Adds `count` lines, of which `example` is the least.
    pub fn join(&mut self, count: u64, example: &str) {
        self.count = self.count.saturating_add(count);
        if example < self.example.as_str() {
            self.example.clear();
            self.example.push_str(example);
        }
    }
}
