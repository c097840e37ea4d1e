//! Statements before planning: named arguments, depth limit, and hints for errors.

mod misspelled;
mod relation;
mod statement_depth;
mod way_out;

pub(crate) use misspelled::MisspelledFunctions;
pub use relation::TadocRelationPlanner;
pub use statement_depth::check_statement_depth;
pub use way_out::way_out;
