//! Codecs of the three processes: messages of `datafusion-tadoc` first, then Ballista's own.
//!
//! A message of `datafusion-tadoc` begins with its magic, one of a scan that Ballista divides with
//! [`SLICED`], behind which its leaf follows. Everything else is Ballista's.
//!
//! Scans of text and Parquet files travel as DataFusion's own. An executor's codec gets them as the input of one of
//! Ballista's nodes, and makes them read files as one process does: CSV with its quotation marks checked, decimals of
//! JSON exactly, and rows in the order that is declared. Ballista's readers of shuffles fetch rows in threads, and take
//! the end of a thread for the end of its rows: so a thread that panics is made an error there, too.

use std::sync::Arc;

use ballista_core::execution_plans::ShuffleReaderExec;
use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Extension, LogicalPlan};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use datafusion_tadoc::travel::NameParquetFiles;
use datafusion_tadoc_distributed::{TadocCodec, TadocLogicalCodec, TravelError, is_message, watched};

use crate::sliced::{SlicedExec, SlicedTable};

/// Beginning of the message of a scan that is divided.
const SLICED: &[u8] = b"TADOCSL1";

/// Codec of logical plans, from a client to the scheduler.
#[derive(Debug, Default)]
pub struct LogicalCodec(BallistaLogicalExtensionCodec);

/// Codec of physical plans, from the scheduler to executors.
#[derive(Debug, Default)]
pub struct PhysicalCodec {
    ballista: BallistaPhysicalExtensionCodec,
    runs_here: bool,
}

impl PhysicalCodec {
    /// Returns the codec of an executor. Plans run where it decodes them.
    pub fn for_executor() -> Self {
        Self { runs_here: true, ..Self::default() }
    }
}

/// Encodes by `ours`, or by `theirs` if the first one has no message for it. Returns the first one's error
/// if none has.
fn encoded(
    buf: &mut Vec<u8>,
    ours: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    theirs: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let begin = buf.len();
    let Err(error) = ours(buf) else { return Ok(()) };
    if !matches!(TravelError::from_error(&error), Some(TravelError::Stays(_))) {
        return Err(error);
    }
    buf.truncate(begin);
    theirs(buf).map_err(|_| error)
}

impl LogicalExtensionCodec for LogicalCodec {
    fn try_decode(&self, buf: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Result<Extension> {
        if is_message(buf) {
            TadocLogicalCodec.try_decode(buf, inputs, context)
        } else {
            self.0.try_decode(buf, inputs, context)
        }
    }

    fn try_encode(&self, node: &Extension, buf: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode(node, buf)
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        if is_message(buf) {
            let table = TadocLogicalCodec.try_decode_table_provider(buf, name, schema, context);
            Ok(Arc::new(SlicedTable(table?)))
        } else {
            self.0.try_decode_table_provider(buf, name, schema, context)
        }
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        let same = Arc::clone(&table);
        encoded(
            buf,
            |buf| TadocLogicalCodec.try_encode_table_provider(name, same, buf),
            |buf| self.0.try_encode_table_provider(name, table, buf),
        )
    }

    fn try_decode_file_format(&self, buf: &[u8], context: &TaskContext) -> Result<Arc<dyn FileFormatFactory>> {
        self.0.try_decode_file_format(buf, context)
    }

    fn try_encode_file_format(&self, buf: &mut Vec<u8>, format: Arc<dyn FileFormatFactory>) -> Result<()> {
        self.0.try_encode_file_format(buf, format)
    }
}

impl PhysicalExtensionCodec for PhysicalCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let (Some(leaf), [numbers]) = (buf.strip_prefix(SLICED), inputs) {
            let leaf = TadocCodec.try_decode(leaf, &[], context, converter)?;
            return Ok(Arc::new(SlicedExec::try_new(leaf, Arc::clone(numbers))?));
        }
        if is_message(buf) {
            return TadocCodec.try_decode(buf, inputs, context, converter);
        }
        if !self.runs_here {
            return self.ballista.try_decode(buf, inputs, context, converter);
        }
        let config = context.session_config().options();
        let inputs = inputs.iter().map(|input| {
            let input = NameParquetFiles.optimize(Arc::clone(input), config)?;
            // The executor looks for these, to tell them where files are.
            Ok(if input.is::<ShuffleReaderExec>() { input } else { watched(input) })
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        self.ballista.try_decode(buf, &inputs, context, converter)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(sliced) = node.downcast_ref::<SlicedExec>() {
            buf.extend_from_slice(SLICED);
            return TadocCodec.try_encode(Arc::clone(&sliced.leaf), buf, converter);
        }
        let same = Arc::clone(&node);
        encoded(
            buf,
            |buf| TadocCodec.try_encode(same, buf, converter),
            |buf| self.ballista.try_encode(node, buf, converter),
        )
    }
}
