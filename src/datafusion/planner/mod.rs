//! Statements before planning: named arguments, descriptions of functions, depth limit, and hints for
//! errors.

mod misspelled;
mod relation;
mod routines;
mod statement_depth;
mod way_out;

pub(crate) use misspelled::MisspelledFunctions;
pub use relation::TadocRelationPlanner;
pub use statement_depth::check_statement_depth;
pub use way_out::way_out;
