//! Relation planner for calls in `FROM f(…)` that plain DataFusion refuses, and descriptions of the functions in
//! `information_schema`, and so in `SHOW FUNCTIONS`.
//!
//! Table functions of DataFusion have case-sensitive names and no named arguments, and `public` in `public.f(…)` is
//! taken for the name of the function. This planner handles only the functions of this crate. It maps
//! `name => value` to positions, and reports unknown, repeated and missing arguments with the signature of the
//! function. All other relations pass through unchanged, but for the list of functions:
//!
//! ```text
//! routines ── left join on name and type ── names, types, summaries, signatures, types of answers
//!                        └─▶ the columns of routines
//! parameters ── union all ── arguments and answers of functions that coerce their arguments,
//!                            and arguments of table functions
//! ```
//!
//! DataFusion lists table functions without a place for what they say of themselves, and no arguments of functions
//! that coerce them by themselves. Functions with a description keep it.

use datafusion::common::config::CatalogOptions;
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArgOperator, Ident, ObjectName, ObjectNamePart, TableFactor,
};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, col, ident, lit};
use datafusion::scalar::ScalarValue;

use crate::functions::{find_signature, listed_functions, planned_call, signatures};
use crate::planner::decimal_texts::bounded_casts;
use crate::planning::signature::{ArgumentKind, Signature};

/// Planner for calls of this crate's table functions; see the module's description.
#[derive(Debug, Default)]
pub struct TadocRelationPlanner;

impl RelationPlanner for TadocRelationPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let (name, arguments, alias) = match &relation {
            TableFactor::Table { name, args: Some(args), alias, .. } => (name, &args.args, alias),
            TableFactor::Function { name, args, alias, .. } => (name, args, alias),
            TableFactor::Table { name, alias, .. } if let Some(plan) = described(name, context)? => {
                return Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))));
            }
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        let Some(signature) = called_function(name, context) else {
            check_casts(name, arguments, context)?;
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let exprs = positional(signature, arguments, context)?;
        let functions = context.context_provider();
        let source = functions.get_table_function_source(signature.name, exprs.clone())?;
        let plan = planned_call(signature, &exprs, source)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

/// Refuses casts of texts to decimals in the arguments of a function of DataFusion, which evaluates them while it
/// plans. Literals of usual length are cast.
fn check_casts(name: &ObjectName, arguments: &[FunctionArg], context: &mut dyn RelationPlannerContext) -> Result<()> {
    for argument in arguments {
        let (FunctionArg::Unnamed(value)
        | FunctionArg::Named { arg: value, .. }
        | FunctionArg::ExprNamed { arg: value, .. }) = argument;
        let FunctionArgExpr::Expr(expr) = value else { continue };
        let schema = DFSchema::empty();
        // What is no constant, DataFusion refuses itself.
        let Ok(expr) = context.sql_to_expr(expr.clone(), &schema) else { continue };
        if bounded_casts(expr, &schema)?.transformed {
            return plan_err!(
                "{name}: got an argument that casts a text to a decimal, expected a number; write the number"
            );
        }
    }
    Ok(())
}

/// Returns the function of this crate that `name` denotes. Qualifiers must be those of the
/// session's default schema.
fn called_function(name: &ObjectName, context: &dyn RelationPlannerContext) -> Option<&'static Signature> {
    let (last, qualifiers) = name.0.split_last()?;
    let catalog = &context.context_provider().options().catalog;
    let is_same = |ident: &Ident, default: &str| context.normalize_ident(ident.clone()) == default;
    find_signature(&last.as_ident()?.value).filter(|_| are_defaults(qualifiers, catalog, is_same))
}

/// Returns true if `qualifiers` are none, the default schema, or that behind the default catalog.
pub(super) fn are_defaults(
    qualifiers: &[ObjectNamePart],
    catalog: &CatalogOptions,
    is_same: impl Fn(&Ident, &str) -> bool,
) -> bool {
    let defaults = [&catalog.default_schema, &catalog.default_catalog];
    qualifiers.len() <= defaults.len()
        && qualifiers
            .iter()
            .rev()
            .zip(defaults)
            .all(|(part, default)| part.as_ident().is_some_and(|ident| is_same(ident, default)))
}

/// Returns the arguments by position. Arguments omitted before the last given one are NULL.
fn positional(
    signature: &Signature,
    arguments: &[FunctionArg],
    context: &mut dyn RelationPlannerContext,
) -> Result<Vec<Expr>> {
    let mut slots: Vec<Option<Expr>> = vec![None; signature.arguments.len()];
    let mut last_named = None;
    for (i, argument) in arguments.iter().enumerate() {
        let (position, value) = match argument {
            FunctionArg::Unnamed(value) => match last_named {
                Some(name) => {
                    return Err(signature.error(format!("unnamed argument after {name} =>")));
                }
                None => (i, value),
            },
            FunctionArg::Named { name, arg, operator } => {
                check_operator(signature, &name.value, operator)?;
                let position = signature.position(&name.value)?;
                last_named = Some(signature.arguments[position].name);
                (position, arg)
            }
            FunctionArg::ExprNamed { name, .. } => {
                return Err(signature.error(format!("argument name {name} is not a plain name")));
            }
        };
        let Some(slot) = slots.get_mut(position) else {
            let got = arguments.len();
            let most = signature.arguments.len();
            return Err(signature.error(format!("got {got} arguments, expected at most {most}")));
        };
        if slot.is_some() {
            let name = signature.arguments[position].name;
            return Err(signature.error(format!("argument {name} is given twice")));
        }
        let value = constant(signature, position, value, context)?;
        refuse_null(signature, position, &value)?;
        *slot = Some(value);
    }
    fill(signature, slots)
}

fn check_operator(signature: &Signature, name: &str, operator: &FunctionArgOperator) -> Result<()> {
    match operator {
        FunctionArgOperator::RightArrow | FunctionArgOperator::Assignment | FunctionArgOperator::Equals => Ok(()),
        other => Err(signature.error(format!("got {name} {other}, expected {name} =>"))),
    }
}

fn constant(
    signature: &Signature,
    position: usize,
    value: &FunctionArgExpr,
    context: &mut dyn RelationPlannerContext,
) -> Result<Expr> {
    let argument = &signature.arguments[position];
    let refuse = |got: String| signature.error(format!("{}: got {got}, expected {}", argument.name, argument.kind));
    if argument.kind == ArgumentKind::Condition
        && let FunctionArgExpr::Expr(SqlExpr::Identifier(Ident { value, quote_style: Some('"'), .. })) = value
    {
        // In double quotes the texts of a condition need no quotes of their own.
        return Ok(lit(value.clone()));
    }
    match value {
        FunctionArgExpr::Expr(SqlExpr::Identifier(ident)) => Err(refuse(format!("column {}", ident.value))),
        FunctionArgExpr::Expr(SqlExpr::CompoundIdentifier(parts)) => {
            let parts: Vec<&str> = parts.iter().map(|p| p.value.as_str()).collect();
            Err(refuse(format!("column {}", parts.join("."))))
        }
        FunctionArgExpr::Expr(expr) => {
            let expr = context.sql_to_expr(expr.clone(), &DFSchema::empty())?;
            Ok(bounded_casts(expr, &DFSchema::empty())?.data)
        }
        other => Err(refuse(other.to_string())),
    }
}

/// Refuses NULL for an argument with a default where functions with the same argument take NULL for no
/// limit: it would silently mean the default. Elsewhere NULL is the default.
fn refuse_null(signature: &Signature, position: usize, value: &Expr) -> Result<()> {
    let argument = &signature.arguments[position];
    let name = argument.name;
    let kind = argument.kind;
    let means_none =
        |other: &Signature| other.arguments.iter().any(|other| other.name == name && other.default == Some("NULL"));
    match (argument.default, value) {
        (Some(default), Expr::Literal(literal, _))
            if literal.is_null() && default != "NULL" && signatures().any(means_none) =>
        {
            Err(signature.error(format!(
                "{name}: got NULL, expected {kind}; leave it out for {default}, and name a larger \
                 number for more"
            )))
        }
        _ => Ok(()),
    }
}

fn fill(signature: &Signature, slots: Vec<Option<Expr>>) -> Result<Vec<Expr>> {
    let given = slots.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let fill = |(position, slot): (usize, Option<Expr>)| match slot {
        Some(expr) => Ok(expr),
        None if signature.arguments[position].default.is_some() => Ok(Expr::Literal(ScalarValue::Null, None)),
        None => {
            let argument = &signature.arguments[position];
            let name = argument.name;
            let kind = argument.kind;
            Err(signature.error(format!("argument {name} is missing, expected {kind}")))
        }
    };
    slots.into_iter().take(given).enumerate().map(fill).collect()
}

/// Schema of the lists.
const SCHEMA: &str = "information_schema";
/// Columns of `routines` that are filled, each with the column that fills it.
const FILLED: [(&str, &str); 3] = [("description", "about"), ("syntax_example", "usage"), ("data_type", "answer")];

/// Returns the plan of the relation `name` with descriptions; `None` if it is no list of functions.
pub(super) fn described(name: &ObjectName, context: &dyn RelationPlannerContext) -> Result<Option<LogicalPlan>> {
    let parts = name.0.iter().map(|part| part.as_ident().cloned());
    let parts: Vec<String> = parts.flatten().map(|part| context.normalize_ident(part)).collect();
    let catalog = &context.context_provider().options().catalog.default_catalog;
    let list = match parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [SCHEMA, list] => list,
        [of, SCHEMA, list] if of == catalog => list,
        _ => return Ok(None),
    };
    match list {
        "routines" => routines(name, context).map(Some),
        "parameters" => parameters(name, context).map(Some),
        _ => Ok(None),
    }
}

fn routines(name: &ObjectName, context: &dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let relation = context.object_name_to_table_reference(name.clone())?;
    let source = context.context_provider().get_table_source(relation.clone())?;
    let schema = source.schema();
    let columns = schema.fields().iter().map(|field| filled(field.name()));
    let keys = (vec!["routine_name", "function_type"], vec!["named", "kind"]);
    LogicalPlanBuilder::scan(relation.clone(), source, None)?
        .join(summaries()?, JoinType::Left, keys, None)?
        .project(columns)?
        .alias(relation)?
        .build()
}

/// Returns the column `name` of `routines`, filled.
fn filled(name: &str) -> Expr {
    match FILLED.iter().find(|(column, _)| *column == name) {
        Some((_, by)) => coalesce(vec![ident(name), ident(*by)]).alias(name),
        None => ident(name),
    }
}

/// Returns `named`, `kind`, `about`, `usage` and `answer` of functions that DataFusion knows too little
/// of.
fn summaries() -> Result<LogicalPlan> {
    let tables = signatures().map(|signature| {
        let [name, about] = [signature.name, signature.summary].map(text);
        vec![name, text("TABLE"), about, text(signature.to_string()), no_text()]
    });
    let scalars = listed_functions().map(|function| {
        let [name, about] = [function.name, function.summary].map(text);
        vec![name, text("SCALAR"), about, text(function.usage), text(function.answer)]
    });
    values(tables.chain(scalars).collect(), &["named", "kind", "about", "usage", "answer"])
}

/// Returns `parameters`, and behind them those that DataFusion does not list.
fn parameters(name: &ObjectName, context: &dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let relation = context.object_name_to_table_reference(name.clone())?;
    let source = context.context_provider().get_table_source(relation.clone())?;
    let schema = source.schema();
    let catalog = &context.context_provider().options().catalog;
    let row = |function: &str, at: u64, mode: &str, name: Expr, data_type: &str, default: Expr| {
        let database = &catalog.default_catalog;
        let schema = &catalog.default_schema;
        let named = [database.as_str(), schema.as_str(), function].map(text);
        let described = [lit(at), text(mode), name, text(data_type), default, lit(false), lit(0u8)];
        named.into_iter().chain(described).collect::<Vec<Expr>>()
    };
    let mut rows = Vec::new();
    for function in listed_functions() {
        for (parameter, at) in function.parameters.iter().zip(1..) {
            let default = parameter.default.map_or_else(no_text, text);
            let name = text(parameter.name);
            let data_type = parameter.data_type;
            rows.push(row(function.name, at, "IN", name, data_type, default));
        }
        rows.push(row(function.name, 1, "OUT", no_text(), function.answer, no_text()));
    }
    for signature in signatures() {
        for (argument, at) in signature.arguments.iter().zip(1..) {
            let default = argument.default.map_or_else(no_text, text);
            rows.push(row(signature.name, at, "IN", text(argument.name), argument.kind.data_type(), default));
        }
    }
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    LogicalPlanBuilder::scan(relation.clone(), source, None)?.union(values(rows, &names)?)?.alias(relation)?.build()
}

fn text(text: impl Into<String>) -> Expr {
    lit(text.into())
}

fn no_text() -> Expr {
    lit(ScalarValue::Utf8(None))
}

/// Returns `rows` with the columns `names`.
fn values(rows: Vec<Vec<Expr>>, names: &[&str]) -> Result<LogicalPlan> {
    let named = names.iter().enumerate();
    let named = named.map(|(at, name)| col(format!("column{}", at + 1)).alias(*name));
    LogicalPlanBuilder::values(rows)?.project(named)?.build()
}
