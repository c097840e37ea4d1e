//! Statements and settings that safe mode allows.
//!
//! | statement | allowed |
//! | --- | --- |
//! | `SELECT`, `VALUES`, `EXPLAIN`, `SHOW`, `DESCRIBE` | yes |
//! | `SET`, `RESET` of the settings in [`HARMLESS`] | yes |
//! | `SET`, `RESET` of others | with [`Permission::Set`] |
//! | `COPY` | with [`Permission::Copy`] |
//! | `CREATE`, `DROP` | with [`Permission::Create`] |
//! | calls of `read_text`, `read_lines` | with [`Permission::ReadText`] |
//! | `INSERT`, `UPDATE`, `DELETE`, `TRUNCATE`, `PREPARE`, transactions | no |
//!
//! The list names what is allowed, so a statement of a later DataFusion is refused.

use std::collections::HashMap;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement};
use datafusion::optimizer::AnalyzerRule;

use super::door::sandbox_of;
use super::refusal::{Refusal, Refused};
use super::{Permission, Sandbox};

/// Prefixes of settings that change only how answers and plans look.
const HARMLESS: [&str; 4] =
    ["datafusion.format.", "datafusion.explain.", "datafusion.execution.time_zone", "datafusion.sql_parser.dialect"];

/// Prefixes of options of tables and of `COPY` that are limits.
const LIMITS: [&str; 5] = ["max_", "gpu_", "block", "device", "recompress_"];
/// Prefixes of options that name a server or a credential.
const STORES: [&str; 3] = ["aws.", "gcp.", "azure."];

/// Functions that read any file.
const PLAIN_FILES: [&str; 2] = ["read_text", "read_lines"];

/// Analyzer rule that refuses what [`Sandbox::check`] refuses, for hosts that do not check plans. It
/// is a rule of all guarded sessions.
#[derive(Debug)]
pub(crate) struct SafeStatements(pub(crate) Sandbox);

impl AnalyzerRule for SafeStatements {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        check(&self.0, &plan)?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "tadoc_safe_statements"
    }
}

/// Checks `plan`, and the plans in it.
pub(super) fn check(sandbox: &Sandbox, plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        check_node(sandbox, node)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn check_node(sandbox: &Sandbox, node: &LogicalPlan) -> Result<()> {
    match node {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::DescribeTable(_)
        | LogicalPlan::Unnest(_)
        | LogicalPlan::RecursiveQuery(_)
        // SQL makes such nodes only through planners of the host program.
        | LogicalPlan::Extension(_) => Ok(()),
        LogicalPlan::TableScan(scan) => Ok(check_function(sandbox, scan.table_name.table())?),
        LogicalPlan::Statement(statement) => Ok(check_statement(sandbox, statement)?),
        LogicalPlan::Copy(copy) => {
            check_permitted(sandbox, Permission::Copy, "COPY")?;
            // Writers of DataFusion do not name the cause of a failure.
            sandbox.check_location(&copy.output_url)?;
            Ok(check_options(sandbox, &copy.options)?)
        }
        LogicalPlan::Ddl(ddl) => {
            check_permitted(sandbox, Permission::Create, ddl.name())?;
            let DdlStatement::CreateExternalTable(table) = ddl else { return Ok(()) };
            for location in &table.locations {
                sandbox.check_location(location)?;
            }
            Ok(check_options(sandbox, &table.options)?)
        }
        LogicalPlan::Dml(dml) => Err(Refused::new(Refusal::Write, dml.op.name()).into()),
    }
}

fn check_permitted(sandbox: &Sandbox, permission: Permission, what: &str) -> Result<(), Refused> {
    if sandbox.permits(permission) {
        return Ok(());
    }
    Err(Refused::new(Refusal::Statement, what).unless(permission))
}

/// Checks the call of a table function, by the name that the planner gave its scan.
fn check_function(sandbox: &Sandbox, scan: &str) -> Result<(), Refused> {
    let function = scan.split('(').next().unwrap_or(scan);
    if PLAIN_FILES.contains(&function) && scan.contains('(') { check_plain_files(sandbox, function) } else { Ok(()) }
}

fn check_plain_files(sandbox: &Sandbox, function: &str) -> Result<(), Refused> {
    if sandbox.permits(Permission::ReadText) { Ok(()) } else { Err(Refused::new(Refusal::Function, function)) }
}

/// Checks that functions may read any files of the places that are allowed in `runtime`.
pub(crate) fn check_read_text(runtime: &RuntimeEnv) -> Result<()> {
    match sandbox_of(runtime) {
        Some(sandbox) => Ok(check_plain_files(&sandbox, "plain files")?),
        None => Ok(()),
    }
}

fn check_statement(sandbox: &Sandbox, statement: &Statement) -> Result<(), Refused> {
    match statement {
        Statement::SetVariable(set) => check_setting(sandbox, "SET", &set.variable),
        Statement::ResetVariable(reset) => check_setting(sandbox, "RESET", &reset.variable),
        other => Err(Refused::new(Refusal::Statement, other.name())),
    }
}

fn check_setting(sandbox: &Sandbox, verb: &str, name: &str) -> Result<(), Refused> {
    let lower = name.to_ascii_lowercase();
    let is_harmless = HARMLESS.iter().any(|harmless| lower.starts_with(harmless));
    if is_harmless || sandbox.permits(Permission::Set) {
        Ok(())
    } else {
        Err(Refused::new(Refusal::Setting, format!("{verb} {name}")))
    }
}

fn check_options(sandbox: &Sandbox, options: &HashMap<String, String>) -> Result<(), Refused> {
    for name in options.keys() {
        let lower = name.to_ascii_lowercase();
        // The planner puts `format.` before names without a dot.
        let bare = lower.strip_prefix("format.").unwrap_or(&lower);
        if STORES.iter().any(|store| bare.starts_with(store)) {
            return Err(Refused::new(Refusal::Credentials, format!("the option {name}")));
        }
        let ours = bare.strip_prefix("tadoc.").unwrap_or(bare);
        let is_limit = LIMITS.iter().any(|limit| ours.starts_with(limit));
        if is_limit && !sandbox.permits(Permission::Set) {
            return Err(Refused::new(Refusal::Setting, format!("the option {name}")));
        }
    }
    Ok(())
}
