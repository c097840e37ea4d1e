//! Bounds on the depth of types: in `arrow_cast(x, 'List(List(…))')`, and in the schemas of files.
//!
//! Arrow's parser of types recurses once for each parenthesis, and whoever shows, compares or drops such a type
//! does so, too. A text of 20,000 levels overflows the stack, which ends the process. So functions of the same
//! names stand before those of DataFusion, and refuse deep texts. Schemas of Parquet files are refused where they
//! are read; those of Arrow files have at most 64 levels by their format. Cost: one look at the text for each call
//! in a statement, one walk over each schema. Limit: the reader of Parquet's footers recurses by itself before.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::functions::core::{arrow_cast, arrow_try_cast};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::scalar::ScalarValue;

/// Most levels of a type in a text.
const MAX_LEVELS: usize = 64;
/// Most levels of a type in a file.
const MAX_LEVELS_OF_FILES: usize = 256;

/// Refuses a schema with a type that is nested too deep to be worked with. Takes O(fields) time, and no stack.
///
/// ```
/// use datafusion::arrow::datatypes::{DataType, Field, Schema};
/// use datafusion_tadoc::check_type_depth;
///
/// let list = DataType::new_list(DataType::Utf8, true);
/// check_type_depth(&Schema::new(vec![Field::new("words", list, true)]))?;
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
///
/// # Errors
/// A plan error, which names the column and the bound.
pub fn check_type_depth(schema: &Schema) -> Result<()> {
    for column in schema.fields() {
        let mut open = vec![(column.data_type(), 0)];
        while let Some((kind, num_levels)) = open.pop() {
            if num_levels > MAX_LEVELS_OF_FILES {
                return plan_err!(
                    "column `{}` has a type of more than {MAX_LEVELS_OF_FILES} levels; write it flat, or as JSON \
                     in a text",
                    column.name()
                );
            }
            open.extend(inner_types(kind).into_iter().map(|inner| (inner, num_levels + 1)));
        }
    }
    Ok(())
}

/// Returns the types directly inside of a type.
pub(crate) fn inner_types(kind: &DataType) -> Vec<&DataType> {
    match kind {
        DataType::Dictionary(_, values) => vec![values],
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => vec![field.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        _ => Vec::new(),
    }
}

/// Returns `arrow_cast` and `arrow_try_cast` with the bound.
pub(crate) fn functions_of_types() -> [Arc<ScalarUDF>; 2] {
    [arrow_cast(), arrow_try_cast()].map(|inner| Arc::new(BoundedCast { inner }.into()))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BoundedCast {
    inner: Arc<ScalarUDF>,
}

impl BoundedCast {
    fn check(&self, kind: Option<&ScalarValue>) -> Result<()> {
        let text = kind.and_then(|kind| kind.try_as_str().flatten()).unwrap_or_default();
        let num_levels = text.bytes().filter(|byte| matches!(byte, b'(' | b'<' | b'[')).count();
        if num_levels > MAX_LEVELS {
            return plan_err!(
                "{}: got a type with {num_levels} parentheses, expected at most {MAX_LEVELS}",
                self.inner.name()
            );
        }
        Ok(())
    }
}

impl ScalarUDFImpl for BoundedCast {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.check(args.scalar_arguments.get(1).copied().flatten())?;
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if let Some(Expr::Literal(kind, _)) = args.get(1) {
            self.check(Some(kind))?;
        }
        self.inner.simplify(args, info)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;
    use datafusion::prelude::SessionContext;

    use super::*;

    #[test]
    fn deep_schemas_are_refused() {
        let nested = |num_levels: usize| {
            let wrap = |kind, _| DataType::Struct(vec![Field::new("a", kind, true)].into());
            let kind = (0..num_levels).fold(DataType::Int8, wrap);
            Schema::new(vec![Field::new("a", DataType::new_list(kind, true), true)])
        };
        assert!(check_type_depth(&nested(MAX_LEVELS_OF_FILES - 1)).is_ok());
        let error = check_type_depth(&nested(MAX_LEVELS_OF_FILES)).unwrap_err().to_string();
        assert!(error.contains("column `a` has a type of more than 256 levels"), "{error}");
    }

    #[tokio::test]
    async fn deep_types_are_refused_before_they_are_parsed() {
        let context = SessionContext::new();
        crate::register_all(&context).unwrap();
        for (open, close) in [("List(", ")"), ("Dictionary(Int8, ", ")"), ("Struct(\"a\": ", ")")] {
            let kind = format!("{}Int8{}", open.repeat(300_000), close.repeat(300_000));
            for function in ["arrow_cast", "arrow_try_cast"] {
                let sql = format!("SELECT {function}(1, '{kind}')");
                let error = context.sql(&sql).await.unwrap_err().to_string();
                assert!(error.contains("expected at most 64"), "{open}: {error}");
            }
        }
        let sql = "SELECT arrow_typeof(arrow_cast([1], 'List(Int8)')), arrow_try_cast('x', 'Int8')";
        let rows = context.sql(sql).await.unwrap().to_string().await.unwrap();
        assert!(rows.contains("List(Int8)"), "{rows}");
    }
}
