//! A session whose statements print their rows.
//!
//! Scripts run statement by statement and stop at the first failure.

use std::time::Instant;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion_tadoc::{contain_panics_of, notices};
use tadoc_documents::display;
#[cfg(feature = "distributed")]
use tadoc_server::workers::Arguments as WorkerArguments;
use tadoc_session::{
    Failure, MaxWidth, Outcome, Session, Statements, is_shown_whole, note, remember_secrets,
};

use super::format::PrintOptions;
use super::print;

/// A session whose statements print their rows.
pub struct Console {
    /// The session.
    pub session: Session,
    pub(super) options: PrintOptions,
    /// Maximum width of a cell of a table.
    pub(super) max_width: MaxWidth,
}

impl Console {
    /// Creates a console that prints whole tables.
    ///
    /// # Errors
    /// The environment has settings that are not valid.
    pub fn for_tables() -> Outcome<Self> {
        Ok(Self {
            session: Session::new(None, None)?,
            options: PrintOptions::whole_tables(),
            max_width: MaxWidth::default(),
        })
    }

    /// Lets statements run on the workers that `arguments` name, if they name any. Call it before the session is
    /// prepared.
    ///
    /// # Errors
    /// The text is no list of workers.
    #[cfg(feature = "distributed")]
    pub fn on_workers(self, arguments: &WorkerArguments) -> Outcome<Self> {
        Ok(Self { session: self.session.on_workers(arguments.urls()?), ..self })
    }

    /// Runs all statements of `script`. `is_last` says that no other script follows. Only one
    /// statement at a time is held in parsed form.
    pub async fn run_script(&self, script: &str, is_last: bool) -> Outcome {
        remember_secrets(script);
        let dialect = self.session.dialect()?;
        let mut statements = Statements::new(script, dialect.as_ref())?;
        while let Some(statement) = statements.next(self.session.max_depth())? {
            if is_last && statements.is_at_end() {
                self.session.devices().expect_last_statement();
            }
            contain_panics_of("the statement", self.run_statement(statement)).await??;
        }
        Ok(())
    }

    /// Runs one statement and prints its rows.
    pub async fn run_statement(&self, statement: Statement) -> Outcome {
        let start = Instant::now();
        let Some(plan) = self.session.plan(statement).await? else { return Ok(()) };
        say_notices(&plan);
        let max_width = self.width_of(&plan);
        let rows = self.session.start(plan).await?;
        let print = async |stream| {
            let format = self.session.context().state_ref().read().config_options().format.clone();
            let pool = &self.session.context().runtime_env().memory_pool;
            let options = print::TableOptions { max_width, format: &format, pool };
            print::print(stream, &self.options, &options).await
        };
        let num_rows = rows.take(print).await?;
        if !self.options.quiet {
            note(print::footer(&num_rows, start.elapsed()));
        }
        Ok(())
    }

    /// Returns the maximum width of a cell in the table of the rows of `plan`.
    fn width_of(&self, plan: &LogicalPlan) -> MaxWidth {
        if is_shown_whole(plan) { MaxWidth::Lines } else { self.max_width }
    }

    /// Runs all statements of `script`. Returns the rows of the last one, and its text.
    pub async fn rows_of(&self, script: &str) -> Outcome<(SendableRecordBatchStream, String)> {
        remember_secrets(script);
        let dialect = self.session.dialect()?;
        let mut statements = Statements::new(script, dialect.as_ref())?;
        let last = statements.next(self.session.max_depth())?;
        let mut last = last.ok_or_else(|| Failure::usage("there is no statement"))?;
        while let Some(next) = statements.next(self.session.max_depth())? {
            self.run_statement(std::mem::replace(&mut last, next)).await?;
        }
        self.session.devices().expect_last_statement();
        let sql = last.to_string();
        let plan = self.session.plan(last).await?;
        let plan = plan.ok_or_else(|| Failure::usage("the last statement has no rows"))?;
        say_notices(&plan);
        let frame = self.session.context().execute_logical_plan(plan).await?;
        Ok((frame.execute_stream().await?, sql))
    }
}

/// Writes the notices about a planned statement to standard error.
fn say_notices(plan: &LogicalPlan) {
    for notice in notices(plan) {
        note(format!("note: {}", display::plain(&notice)));
    }
}
