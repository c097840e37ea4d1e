//! The codec of all plan nodes of this crate.

use std::sync::Arc;

use datafusion::common::SchemaExt;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use url::Url;

use crate::exchanges::PlainRowsExec;
use crate::files::check_no_user;
use crate::message::{self, NodeMessage, PortionsMessage, RunMessage, RunsMessage, SegmentsMessage};
use crate::scans::{Decoder, Encoder, columns_of, options, options_of, ordering_of, sorted_by};
use crate::{TravelError, refused};
use datafusion_tadoc::TadocExec;
use datafusion_tadoc::travel::{
    BatchRowsExec, JoinedLists, NullableRowsExec, PortionFacts, PortionsExec, Run, RunsExec, SegmentTarget,
    WriteSegmentsExec,
};

/// Most partitions of runs of segments.
const MAX_PARTITIONS: u32 = 1 << 16;

/// Codec of the plan nodes of this crate: scans of corpora and of living ones, their portions and runs,
/// and scans of GSST columns, and the node that writes segments of living corpora. Other nodes that write are
/// refused. Scalar functions travel by name.
///
/// A session that decodes needs [`with_tadoc`](datafusion_tadoc::TadocSessionStateBuilderExt::with_tadoc).
#[derive(Debug, Clone, Copy, Default)]
pub struct TadocCodec;

impl PhysicalExtensionCodec for TadocCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let decoder = Decoder { codec: self, converter, context };
        let node = message::open(buf)?;
        let num_inputs = inputs.len();
        match (node, inputs) {
            (NodeMessage { scan: Some(scan), .. }, []) => Ok(Arc::new(decoder.scan(*scan, &Arc::default())?)),
            (NodeMessage { runs: Some(runs), .. }, []) => Ok(Arc::new(decoder.runs(runs)?)),
            (NodeMessage { columns: Some(columns), .. }, []) => decoder.columns(&columns),
            (NodeMessage { portions: Some(portions), .. }, inputs) => Ok(Arc::new(decoder.portions(portions, inputs)?)),
            (NodeMessage { joins_lists: true, .. }, [input]) => match JoinedLists::try_new(Arc::clone(input)) {
                Ok(node) => Ok(Arc::new(node)),
                Err(error) => refused(error.strip_backtrace()),
            },
            (NodeMessage { plain_rows: true, .. }, [input]) => {
                Ok(Arc::new(PlainRowsExec::new(Arc::clone(input), None)))
            }
            (NodeMessage { nullable_rows: true, .. }, [input]) => {
                Ok(Arc::new(NullableRowsExec::try_new(Arc::clone(input))?))
            }
            (NodeMessage { segments: Some(segments), .. }, [input]) => {
                Ok(Arc::new(decoder.segments(&segments, input)?))
            }
            (NodeMessage { row_bytes: Some(row_bytes), .. }, [input]) => {
                Ok(Arc::new(BatchRowsExec { input: Arc::clone(input), row_bytes }))
            }
            _ => refused(format!("expected a node, got none for {num_inputs} inputs")),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let encoder = Encoder { codec: self, converter };
        let message = if let Some(scan) = node.downcast_ref::<TadocExec>() {
            NodeMessage { scan: Some(Box::new(encoder.scan(scan)?)), ..NodeMessage::default() }
        } else if let Some(runs) = node.downcast_ref::<RunsExec>() {
            NodeMessage { runs: Some(encoder.runs(runs)?), ..NodeMessage::default() }
        } else if let Some(portions) = node.downcast_ref::<PortionsExec>() {
            NodeMessage { portions: Some(encoder.portions(portions)?), ..NodeMessage::default() }
        } else if node.is::<JoinedLists>() {
            NodeMessage { joins_lists: true, ..NodeMessage::default() }
        } else if node.is::<PlainRowsExec>() {
            NodeMessage { plain_rows: true, ..NodeMessage::default() }
        } else if node.is::<NullableRowsExec>() {
            NodeMessage { nullable_rows: true, ..NodeMessage::default() }
        } else if let Some(node) = node.downcast_ref::<BatchRowsExec>() {
            NodeMessage { row_bytes: Some(node.row_bytes), ..NodeMessage::default() }
        } else if let Some(write) = node.downcast_ref::<WriteSegmentsExec>() {
            let segments = encoder.segments(write.target())?;
            NodeMessage { segments: Some(segments), ..NodeMessage::default() }
        } else if let Some((config, source)) = columns_of(&node) {
            let columns = encoder.columns(config, source)?;
            NodeMessage { columns: Some(columns), ..NodeMessage::default() }
        } else {
            let what = format!("{} is no node of datafusion-tadoc that reads", node.name());
            return Err(TravelError::Stays(what).into());
        };
        message::seal(&message, buf);
        Ok(())
    }
}

impl Encoder<'_> {
    fn segments(&self, target: &SegmentTarget) -> Result<SegmentsMessage> {
        if let Ok(url) = Url::parse(&target.location) {
            check_no_user(&url, &target.location)?;
        }
        Ok(SegmentsMessage {
            location: target.location.clone(),
            schema: self.schema(&target.schema)?,
            options: options(&target.options),
        })
    }

    fn runs(&self, runs: &RunsExec) -> Result<RunsMessage> {
        let of_run = |run: &Run| {
            let Some(scan) = run.scan.downcast_ref::<TadocExec>() else {
                let what = format!("a run of {}", run.scan.name());
                return Err(TravelError::Stays(what).into());
            };
            Ok(RunMessage { scan: Some(self.scan(scan)?), first_doc_id: run.first_doc_id })
        };
        Ok(RunsMessage {
            runs: runs.runs.iter().map(of_run).collect::<Result<_>>()?,
            num_partitions: u32::try_from(runs.num_partitions()).unwrap_or(u32::MAX),
            schema: self.schema(&runs.schema())?,
            ordering: runs.ordering.clone(),
        })
    }

    fn portions(&self, portions: &PortionsExec) -> Result<PortionsMessage> {
        let facts = portions.facts();
        Ok(PortionsMessage {
            num_portions: facts.num_portions as u64,
            is_combined: facts.is_combined,
            first_doc_ids: facts.first_doc_ids.clone(),
            memory_bytes: facts.memory_bytes as u64,
            schema: self.schema(&portions.schema())?,
            ordering: ordering_of(portions),
        })
    }
}

impl Decoder<'_> {
    fn segments(&self, message: &SegmentsMessage, input: &Arc<dyn ExecutionPlan>) -> Result<WriteSegmentsExec> {
        let schema = self.schema(&message.schema)?;
        if let Err(error) = schema.logically_equivalent_names_and_types(&input.schema()) {
            return refused(format!("columns of segments: {}", error.strip_backtrace()));
        }
        let options = options_of(&message.options)?;
        let target = SegmentTarget { location: message.location.clone(), schema, options };
        Ok(WriteSegmentsExec::new(Arc::clone(input), target))
    }

    fn runs(&self, message: RunsMessage) -> Result<RunsExec> {
        let schema = self.schema(&message.schema)?;
        if !(1..=MAX_PARTITIONS).contains(&message.num_partitions) {
            let got = message.num_partitions;
            return refused(format!("expected 1 to {MAX_PARTITIONS} partitions, got {got}"));
        }
        let found = Arc::default();
        let of_run = |run: RunMessage| {
            let Some(scan) = run.scan else { return refused("a run without a scan") };
            let scan = self.scan(scan, &found)?;
            let (got, expected) = (scan.schema(), schema.fields().len());
            if got.fields().len() != expected {
                return refused(format!("expected {expected} columns of a run, got {got}"));
            }
            Ok(Run { scan: Arc::new(scan), first_doc_id: run.first_doc_id })
        };
        let runs = message.runs.into_iter().map(of_run).collect::<Result<_>>()?;
        let num_partitions = message.num_partitions as usize;
        Ok(RunsExec::new(runs, num_partitions, Arc::clone(&schema), &message.ordering))
    }

    fn portions(&self, message: PortionsMessage, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<PortionsExec> {
        let schema = self.schema(&message.schema)?;
        let ordering = sorted_by(&message.ordering, &schema)?;
        let facts = PortionFacts {
            num_portions: message.num_portions as usize,
            is_combined: message.is_combined,
            first_doc_ids: message.first_doc_ids,
            memory_bytes: message.memory_bytes as usize,
        };
        PortionsExec::from_facts(facts, inputs.to_vec(), schema, ordering)
    }
}
