//! The operator `||` of texts as a function, so that its memory can be charged as that of all functions.
//!
//! The function computes what the operator does: NULL where a side is NULL.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr as PhysicalBinary, Column};
use datafusion::scalar::ScalarValue;

/// Returns `expr` over `schema` with calls of [`JoinedTexts`] in the place of `||` between texts.
pub(super) fn joined_texts(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right })
            if is_text(&left, schema) && is_text(&right, schema) =>
        {
            let func = Arc::new(ScalarUDF::from(JoinedTexts::new()));
            let call = ScalarFunction { func, args: vec![*left, *right] };
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        other => Ok(Transformed::no(other)),
    })
}

fn is_text(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|kind| kind.is_string())
}

/// The operator `||` of texts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct JoinedTexts {
    signature: Signature,
}

impl JoinedTexts {
    /// Creates the function.
    pub(crate) fn new() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

/// Returns the operator over two columns of a batch.
fn operator() -> PhysicalBinary {
    let column = |name, at| Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>;
    PhysicalBinary::new(column("left", 0), Operator::StringConcat, column("right", 1))
}

fn schema(left: &DataType, right: &DataType) -> Schema {
    let field = |name, kind: &DataType| Field::new(name, kind.clone(), true);
    Schema::new(vec![field("left", left), field("right", right)])
}

impl ScalarUDFImpl for JoinedTexts {
    fn name(&self) -> &str {
        "||"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(names.join(" || "))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [left, right] => operator().data_type(&schema(left, right)),
            other => exec_err!("||: got {} arguments, expected two", other.len()),
        }
    }

    fn return_field_from_args(&self, args: datafusion::logical_expr::ReturnFieldArgs) -> Result<FieldRef> {
        let kinds: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&kinds)?, is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let num_rows = if is_one { 1 } else { args.number_rows };
        let columns: Vec<ArrayRef> = args.args.iter().map(|value| value.to_array(num_rows)).collect::<Result<_>>()?;
        let [left, right] = columns.as_slice() else {
            return exec_err!("||: got {} arguments, expected two", columns.len());
        };
        let schema = Arc::new(schema(left.data_type(), right.data_type()));
        let joined = operator().evaluate(&RecordBatch::try_new(schema, columns)?)?;
        match joined {
            ColumnarValue::Array(array) if is_one => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
            joined => Ok(joined),
        }
    }
}
