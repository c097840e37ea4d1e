//! Relation planner for calls in `FROM f(…)` that plain DataFusion refuses.
//!
//! Table functions of DataFusion have case-sensitive names and no named arguments, and `public` in
//! `public.f(…)` is taken for the name of the function. This planner handles only the functions of
//! this crate. It maps `name => value` to positions, and reports unknown, repeated and missing
//! arguments with the signature of the function. The list of functions gets descriptions ([`routines`](super::routines)).
//! All other relations pass through unchanged.

use datafusion::common::config::CatalogOptions;
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArgOperator, Ident, ObjectName, ObjectNamePart, TableFactor,
};
use datafusion::scalar::ScalarValue;

use crate::functions::{find_signature, planned_call, signatures};
use crate::planner::decimal_texts::bounded_casts;
use crate::planner::routines::described;
use crate::planning::signature::Signature;

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
            let (got, most) = (arguments.len(), signature.arguments.len());
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
    let (name, kind) = (argument.name, argument.kind);
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
            let (name, kind) = (argument.name, argument.kind);
            Err(signature.error(format!("argument {name} is missing, expected {kind}")))
        }
    };
    slots.into_iter().take(given).enumerate().map(fill).collect()
}
