//! A session: DataFusion with all table functions, limits of memory and safe mode, perhaps on another engine; and the
//! threads that plan and run its statements.
//!
//! `CALL name('a', option => 'b')` runs a [`Procedure`]: what a program has besides SQL, such as a sync of a folder. It
//! runs once, while its statement is planned, and its answer is one row of numbers. It may read files and write a
//! corpus, so safe mode refuses it. A session without procedures leaves `CALL` to DataFusion.

use std::sync::Arc;

use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{ExplainFormat, LogicalPlan, LogicalPlanBuilder, col, lit};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value};
use datafusion_tadoc::safety::Sandbox;
use datafusion_tadoc::{DeviceSession, charge_calls, with_stores};
use tokio::runtime::Runtime;

use crate::failure::{self, Failure, Outcome};
use crate::memory::ResidentPool;
use crate::parameters::Prepared;
use crate::{interrupt, memory};

/// Makes `COPY` to Parquet end a row group at an eighth of `limit`, as the default is a million
/// rows.
fn limit_row_groups(config: &mut ConfigOptions, limit: u64) -> Outcome {
    if config.execution.parquet.max_row_group_bytes.is_none() {
        let bytes = (limit / 8).max(1).to_string();
        config.set("datafusion.execution.parquet.max_row_group_bytes", &bytes)?;
        // Only the writer that has all columns measures the bytes of a row group.
        config.execution.parquet.allow_single_file_parallelism = false;
    }
    Ok(())
}

/// Returns `runtime` with the limit of memory and the places of `sandbox`, and the pool of the memory.
pub fn limited(
    mut runtime: RuntimeEnvBuilder,
    memory_limit: Option<u64>,
    sandbox: Option<&Sandbox>,
) -> (RuntimeEnvBuilder, Option<Arc<ResidentPool>>) {
    if let Some(sandbox) = sandbox {
        runtime = sandbox.guard(runtime);
    }
    let Some(limit) = memory_limit else { return (runtime, None) };
    memory::keep_little(limit);
    let pool = ResidentPool::new(usize::try_from(limit).unwrap_or(usize::MAX));
    (runtime.with_memory_pool(Arc::clone(&pool) as _), Some(pool))
}

/// Returns the sandbox of queries over `places`. Secrets of the environment are masked from now on.
///
/// # Errors
/// A place does not exist, or it is no valid URL.
pub fn sandbox_over(places: &[String], allows_private: bool) -> Outcome<Sandbox> {
    failure::remember_environment();
    let allow = |sandbox: Sandbox, place: &String| sandbox.allow(place);
    let sandbox = places.iter().try_fold(Sandbox::default(), allow)?;
    Ok(if allows_private { sandbox.allow_private() } else { sandbox })
}

/// An engine that runs the statements of a session, such as workers on other machines.
pub trait Engine: Send + Sync {
    /// Makes the statements of `context`, which has all table functions, run on the engine.
    ///
    /// # Errors
    /// The engine does not take the session.
    fn register(&self, context: &SessionContext) -> Result<()>;
}

/// A DataFusion session with all table functions.
pub struct Session {
    context: SessionContext,
    /// Memory pool, if memory is limited.
    pub(crate) memory: Option<Arc<ResidentPool>>,
    /// Places and statements that are allowed, in safe mode.
    pub(crate) sandbox: Option<Sandbox>,
    /// Prepared statements that DataFusion cannot plan before they have values.
    pub(crate) prepared: Prepared,
    engine: Option<Box<dyn Engine>>,
    /// Procedures that statements may call.
    pub(crate) procedures: &'static [Procedure],
}

impl Session {
    /// Creates a session with at most `memory_limit` bytes of memory for the process, in safe mode if there is a
    /// `sandbox`. Call [`prepare`](Self::prepare) before its first statement.
    ///
    /// # Errors
    /// The environment has settings that are not valid.
    pub fn new(memory_limit: Option<u64>, sandbox: Option<Sandbox>) -> Outcome<Self> {
        let mut config = ConfigOptions::from_env()?;
        if std::env::var_os("DATAFUSION_EXPLAIN_FORMAT").is_none() {
            config.explain.format = ExplainFormat::Indent;
        }
        if std::env::var_os("DATAFUSION_FORMAT_NULL").is_none() {
            config.format.null = "NULL".to_owned();
        }
        if std::env::var_os("DATAFUSION_CATALOG_NEWLINES_IN_VALUES").is_none() {
            // A value of several lines may lie on the border of two parts of a file of CSV.
            config.catalog.newlines_in_values = true;
        }
        let runtime = with_stores(RuntimeEnvBuilder::new());
        let (runtime, memory) = limited(runtime, memory_limit, sandbox.as_ref());
        if let Some(limit) = memory_limit {
            limit_row_groups(&mut config, limit)?;
        }
        let config = SessionConfig::from(config).with_information_schema(true);
        let context = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
        let context = context.enable_url_table();
        let prepared = Prepared::default();
        Ok(Self { context, memory, sandbox, prepared, engine: None, procedures: &[] })
    }

    /// Creates a session that a program asks, with at most `memory_limit` bytes of memory for the
    /// process, and with `settings`, each a name and a value as in `SET name = 'value'`.
    ///
    /// # Errors
    /// There is no such setting, or it does not take the value.
    pub async fn for_program(memory_limit: Option<u64>, settings: &[(String, String)]) -> Outcome<Self> {
        let session = Self::new(memory_limit, None)?;
        session.prepare().await?;
        let state = session.context.state_ref();
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        settings.iter().try_for_each(|(name, value)| options.set(name, value))?;
        drop(state);
        Ok(session)
    }

    /// Creates a session of statements that are not trusted, with at most `memory_limit` bytes of
    /// memory for the process.
    ///
    /// # Errors
    /// The environment has settings that are not valid.
    pub async fn for_strangers(memory_limit: Option<u64>, sandbox: Sandbox) -> Outcome<Self> {
        let session = Self::new(memory_limit, Some(sandbox))?;
        session.prepare().await?;
        Ok(session)
    }

    /// Lets statements run on `engine`, if there is one. Call it before [`prepare`](Self::prepare).
    pub fn on_engine(self, engine: Option<Box<dyn Engine>>) -> Self {
        Self { engine, ..self }
    }

    /// Lets statements call `procedures`.
    pub fn with_procedures(self, procedures: &'static [Procedure]) -> Self {
        Self { procedures, ..self }
    }

    /// Registers catalogs and table functions.
    ///
    /// # Errors
    /// A catalog cannot be read.
    pub async fn prepare(&self) -> Outcome {
        let context = &self.context;
        context.refresh_catalogs().await?;
        datafusion_tadoc::register_all(context)?;
        if self.memory.is_some() {
            let pool = Arc::clone(&context.runtime_env().memory_pool);
            charge_calls(context, &pool)?;
        }
        if let Some(engine) = &self.engine {
            engine.register(context)?;
        }
        interrupt::remember(self.devices());
        Ok(())
    }

    /// Returns DataFusion's session.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Returns the places and statements that are allowed, in safe mode.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// Returns the devices of the session.
    pub fn devices(&self) -> Arc<DeviceSession> {
        DeviceSession::from_config(self.context.state_ref().read().config())
    }

    /// Returns true if statements run on another engine, which sets up their plans itself.
    pub(crate) fn has_engine(&self) -> bool {
        self.engine.is_some()
    }
}

/// Bytes of stack of each thread that plans or runs statements.
///
/// A statement of the maximum depth, `tadoc.max_statement_depth` = 4,000, takes 27 KB per level in
/// a build without optimizations. Unused stack takes no memory.
pub const STACK_BYTES: usize = 128 << 20;

/// Creates the runtime that queries run on.
pub fn runtime() -> Outcome<Runtime> {
    build(&mut tokio::runtime::Builder::new_multi_thread())
}

/// Creates a runtime with `num_threads` threads, and with at most `num_blocking` more for work that
/// blocks.
pub fn runtime_of(num_threads: usize, num_blocking: usize) -> Outcome<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    build(builder.worker_threads(num_threads).max_blocking_threads(num_blocking))
}

fn build(builder: &mut tokio::runtime::Builder) -> Outcome<Runtime> {
    let runtime = builder.enable_all().thread_stack_size(STACK_BYTES).build();
    runtime.map_err(|error| Failure::with_cause("starting threads", &error))
}

/// The row that a procedure returns: names and counts.
pub type ProcedureRow = Vec<(&'static str, u64)>;

/// A procedure of a program.
pub struct Procedure {
    /// Its name in SQL.
    pub name: &'static str,
    /// A call of it, for messages.
    pub usage: &'static str,
    /// Runs it on a thread that may block. The answer has the names and values of the columns.
    pub run: fn(&[CallArgument]) -> Outcome<ProcedureRow>,
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallArgument {
    /// Its name, if it is given by name.
    pub name: Option<String>,
    /// Its value.
    pub value: CallValue,
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallValue {
    /// A text, or a number as it is written.
    Text(String),
    /// `true` or `false`.
    Truth(bool),
}

/// Runs that of `procedures` that `function` calls, and returns the plan of its row.
///
/// # Errors
/// There is no such procedure, an argument is no literal, and the errors of the procedure.
pub(crate) async fn call(procedures: &'static [Procedure], function: &Function) -> Outcome<LogicalPlan> {
    let name = function.name.to_string();
    let Some(procedure) = procedures.iter().find(|other| other.name.eq_ignore_ascii_case(&name)) else {
        let known: Vec<&str> = procedures.iter().map(|procedure| procedure.usage).collect();
        return Err(Failure::new(format!("there is no procedure {name}; there is {}", known.join(", "))));
    };
    let arguments = arguments_of(function).ok_or_else(|| {
        Failure::usage(format!("CALL {name}: expected texts, numbers, true and false, as in {}", procedure.usage))
    })?;
    let run = procedure.run;
    let row = tokio::task::spawn_blocking(move || run(&arguments)).await;
    let row = row.map_err(|_| Failure::new(format!("CALL {name} broke down")))??;
    Ok(plan_of_row(&row)?)
}

/// Returns the arguments of a call; `None` if one is no literal.
fn arguments_of(function: &Function) -> Option<Vec<CallArgument>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let argument = |argument: &FunctionArg| {
        let (name, value) = match argument {
            FunctionArg::Named { name, arg, .. } => (Some(name.value.clone()), arg),
            FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => (Some(name.value.clone()), arg),
            FunctionArg::ExprNamed { .. } => return None,
            FunctionArg::Unnamed(arg) => (None, arg),
        };
        let FunctionArgExpr::Expr(Expr::Value(value)) = value else { return None };
        let value = match &value.value {
            Value::SingleQuotedString(text) | Value::Number(text, _) => CallValue::Text(text.clone()),
            Value::Boolean(is_true) => CallValue::Truth(*is_true),
            _ => return None,
        };
        Some(CallArgument { name, value })
    };
    list.args.iter().map(argument).collect()
}

fn plan_of_row(row: &[(&str, u64)]) -> Result<LogicalPlan> {
    let values = row.iter().map(|(_, value)| lit(*value)).collect();
    let names = (1..).zip(row).map(|(number, (name, _))| col(format!("column{number}")).alias(*name));
    LogicalPlanBuilder::values(vec![values])?.project(names)?.build()
}
