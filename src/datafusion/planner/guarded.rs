//! Statements in safe mode: planned, checked and started.

use datafusion::error::Result;
use datafusion::prelude::{DataFrame, SessionContext};

use super::checked_plan::plan_statement;
use super::decimal_texts::check_parameters;
use crate::safety::Sandbox;

impl Sandbox {
    /// Plans, checks and starts the statement `sql` in `ctx`.
    ///
    /// # Errors
    /// A [`Refused`](crate::safety::Refused), and the errors of DataFusion.
    pub async fn sql(&self, ctx: &SessionContext, sql: &str) -> Result<DataFrame> {
        let state = ctx.state();
        let statement = state.sql_to_statement(sql, &state.config_options().sql_parser.dialect)?;
        let plan = plan_statement(&state, statement).await?;
        self.check(&plan)?;
        check_parameters(&plan, &[])?;
        ctx.execute_logical_plan(plan).await
    }
}
