//! Statements before they are planned: named arguments, depth, and the way out of mistakes.

mod relation;
mod statement_depth;
mod way_out;

pub use relation::TadocRelationPlanner;
pub use statement_depth::check_statement_depth;
pub use way_out::way_out;
