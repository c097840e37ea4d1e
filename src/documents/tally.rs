//! Counts what is said once about all inputs, with the first as an example.

/// A number of things, and the name of the first.
#[derive(Debug, Default)]
pub struct Tally {
    count: u64,
    first: String,
}

impl Tally {
    /// Adds `count` things. `name` is the name of the first of them.
    pub fn add(&mut self, count: u64, name: impl FnOnce() -> String) {
        if self.count == 0 && count > 0 {
            self.first = name();
        }
        self.count += count;
    }

    /// Returns the number and the name of the first, if there are any.
    pub fn first(&self) -> Option<(u64, &str)> {
        (self.count > 0).then_some((self.count, self.first.as_str()))
    }
}
