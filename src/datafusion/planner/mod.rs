//! Statements before planning: named arguments, descriptions of functions, limits of depth and of texts that
//! are cast to decimals, clauses that would be ignored; notices about planned ones, and hints for errors.

mod checked_plan;
mod clauses;
mod decimal_texts;
mod notices;
mod relation;
mod routines;
mod statement_depth;
mod way_out;

pub use checked_plan::plan_statement;
pub use clauses::check_clauses;
pub use decimal_texts::check_parameters;
pub(crate) use decimal_texts::{DecimalText, DecimalTexts, has_type};
pub use notices::notices;
pub use relation::TadocRelationPlanner;
pub use statement_depth::check_statement_depth;
pub(crate) use way_out::MisspelledFunctions;
pub use way_out::{explain_missing_table, way_out};
