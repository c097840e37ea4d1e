//! Scans and their messages: of functions, and of GSST columns.
//!
//! A function travels as its name and arguments, as EXPLAIN shows them. [`call`] binds them again and
//! compares both functions before the message leaves. So a function whose arguments do not say
//! everything does not travel as another one.
//!
//! The files and the projection of a scan of columns travel in DataFusion's own message of a scan of files,
//! which says nothing of e-tags. So the versions of the files travel beside it, and a worker refuses other
//! ones. It chooses between its cores and its devices itself.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::config::ExtensionOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::{Column, col};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion_proto::physical_plan::from_proto::{parse_protobuf_file_scan_config, parse_table_schema_from_proto};
use datafusion_proto::physical_plan::to_proto::serialize_file_scan_config;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf;
use prost::Message;
use url::Url;

use crate::arrived::TravelledExec;
use crate::files::{Found, NamedFiles, check_no_user, message_of, message_of_open, message_of_parts};
use crate::message::{
    CallMessage, ColumnsMessage, DemandMessage, FactsMessage, FileMessage, LivingMessage, OrderMessage, PairMessage,
    ParcelsMessage, PartMessage, PatternMessage, ScanMessage, SourceKind, SourceMessage, StageMessage, SynonymsMessage,
    TextsMessage,
};
use crate::{TravelError, refused};
use datafusion_tadoc::travel::{
    BoundFunction, ColumnFacts, FileFacts, Filters, Narrowed, Parcels, ScanSpec, Source, Stage, Texts, bound_again,
};
use datafusion_tadoc::{GsstSource, TadocExec, TadocOptions, mask_secrets};
use tadoc::query::TextPattern;
use tadoc::text::Synonyms;
use tadoc_store::Version;

/// Most partitions of a scan.
const MAX_PARTITIONS: u32 = 1 << 16;

/// Writer of the parts of a message that are DataFusion's own.
pub(super) struct Encoder<'a> {
    pub(super) codec: &'a dyn PhysicalExtensionCodec,
    pub(super) converter: &'a dyn PhysicalProtoConverterExtension,
}

/// Reader of the parts of a message that are DataFusion's own.
pub(super) struct Decoder<'a> {
    pub(super) codec: &'a dyn PhysicalExtensionCodec,
    pub(super) converter: &'a dyn PhysicalProtoConverterExtension,
    pub(super) context: &'a TaskContext,
}

impl Encoder<'_> {
    pub(super) fn expr(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Vec<u8>> {
        Ok(self.converter.physical_expr_to_proto(expr, self.codec)?.encode_to_vec())
    }

    pub(super) fn schema(&self, schema: &Schema) -> Result<Vec<u8>> {
        schema_bytes(schema)
    }

    fn stage(&self, stage: &Stage) -> Result<StageMessage> {
        let columns = stage.columns.iter().map(|&column| column as u32).collect();
        Ok(StageMessage { columns, shown: stage.shown.clone(), expr: self.expr(stage.expr())? })
    }

    /// Returns the message of a scan.
    ///
    /// # Errors
    /// An error if the scan cannot travel.
    pub(super) fn scan(&self, exec: &TadocExec) -> Result<ScanMessage> {
        let num_partitions = exec.properties().output_partitioning().partition_count();
        Ok(ScanMessage {
            num_partitions: u32::try_from(num_partitions).unwrap_or(u32::MAX),
            ordering: ordering_of(exec),
            num_rows: exec.num_rows().get_value().map(|&rows| rows as u64),
            is_num_rows_exact: matches!(exec.num_rows(), Precision::Exact(_)),
            ..self.spec(exec.spec())?
        })
    }

    /// Returns the message of `spec`, in one partition.
    ///
    /// # Errors
    /// An error if the scan cannot travel.
    pub(super) fn spec(&self, spec: &ScanSpec) -> Result<ScanMessage> {
        let call =
            call(&spec.function, &mask_secrets(&spec.location), spec.synonyms.as_deref(), spec.texts.as_deref())?;
        let optional = |stage: &Option<Stage>| stage.as_ref().map(|s| self.stage(s)).transpose();
        let Filters { columns, dynamic, text, demands } = &spec.filters;
        Ok(ScanMessage {
            call: Some(call),
            source: Some(source(&spec.source)?),
            schema: self.schema(&spec.schema)?,
            projection: spec.projection.iter().map(|&column| column as u32).collect(),
            columns_stage: optional(columns)?,
            dynamic_stages: dynamic.iter().map(|s| self.stage(s)).collect::<Result<_>>()?,
            text_stage: optional(text)?,
            demands: demands.iter().map(|patterns| demand(patterns)).collect(),
            limit: spec.limit.map(|limit| limit as u64),
            options: options(&spec.options),
            parcels: spec.parcels.as_deref().map(parcels_message),
            num_partitions: 1,
            ordering: Vec::new(),
            num_rows: None,
            is_num_rows_exact: false,
            numbered_by: spec.numbered_by.as_ref().map(source).transpose()?,
        })
    }
}

/// Returns the order of each partition of `node`, as far as it is one of columns.
pub(super) fn ordering_of(node: &dyn ExecutionPlan) -> Vec<OrderMessage> {
    let ordering = node.properties().output_ordering().into_iter().flatten();
    let ordering = ordering.map_while(|sorted| {
        let column = sorted.expr.downcast_ref::<Column>()?.name().to_owned();
        let SortOptions { descending: descends, nulls_first } = sorted.options;
        Some(OrderMessage { column, descends, nulls_first })
    });
    ordering.collect()
}

/// Returns the order that a message says, over columns of `schema`.
///
/// # Errors
/// An error if `schema` has no such column.
pub(super) fn sorted_by(ordering: &[OrderMessage], schema: &Schema) -> Result<Vec<PhysicalSortExpr>> {
    let sorted = ordering.iter().map(|one| {
        let options = SortOptions { descending: one.descends, nulls_first: one.nulls_first };
        Ok(PhysicalSortExpr::new(col(&one.column, schema)?, options))
    });
    sorted.collect()
}

impl Decoder<'_> {
    pub(super) fn expr(&self, bytes: &[u8], schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
        let expr = protobuf::PhysicalExprNode::decode(bytes);
        let expr = expr.or_else(|error| refused(format!("expected an expression: {error}")))?;
        let context = PhysicalPlanDecodeContext::new(self.context, self.codec);
        self.converter.proto_to_physical_expr(&expr, schema, &context)
    }

    pub(super) fn schema(&self, bytes: &[u8]) -> Result<SchemaRef> {
        schema_of(bytes)
    }

    fn stage(&self, schema: &SchemaRef, message: &StageMessage) -> Result<Stage> {
        let columns: Vec<usize> = message.columns.iter().map(|&column| column as usize).collect();
        if !columns.is_sorted_by(|one, other| one < other) {
            return refused(format!("expected ascending columns of a filter, got {columns:?}"));
        }
        let stage_schema: SchemaRef = Arc::new(schema.project(&columns)?);
        let expr = self.expr(&message.expr, &stage_schema)?;
        Ok(Stage::from_parts(columns, message.shown.clone(), stage_schema, expr))
    }

    /// Returns the node of a scan that arrived.
    ///
    /// # Errors
    /// An error if the message is not that of a scan.
    pub(super) fn scan(&self, message: ScanMessage, found: &Arc<Found>) -> Result<TravelledExec> {
        if !(1..=MAX_PARTITIONS).contains(&message.num_partitions) {
            let got = message.num_partitions;
            return refused(format!("expected 1 to {MAX_PARTITIONS} partitions, got {got}"));
        }
        let num_rows = match (message.num_rows, message.is_num_rows_exact) {
            (Some(rows), true) => Precision::Exact(rows as usize),
            (Some(rows), false) => Precision::Inexact(rows as usize),
            (None, _) => Precision::Absent,
        };
        let num_partitions = message.num_partitions as usize;
        let ordering = message.ordering.clone();
        let spec = self.spec(message)?;
        let ordering = sorted_by(&ordering, &*spec.projected_schema()?)?;
        TravelledExec::try_new(spec, Arc::clone(found), num_partitions, ordering, num_rows)
    }

    /// Returns the scan of a message, whose files are still to be opened.
    ///
    /// # Errors
    /// An error if the message is not that of a scan.
    pub(super) fn spec(&self, message: ScanMessage) -> Result<ScanSpec<SourceMessage>> {
        let schema = self.schema(&message.schema)?;
        let Some(call) = &message.call else { return refused("a scan without a function") };
        let function = bound_call(call, &schema)?;
        let parcels = message.parcels.as_ref().map(|parcels| Arc::new(parcels_from(parcels)));
        let expected = if parcels.is_some() { Parcels::schema() } else { function.columns().schema };
        if expected != schema {
            let got = &schema;
            let name = &call.function;
            return refused(format!("expected the columns of {name}, got {got}"));
        }
        let stage = |stage: &Option<StageMessage>| stage.as_ref().map(|stage| self.stage(&schema, stage)).transpose();
        let dynamic = message.dynamic_stages.iter().map(|stage| self.stage(&schema, stage));
        let filters = Filters {
            columns: stage(&message.columns_stage)?,
            dynamic: dynamic.collect::<Result<_>>()?,
            text: stage(&message.text_stage)?,
            demands: message.demands.into_iter().map(patterns).collect(),
        };
        let Some(source) = message.source else { return refused("a scan without files") };
        let num_files = source.files.len();
        if let Some(parcels) = parcels.as_ref().filter(|parcels| parcels.first_doc_ids.len() != num_files) {
            let got = parcels.first_doc_ids.len();
            return refused(format!("expected the first documents of {num_files} files, got {got}"));
        }
        Ok(ScanSpec {
            function,
            location: mask_secrets(&call.location),
            source,
            schema,
            projection: message.projection.iter().map(|&at| at as usize).collect(),
            filters,
            limit: message.limit.map(|limit| limit as usize),
            options: options_of(&message.options)?,
            parcels,
            numbered_by: message.numbered_by,
            // The function has them.
            synonyms: None,
            texts: texts_of(call),
        })
    }
}

fn parcels_message(parcels: &Parcels) -> ParcelsMessage {
    let Parcels { num_parcels, ref first_doc_ids, has_lists } = *parcels;
    ParcelsMessage { num_parcels, first_doc_ids: first_doc_ids.clone(), has_lists }
}

fn parcels_from(message: &ParcelsMessage) -> Parcels {
    let ParcelsMessage { num_parcels, ref first_doc_ids, has_lists } = *message;
    Parcels { num_parcels, first_doc_ids: first_doc_ids.clone(), has_lists }
}

/// Returns the message of a schema.
///
/// # Errors
/// An error for a type that DataFusion has no message of.
pub(super) fn schema_bytes(schema: &Schema) -> Result<Vec<u8>> {
    Ok(protobuf::Schema::try_from(schema)?.encode_to_vec())
}

/// Returns the schema of a message.
///
/// # Errors
/// An error if the bytes are none.
pub(super) fn schema_of(bytes: &[u8]) -> Result<SchemaRef> {
    let schema = protobuf::Schema::decode(bytes);
    let schema = schema.or_else(|error| refused(format!("expected a schema: {error}")))?;
    let schema = Schema::try_from(&schema);
    Ok(Arc::new(schema.map_err(DataFusionError::from)?))
}

/// Returns the call of `function`, which has `location` as its first argument.
///
/// # Errors
/// An error if the arguments do not give the same function.
pub(super) fn call(
    function: &BoundFunction,
    location: &str,
    synonyms: Option<&Synonyms>,
    texts: Option<&Texts>,
) -> Result<CallMessage> {
    let pair = |(name, value): (&str, String)| PairMessage { name: name.to_owned(), value };
    let synonyms = synonyms.map(|synonyms| {
        let row = |(word, meaning): (&str, &str)| pair((word, meaning.to_owned()));
        let rows = synonyms.rows().map(row).collect();
        SynonymsMessage { name: synonyms.name().to_owned(), rows }
    });
    let texts = texts.map(|texts| {
        let rows = texts.iter().map(|(text, id)| PairMessage { name: id, value: text.into() });
        TextsMessage { rows: rows.collect() }
    });
    let call = CallMessage {
        function: function.signature().name.to_owned(),
        arguments: function.arguments().into_iter().map(pair).collect(),
        synonyms,
        location: location.to_owned(),
        texts,
    };
    let again =
        bound_call(&CallMessage { location: mask_secrets(location), ..call.clone() }, &function.columns().schema)?;
    if format!("{again:?}") != format!("{function:?}") {
        let name = &call.function;
        let shown = text_of(&call.arguments);
        let what = format!("the call of {name} is more than its arguments ({shown})");
        return Err(TravelError::Stays(what).into());
    }
    Ok(call)
}

/// Returns the function of a call, which has the columns of `schema`.
///
/// # Errors
/// A plan error if there is no such function, or if it has other arguments.
pub(super) fn bound_call(call: &CallMessage, schema: &Schema) -> Result<BoundFunction> {
    let pairs = call.arguments.iter().map(|pair| (pair.name.as_str(), pair.value.as_str()));
    let synonyms = synonyms_of(call);
    bound_again(&call.function, &pairs.collect::<Vec<_>>(), &call.location, synonyms, schema)
}

/// Returns the texts that the function of a call compares with a corpus, if there are any.
pub(super) fn texts_of(call: &CallMessage) -> Option<Arc<Texts>> {
    let texts = call.texts.as_ref()?;
    let rows = texts.rows.iter().map(|row| (row.name.as_str(), row.value.as_str()));
    Some(Arc::new(Texts::from_rows(rows)))
}

fn text_of(arguments: &[PairMessage]) -> String {
    let shown: Vec<String> = arguments.iter().map(|pair| format!("{} => {}", pair.name, pair.value)).collect();
    shown.join(", ")
}

/// Returns the synonyms of a call: the name of their table and their rows.
pub(super) fn synonyms_of(call: &CallMessage) -> Option<(String, Vec<(String, String)>)> {
    let row = |row: &PairMessage| (row.name.clone(), row.value.clone());
    let synonyms = call.synonyms.as_ref()?;
    Some((synonyms.name.clone(), synonyms.rows.iter().map(row).collect()))
}

fn demand(patterns: &[TextPattern]) -> DemandMessage {
    let pattern = |pattern: &TextPattern| PatternMessage {
        fragments: pattern.fragments.clone(),
        exact_len_bytes: pattern.exact_len_bytes,
        is_any_case: pattern.is_any_case,
    };
    DemandMessage { patterns: patterns.iter().map(pattern).collect() }
}

fn patterns(demand: DemandMessage) -> Vec<TextPattern> {
    let pattern = |pattern: PatternMessage| TextPattern {
        fragments: pattern.fragments,
        exact_len_bytes: pattern.exact_len_bytes,
        is_any_case: pattern.is_any_case,
    };
    demand.patterns.into_iter().map(pattern).collect()
}

/// Returns the settings `options`.
pub(super) fn options(options: &TadocOptions) -> Vec<PairMessage> {
    let pair = |entry: datafusion::config::ConfigEntry| Some(PairMessage { name: entry.key, value: entry.value? });
    options.entries().into_iter().filter_map(pair).collect()
}

/// Returns the settings of a message.
///
/// # Errors
/// A configuration error that names an unknown key or a refused value.
pub(super) fn options_of(pairs: &[PairMessage]) -> Result<TadocOptions> {
    let mut options = TadocOptions::default();
    for pair in pairs {
        options.set(&pair.name, &pair.value)?;
    }
    Ok(options)
}

fn source(source: &Source) -> Result<SourceMessage> {
    let message = |kind: SourceKind| SourceMessage { kind: kind.into(), ..Default::default() };
    Ok(match source {
        Source::Corpora(files) => {
            let files = files.iter().map(message_of_open).collect::<Result<_>>()?;
            SourceMessage { files, ..message(SourceKind::Corpora) }
        }
        Source::Files(files) => {
            let files = files.iter().map(message_of).collect::<Result<_>>()?;
            SourceMessage { files, ..message(SourceKind::Files) }
        }
        Source::Living(view) => {
            let part = view.narrowed.as_ref();
            let is_of_files = part.is_some_and(|part| part.is_of_files);
            let whole = if is_of_files {
                let files = view.files().iter().map(message_of_open).collect::<Result<_>>()?;
                SourceMessage { files, ..message(SourceKind::Corpora) }
            } else {
                let living = living(&view.url, &view.version)?;
                SourceMessage { living: Some(living), ..message(SourceKind::Living) }
            };
            SourceMessage { part: part.map(message_of_part), ..whole }
        }
        Source::Unchecked(found, version) => {
            let living = living(&found.url(), version)?;
            SourceMessage { living: Some(living), ..message(SourceKind::Unchecked) }
        }
    })
}

fn message_of_part(part: &Narrowed) -> PartMessage {
    let (starts, ends) = part.kept.iter().map(|ids| (ids.start, ids.end)).unzip();
    PartMessage { condition: part.condition.clone(), starts, ends }
}

/// Returns the message of a version of the living corpus at `url`.
///
/// # Errors
/// An error if the URL has a user.
pub(super) fn living(url: &str, version: &Version) -> Result<LivingMessage> {
    if let Ok(parsed) = Url::parse(url) {
        check_no_user(&parsed, url)?;
    }
    let number = version.number;
    let commit = version.commit_id.to_string();
    Ok(LivingMessage { location: url.to_owned(), number, commit })
}

/// Returns the scan of GSST columns that `node` is, if it is one.
pub(super) fn columns_of(node: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &GsstSource)> {
    let exec = node.downcast_ref::<DataSourceExec>()?;
    let config = exec.data_source().downcast_ref::<FileScanConfig>()?;
    Some((config, config.file_source().downcast_ref::<GsstSource>()?))
}

/// Returns the message of a file of the scan `config`.
fn version(config: &FileScanConfig, file: &PartitionedFile) -> Result<FileMessage> {
    let store_url = &config.object_store_url;
    let meta = &file.object_meta;
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
        let scan_files = config.file_groups.iter().flat_map(|group| group.iter());
        let mut versions = scan_files.map(|file| version(config, file)).collect::<Result<Vec<_>>>()?;
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
        let filter = filter.transpose()?;
        let planned = NamedFiles::new(&message.files);
        let url = config.object_store_url.as_str();
        let source = GsstSource::from_parts(table_schema, url, filter, facts, options, Arc::new(planned), self.context);
        let context = PhysicalPlanDecodeContext::new(self.context, self.codec);
        let source = Arc::new(source);
        let config = parse_protobuf_file_scan_config(&config, &context, self.converter, source)?;
        Ok(DataSourceExec::from_data_source(config))
    }
}
