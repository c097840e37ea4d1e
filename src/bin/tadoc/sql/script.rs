//! Runs a script statement by statement and stops at the first that fails.
//!
//! Statements are parsed one at a time, so those before a syntax error have run, and `SET` may
//! change the dialect of what follows in the next script.

use std::time::Instant;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::sql::parser::{DFParser, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::dialect::{Dialect, dialect_from_str};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Session, print};
use crate::failure::{Failure, Outcome};

/// The statements of a script, parsed as they are asked for.
struct Statements<'a>(DFParser<'a>);

impl<'a> Statements<'a> {
    fn new(script: &'a str, dialect: &'a dyn Dialect) -> Result<Self> {
        Ok(Self(DFParserBuilder::new(script).with_dialect(dialect).build()?))
    }

    fn next(&mut self) -> Result<Option<Statement>> {
        let parser = &mut self.0;
        while parser.parser.consume_token(&Token::SemiColon) {}
        if parser.parser.peek_token().token == Token::EOF {
            return Ok(None);
        }
        let statement = parser.parse_statement()?;
        let next = parser.parser.peek_token();
        if next.token != Token::SemiColon && next.token != Token::EOF {
            let parsed = parser.parser.expected("end of statement", next);
            return parsed.map_err(|error: _| DataFusionError::SQL(Box::new(error), None));
        }
        Ok(Some(statement))
    }
}

impl Session {
    /// Runs all statements of `script`. Of a long one no more than one is there in parsed form.
    pub async fn run_script(&self, script: &str) -> Outcome {
        let dialect = self.dialect()?;
        let mut statements = Statements::new(script, dialect.as_ref())?;
        while let Some(statement) = statements.next()? {
            self.run_statement(statement).await?;
        }
        Ok(())
    }

    /// How scripts are written.
    fn dialect(&self) -> Result<Box<dyn Dialect>> {
        let state = self.context.state();
        let name = &state.config_options().sql_parser.dialect;
        dialect_from_str(name).ok_or_else(|| {
            DataFusionError::Configuration(format!("there is no SQL dialect `{name}`"))
        })
    }

    /// Runs one statement and prints its rows.
    pub async fn run_statement(&self, statement: Statement) -> Outcome {
        let start = Instant::now();
        let plan = self.context.state().statement_to_plan(statement).await?;
        let whole = print::is_shown_whole(&plan);
        let stream = self.execute(plan).await?.execute_stream().await?;
        let format_options = self.context.state_ref().read().config_options().format.clone();
        let num_rows = print::print(stream, &self.options, whole, &format_options).await?;
        if !self.options.quiet {
            eprintln!("{}", print::footer(&num_rows, start.elapsed()));
        }
        Ok(())
    }

    /// Runs all statements of `script`; the rows of the last one, and its text.
    pub async fn rows_of(&self, script: &str) -> Outcome<(SendableRecordBatchStream, String)> {
        let dialect = self.dialect()?;
        let mut statements = Statements::new(script, dialect.as_ref())?;
        let mut last = statements.next()?.ok_or_else(|| Failure::usage("there is no statement"))?;
        while let Some(next) = statements.next()? {
            self.run_statement(std::mem::replace(&mut last, next)).await?;
        }
        let sql = last.to_string();
        let plan = self.context.state().statement_to_plan(last).await?;
        let frame = self.context.execute_logical_plan(plan).await?;
        Ok((frame.execute_stream().await?, sql))
    }
}
