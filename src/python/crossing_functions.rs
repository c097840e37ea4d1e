//! Table functions, scalar functions and external tables, as another DataFusion calls them.
//!
//! Each of them has the session of this library. A call of a table function becomes a plan of that
//! session, and its rows are those of a [`Crossing`]. Scalar functions get the settings of that
//! session.
//!
//! DataFusion's interface makes columns of the constants in a call of a scalar function. An argument
//! with the same value in all rows becomes a constant again here, because the location of a
//! corpus must be one. No call lets a panic out: it would end the process of the host.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::new_empty_array;
use arrow::datatypes::{DataType, FieldRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider, TableProviderFactory};
use datafusion::common::{TableReference, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, CreateExternalTable, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};
use datafusion::scalar::ScalarValue;
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::table_provider::{FFI_TableProvider, ForeignTableProvider};
use datafusion_tadoc::{contain_panics, contain_panics_of};
use tadoc_session::Failure;

use crate::crossing::{Crossing, crossing_error, no_threads};
use crate::waiting::runtime;

/// Runs `call` and makes an error of a panic.
fn contained<T>(name: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    match contain_panics(name, call) {
        Ok(outcome) => outcome,
        Err(panic) => Err(crossing_error(Failure::from(panic))),
    }
}

/// Returns the rows of `table`, which belongs to `session`.
fn crossing_of(session: &Arc<tadoc_session::Session>, name: &str, table: Arc<dyn TableProvider>) -> Result<Crossing> {
    let name = TableReference::bare(name);
    let plan = LogicalPlanBuilder::scan(name, provider_as_source(table), None)?.build()?;
    Crossing::new(Arc::clone(session), plan)
}

/// A table function of a session.
pub struct CrossingFunction {
    session: Arc<tadoc_session::Session>,
    name: String,
    codec: FFI_LogicalExtensionCodec,
}

impl CrossingFunction {
    /// Creates the function `name` of `session` for the host with `codec`.
    pub fn new(session: Arc<tadoc_session::Session>, name: String, codec: FFI_LogicalExtensionCodec) -> Self {
        Self { session, name, codec }
    }

    fn table(&self, args: &TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let state = self.session.context().state();
        let Some(function) = state.table_functions().get(&self.name) else {
            return plan_err!("there is no table function {}", self.name);
        };
        let args = TableFunctionArgs::new(args.exprs(), &state);
        let table = function.create_table_provider_with_args(args)?;
        let table = crossing_of(&self.session, &self.name, table)?;
        // DataFusion's interface lets no filters through to tables of functions, unless they are in
        // its form for the host already.
        let runtime = runtime().map_err(|_| no_threads())?.handle().clone();
        let codec = self.codec.clone();
        let table = FFI_TableProvider::new_with_ffi_codec(Arc::new(table), true, Some(runtime), codec);
        Ok(Arc::new(ForeignTableProvider(table)))
    }
}

impl std::fmt::Debug for CrossingFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrossingFunction").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TableFunctionImpl for CrossingFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        contained(&self.name, || self.table(&args))
    }
}

/// The tables `STORED AS` a file type of a session.
pub struct CrossingFactory {
    session: Arc<tadoc_session::Session>,
    file_type: String,
}

impl CrossingFactory {
    /// Creates the factory of tables of `file_type`, which is in capitals.
    pub fn new(session: Arc<tadoc_session::Session>, file_type: String) -> Self {
        Self { session, file_type }
    }
}

impl std::fmt::Debug for CrossingFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrossingFactory").field("file_type", &self.file_type).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProviderFactory for CrossingFactory {
    async fn create(&self, _session: &dyn Session, command: &CreateExternalTable) -> Result<Arc<dyn TableProvider>> {
        let (session, command) = (Arc::clone(&self.session), command.clone());
        let file_type = self.file_type.clone();
        let create = async move {
            let state = session.context().state();
            let Some(factory) = state.table_factories().get(&file_type) else {
                return plan_err!("there are no tables STORED AS {file_type}");
            };
            let table = factory.create(&state, &command).await?;
            Ok(Arc::new(crossing_of(&session, command.name.table(), table)?) as _)
        };
        // The host's threads have nothing that this library waits for files with.
        let runtime = runtime().map_err(|_| no_threads())?;
        let contained = runtime.spawn(contain_panics_of("CREATE EXTERNAL TABLE", create));
        match contained.await {
            Ok(outcome) => outcome.and_then(|outcome| outcome),
            Err(error) => Err(DataFusionError::Execution(error.to_string())),
        }
    }
}

/// A scalar function of a session.
pub struct CrossingScalar {
    session: Arc<tadoc_session::Session>,
    function: Arc<ScalarUDF>,
}

impl CrossingScalar {
    /// Creates the function of `session` as another session calls it.
    pub fn wrap(session: Arc<tadoc_session::Session>, function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { session, function }))
    }

    fn answer(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if args.number_rows == 0 {
            return Ok(ColumnarValue::Array(new_empty_array(args.return_field.data_type())));
        }
        args.config_options = Arc::clone(self.session.context().copied_config().options());
        for value in &mut args.args {
            if let ColumnarValue::Array(column) = value
                && let Some(constant) = constant_of(column)?
            {
                *value = ColumnarValue::Scalar(constant);
            }
        }
        self.function.invoke_with_args(args)
    }
}

/// Returns the value that all rows of `column` have.
fn constant_of(column: &arrow::array::ArrayRef) -> Result<Option<ScalarValue>> {
    let first = ScalarValue::try_from_array(column, 0)?;
    for row in 1..column.len() {
        if !first.eq_array(column, row)? {
            return Ok(None);
        }
    }
    Ok(Some(first))
}

impl std::fmt::Debug for CrossingScalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrossingScalar").field("name", &self.function.name()).finish_non_exhaustive()
    }
}

impl PartialEq for CrossingScalar {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.session, &other.session) && self.function == other.function
    }
}

impl Eq for CrossingScalar {}

impl Hash for CrossingScalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

impl ScalarUDFImpl for CrossingScalar {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        contained(self.name(), || self.function.return_type(arguments))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        contained(self.name(), || self.function.return_field_from_args(args))
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        contained(self.name(), || self.function.coerce_types(arguments))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        contained(self.name(), || self.answer(args))
    }
}
