//! Runs a script statement by statement and stops at the first that fails.
//!
//! Statements are parsed one at a time, so those before a syntax error have run, and `SET` may
//! change the dialect of what follows in the next script.

use std::time::Instant;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::dialect::dialect_from_str;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Session, print};
use crate::failure::{Failure, Outcome};

impl Session {
    /// Runs all statements of `script`.
    pub async fn run_script(&self, script: &str) -> Outcome {
        for statement in self.parse(script) {
            self.run_statement(statement?).await?;
        }
        Ok(())
    }

    /// The statements of `script`; the last item may be the error where the text ends to be SQL.
    pub fn parse(&self, script: &str) -> Vec<Result<Statement>> {
        let mut statements = Vec::new();
        if let Err(error) = self.parse_into(script, &mut statements) {
            statements.push(Err(error));
        }
        statements
    }

    fn parse_into(&self, script: &str, statements: &mut Vec<Result<Statement>>) -> Result<()> {
        let state = self.context.state();
        let name = &state.config_options().sql_parser.dialect;
        let dialect = dialect_from_str(name).ok_or_else(|| {
            DataFusionError::Configuration(format!("there is no SQL dialect `{name}`"))
        })?;
        let mut parser = DFParserBuilder::new(script).with_dialect(dialect.as_ref()).build()?;
        loop {
            while parser.parser.consume_token(&Token::SemiColon) {}
            if parser.parser.peek_token().token == Token::EOF {
                return Ok(());
            }
            let statement = parser.parse_statement()?;
            let next = parser.parser.peek_token();
            if next.token != Token::SemiColon && next.token != Token::EOF {
                let parsed = parser.parser.expected("end of statement", next);
                return parsed.map_err(|error: _| DataFusionError::SQL(Box::new(error), None));
            }
            statements.push(Ok(statement));
        }
    }

    /// Runs one statement and prints its rows.
    pub async fn run_statement(&self, statement: Statement) -> Outcome {
        let start = Instant::now();
        let plan = self.context.state().statement_to_plan(statement).await?;
        let whole = print::is_shown_whole(&plan);
        let stream = self.execute(plan).await?.execute_stream().await?;
        let format_options = self.context.state().config_options().format.clone();
        let num_rows = print::print(stream, &self.options, whole, &format_options).await?;
        if !self.options.quiet {
            eprintln!("{}", print::footer(&num_rows, start.elapsed()));
        }
        Ok(())
    }

    /// Runs all statements of `script`; the rows of the last one, and its text.
    pub async fn rows_of(&self, script: &str) -> Outcome<(SendableRecordBatchStream, String)> {
        let mut statements = self.parse(script);
        let last = statements.pop().ok_or_else(|| Failure::usage("there is no statement"))??;
        for statement in statements {
            self.run_statement(statement?).await?;
        }
        let sql = last.to_string();
        let plan = self.context.state().statement_to_plan(last).await?;
        let frame = self.context.execute_logical_plan(plan).await?;
        Ok((frame.execute_stream().await?, sql))
    }
}
