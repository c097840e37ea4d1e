//! A scan and its message.
//!
//! A function travels as its name and arguments, as EXPLAIN shows them. [`for_call`] binds them again and
//! compares both functions before the message leaves. So a function whose arguments do not say
//! everything does not travel as another one.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::config::ExtensionOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf;
use prost::Message;

use super::files::{Found, check_no_user, message_of, message_of_open};
use super::message::{
    DemandMessage, LivingMessage, OrderMessage, PairMessage, PatternMessage, ScanMessage,
    SourceKind, SourceMessage, StageMessage, SynonymsMessage, TextsMessage,
};
use super::travelled::{Sorted, Travelled, TravelledExec};
use super::{TravelError, refused};
use crate::errors::mask_secrets;
use crate::functions::bound_again;
use crate::options::TadocOptions;
use crate::scan::filter::{Stage, project_schema};
use crate::scan::function::TableFunction;
use crate::scan::{Compared, TadocExec, Texts};
use crate::source::Source;
use tadoc::analytics::Share;
use tadoc::query::TextPattern;
use tadoc::text::Synonyms;
use tadoc_store::Version;
use url::Url;

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
        let (function, scan) = exec.parts();
        let synonyms = scan.synonyms.as_deref();
        let Call { arguments, synonyms, texts } =
            for_call(function, &scan.location, synonyms, &scan.schema)?;
        let ordering = exec.properties().output_ordering().into_iter().flatten();
        let ordering = ordering.map_while(|sorted| {
            let column = sorted.expr.downcast_ref::<Column>()?.name().to_owned();
            let options = sorted.options;
            let (descends, nulls_first) = (options.descending, options.nulls_first);
            Some(OrderMessage { column, descends, nulls_first })
        });
        let optional = |stage: &Option<Stage>| stage.as_ref().map(|s| self.stage(s)).transpose();
        Ok(ScanMessage {
            function: function.signature().name.to_owned(),
            arguments,
            synonyms,
            texts,
            location: mask_secrets(&scan.location),
            source: Some(source(&scan.source)?),
            schema: self.schema(&scan.schema)?,
            projection: scan.projection.iter().map(|&column| column as u32).collect(),
            columns_stage: optional(&scan.columns_stage)?,
            dynamic_stages: scan
                .dynamic_stages
                .iter()
                .map(|s| self.stage(s))
                .collect::<Result<_>>()?,
            text_stage: optional(&scan.text_stage)?,
            demands: scan.demands.iter().map(|patterns| demand(patterns)).collect(),
            limit: scan.limit.map(|limit| limit as u64),
            options: options(&scan.options),
            num_partitions: u32::try_from(scan.num_partitions).unwrap_or(u32::MAX),
            ordering: ordering.collect(),
            num_rows: exec.num_rows().get_value().map(|&rows| rows as u64),
            is_num_rows_exact: matches!(exec.num_rows(), Precision::Exact(_)),
            share: scan.share.place(),
            num_shares: scan.share.num_shares(),
        })
    }
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
        let of_stage: SchemaRef = Arc::new(schema.project(&columns)?);
        let expr = self.expr(&message.expr, &of_stage)?;
        Ok(Stage::from_parts(columns, message.shown.clone(), of_stage, expr))
    }

    /// Returns the node of a scan that arrived.
    ///
    /// # Errors
    /// An error if the message is not that of a scan.
    pub(super) fn scan(&self, message: ScanMessage, found: &Arc<Found>) -> Result<TravelledExec> {
        let schema = self.schema(&message.schema)?;
        let function = bound_again(
            &message.function,
            &shown(&message.arguments),
            &message.location,
            synonyms_of(message.synonyms.as_ref()),
            &schema,
        )?;
        let function = with_texts_of(message.texts.as_ref(), function)?;
        if function.schema() != schema {
            let (got, name) = (&schema, &message.function);
            return refused(format!("expected the columns of {name}, got {got}"));
        }
        let projection: Vec<usize> = message.projection.iter().map(|&at| at as usize).collect();
        let output = project_schema(&schema, &projection)?;
        let stage = |stage: &Option<StageMessage>| {
            stage.as_ref().map(|stage| self.stage(&schema, stage)).transpose()
        };
        let dynamic = message.dynamic_stages.iter().map(|stage| self.stage(&schema, stage));
        let Some(source) = message.source else { return refused("a scan without files") };
        if !(1..=MAX_PARTITIONS).contains(&message.num_partitions) {
            let got = message.num_partitions;
            return refused(format!("expected 1 to {MAX_PARTITIONS} partitions, got {got}"));
        }
        let (place, num_shares) = (message.share, message.num_shares);
        let Some(share) = Share::new(place, num_shares) else {
            return refused(format!("expected a share below {num_shares}, got {place}"));
        };
        let num_rows = match (message.num_rows, message.is_num_rows_exact) {
            (Some(rows), true) => Precision::Exact(rows as usize),
            (Some(rows), false) => Precision::Inexact(rows as usize),
            (None, _) => Precision::Absent,
        };
        let ordering = message.ordering.into_iter().map(|sorted| Sorted {
            column: sorted.column,
            descending: sorted.descends,
            nulls_first: sorted.nulls_first,
        });
        let travelled = Travelled {
            columns_stage: stage(&message.columns_stage)?,
            text_stage: stage(&message.text_stage)?,
            dynamic_stages: dynamic.collect::<Result<_>>()?,
            function,
            location: mask_secrets(&message.location),
            source,
            found: Arc::clone(found),
            schema,
            projection,
            demands: message.demands.into_iter().map(patterns).collect(),
            limit: message.limit.map(|limit| limit as usize),
            options: options_of(&message.options)?,
            num_partitions: message.num_partitions as usize,
            share,
        };
        TravelledExec::try_new(travelled, output, &ordering.collect::<Vec<_>>(), num_rows)
    }
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

/// The call of a function as a message says it.
pub(super) struct Call {
    pub(super) arguments: Vec<PairMessage>,
    pub(super) synonyms: Option<SynonymsMessage>,
    pub(super) texts: Option<TextsMessage>,
}

/// Returns the call of `function`, which has `location` as its first argument.
///
/// # Errors
/// An error if the arguments do not give the same function.
pub(super) fn for_call(
    function: &Arc<dyn TableFunction>,
    location: &str,
    synonyms: Option<&Synonyms>,
    schema: &Schema,
) -> Result<Call> {
    let pair = |(name, value): (&str, String)| PairMessage { name: name.to_owned(), value };
    let arguments: Vec<PairMessage> = function.arguments().into_iter().map(pair).collect();
    let synonyms = synonyms.map(|synonyms| {
        let row = |(word, meaning): (&str, &str)| pair((word, meaning.to_owned()));
        let rows = synonyms.rows().map(row).collect();
        SynonymsMessage { name: synonyms.name().to_owned(), rows }
    });
    let (name, location) = (function.signature().name, mask_secrets(location));
    let again =
        bound_again(name, &shown(&arguments), &location, synonyms_of(synonyms.as_ref()), schema)?;
    let (again, texts) = match function.compared() {
        Some(Compared::Read(texts)) => {
            let rows = texts.iter().map(|(text, id)| PairMessage { name: id, value: text.into() });
            let message = TextsMessage { rows: rows.collect() };
            (again.with_texts(Arc::clone(texts))?, Some(message))
        }
        _ => (again, None),
    };
    if format!("{again:?}") != format!("{function:?}") {
        let shown = text_of(&arguments);
        let what = format!("the call of {name} is more than its arguments ({shown})");
        return Err(TravelError::Stays(what).into());
    }
    Ok(Call { arguments, synonyms, texts })
}

/// Returns `function` with the texts of a message, if there are any.
///
/// # Errors
/// An error for a function that compares none.
pub(super) fn with_texts_of(
    texts: Option<&TextsMessage>,
    function: Arc<dyn TableFunction>,
) -> Result<Arc<dyn TableFunction>> {
    match (texts, function.compared()) {
        (None, _) => Ok(function),
        (Some(texts), Some(_)) => {
            let rows = texts.rows.iter().map(|row| (row.name.as_str(), row.value.as_str()));
            function.with_texts(Arc::new(Texts::from_rows(rows)))
        }
        (Some(_), None) => refused("texts for a function that compares none"),
    }
}

fn text_of(arguments: &[PairMessage]) -> String {
    let shown: Vec<String> =
        arguments.iter().map(|pair| format!("{} => {}", pair.name, pair.value)).collect();
    shown.join(", ")
}

/// Returns arguments as [`bound_again`] takes them.
pub(super) fn shown(pairs: &[PairMessage]) -> Vec<(&str, &str)> {
    pairs.iter().map(|pair| (pair.name.as_str(), pair.value.as_str())).collect()
}

/// Returns the synonyms of a message: the name of their table and their rows.
pub(super) fn synonyms_of(
    synonyms: Option<&SynonymsMessage>,
) -> Option<(String, Vec<(String, String)>)> {
    let row = |row: &PairMessage| (row.name.clone(), row.value.clone());
    synonyms.map(|synonyms| (synonyms.name.clone(), synonyms.rows.iter().map(row).collect()))
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
    let pair = |entry: datafusion::config::ConfigEntry| {
        Some(PairMessage { name: entry.key, value: entry.value? })
    };
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
            let living = living(&view.url, &view.version)?;
            SourceMessage { living: Some(living), ..message(SourceKind::Living) }
        }
        Source::Unchecked(found, version) => {
            let living = living(&found.location.url(), version)?;
            SourceMessage { living: Some(living), ..message(SourceKind::Unchecked) }
        }
    })
}

/// Returns the message of a version of the living corpus at `url`.
///
/// # Errors
/// An error if the URL has a user.
pub(super) fn living(url: &str, version: &Version) -> Result<LivingMessage> {
    if let Ok(parsed) = Url::parse(url) {
        check_no_user(&parsed, url)?;
    }
    let (number, commit) = (version.number, version.commit_id.to_string());
    Ok(LivingMessage { location: url.to_owned(), number, commit })
}
