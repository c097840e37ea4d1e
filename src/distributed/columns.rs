//! Scans of GSST columns and their message.
//!
//! The files and the projection travel in DataFusion's own message of a scan of files, which says nothing
//! of e-tags. So the versions of the files travel beside it, and a worker refuses other ones. It chooses
//! between its cores and its devices itself.

use std::sync::Arc;

use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::PhysicalPlanDecodeContext;
use datafusion_proto::physical_plan::from_proto::{parse_protobuf_file_scan_config, parse_table_schema_from_proto};
use datafusion_proto::physical_plan::to_proto::serialize_file_scan_config;
use datafusion_proto::protobuf;
use prost::Message;

use crate::files::{NamedFiles, check_no_user, message_of_parts};
use crate::message::{ColumnsMessage, FactsMessage, FileMessage};
use crate::refused;
use crate::scans::{Decoder, Encoder, options, options_of};
use datafusion_tadoc::GsstSource;
use datafusion_tadoc::travel::{ColumnFacts, FileFacts};

/// Returns the scan of GSST columns that `node` is, if it is one.
pub(super) fn columns_of(node: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &GsstSource)> {
    let exec = node.downcast_ref::<DataSourceExec>()?;
    let config = exec.data_source().downcast_ref::<FileScanConfig>()?;
    Some((config, config.file_source().downcast_ref::<GsstSource>()?))
}

/// Returns the message of a file of the scan `config`.
fn version(config: &FileScanConfig, file: &PartitionedFile) -> Result<FileMessage> {
    let (store_url, meta) = (&config.object_store_url, &file.object_meta);
    let path = format!("{}{}", store_url.as_str().trim_start_matches("file://"), meta.location);
    message_of_parts(path, store_url, meta)
}

fn message_of_facts(facts: &ColumnFacts) -> FactsMessage {
    FactsMessage {
        text_len_bytes: facts.text_len_bytes,
        num_nulls: facts.num_nulls,
        stored_len_bytes: facts.stored_len_bytes,
        twelve_len_bytes: facts.twelve_len_bytes,
        unknown_len_bytes: facts.unknown_len_bytes,
    }
}

fn facts_of_message(message: &FactsMessage) -> ColumnFacts {
    ColumnFacts {
        text_len_bytes: message.text_len_bytes,
        stored_len_bytes: message.stored_len_bytes,
        twelve_len_bytes: message.twelve_len_bytes,
        unknown_len_bytes: message.unknown_len_bytes,
        num_nulls: message.num_nulls,
    }
}

impl Encoder<'_> {
    /// Returns the message of a scan of GSST columns.
    ///
    /// # Errors
    /// An error if the files or an expression cannot travel.
    pub(super) fn columns(&self, config: &FileScanConfig, source: &GsstSource) -> Result<ColumnsMessage> {
        check_no_user(config.object_store_url.as_ref(), config.object_store_url.as_str())?;
        let (filter, facts, settings) = source.parts();
        let files = serialize_file_scan_config(config, self.codec, self.converter)?;
        let of_scan = config.file_groups.iter().flat_map(|group| group.iter());
        let mut versions = of_scan.map(|file| version(config, file)).collect::<Result<Vec<_>>>()?;
        // A file that is cut into ranges is named by each of them.
        versions.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        versions.dedup();
        Ok(ColumnsMessage {
            config: files.encode_to_vec(),
            filter: filter.map(|filter| self.expr(filter)).transpose()?,
            options: options(settings),
            facts: facts.columns.iter().map(message_of_facts).collect(),
            num_rows: facts.num_rows,
            num_row_groups: facts.num_row_groups,
            files: versions,
        })
    }
}

impl Decoder<'_> {
    /// Returns the scan of GSST columns of a message.
    ///
    /// # Errors
    /// An error if the message is not that of such a scan.
    pub(super) fn columns(&self, message: &ColumnsMessage) -> Result<Arc<dyn ExecutionPlan>> {
        let config = protobuf::FileScanExecConf::decode(message.config.as_slice());
        let config = config.or_else(|error| refused(format!("expected files: {error}")))?;
        let table_schema = parse_table_schema_from_proto(&config)?;
        let filter = message.filter.as_ref();
        let filter = filter.map(|filter| self.expr(filter, table_schema.table_schema()));
        let facts = FileFacts {
            columns: message.facts.iter().map(facts_of_message).collect(),
            num_rows: message.num_rows,
            num_row_groups: message.num_row_groups,
        };
        let options = options_of(&message.options)?;
        let (filter, planned) = (filter.transpose()?, NamedFiles::new(&message.files));
        let url = config.object_store_url.as_str();
        let source = GsstSource::from_parts(table_schema, url, filter, facts, options, Arc::new(planned), self.context);
        let context = PhysicalPlanDecodeContext::new(self.context, self.codec);
        let source = Arc::new(source);
        let config = parse_protobuf_file_scan_config(&config, &context, self.converter, source)?;
        Ok(DataSourceExec::from_data_source(config))
    }
}
