//! The function `ingestion_model(link_gb_per_s)`: the rate at which text arrives over a link with
//! each codec.
//!
//! The rows are those of [`throughput::rows`](crate::throughput::codecs). They come from published
//! measurements and from this machine's calibration, which `tadoc calibrate` measures. Stores from
//! which the session has read GSST columns have rows of their own, at the rate and the ratio that it
//! has observed. Nothing else is read.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, StringViewArray};
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Prepared, Reads, TableFunction};
use crate::planning::signature::{self, ArgumentKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use crate::throughput::{Calibration, Row, add_observed, rows};

/// The function `ingestion_model` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "ingestion_model",
        arguments: &[signature::required(
            "link_gb_per_s",
            ArgumentKind::Number,
            "speed of the link that stored bytes come over, in GB/s",
        )],
        columns: &[
            signature::text("codec", "codec, with device and text of its measurement"),
            signature::text("regime", "serial, overlapped, to_host, resident or cpu"),
            signature::number("ratio", "text : stored bytes"),
            signature::number("decode_gb_per_s", "text decoded per second; NULL where nothing is decoded").nullable(),
            signature::number("predicted_gb_per_s", "text that arrives per second"),
            signature::text("binding_stage", "the stage that works longest"),
        ],
        summary: "how fast text arrives with each codec, fastest first in each regime",
    },
    bind: |arguments, _| Arc::new(IngestionModel::new(arguments.number("link_gb_per_s").unwrap_or_default())),
};

#[derive(Debug)]
pub(crate) struct IngestionModel {
    link_gb_per_s: f64,
}

impl IngestionModel {
    pub(crate) fn new(link_gb_per_s: f64) -> Self {
        Self { link_gb_per_s }
    }
}

impl TableFunction for IngestionModel {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn reads(&self) -> Reads {
        Reads::Nothing
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        if self.link_gb_per_s > 0.0 {
            Ok(Prepared::default())
        } else {
            Err(self.signature().error("link_gb_per_s: got 0, expected a number above 0"))
        }
    }

    fn run(self: Arc<Self>, mut run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let calibration = Calibration::load().map_err(datafusion_error)?;
            let mut rows = rows(self.link_gb_per_s, &calibration).map_err(datafusion_error)?;
            let stores = run.plan.devices.stores().all();
            add_observed(&mut rows, &stores, &calibration).map_err(datafusion_error)?;
            run.send_async(rows.len(), |name| column(name, &rows)).await.map(drop)
        }
        .boxed()
    }
}

fn column(name: &str, rows: &[Row]) -> Result<ArrayRef> {
    let text =
        |of: fn(&Row) -> String| -> ArrayRef { Arc::new(StringViewArray::from_iter_values(rows.iter().map(of))) };
    let number = |of: fn(&Row) -> Option<f64>| -> ArrayRef { Arc::new(Float64Array::from_iter(rows.iter().map(of))) };
    Ok(match name {
        "codec" => text(|row| row.codec.clone()),
        "regime" => text(|row| row.regime.to_string()),
        "ratio" => number(|row| Some(row.ratio)),
        "decode_gb_per_s" => number(|row| row.decode_gb_per_s),
        "predicted_gb_per_s" => number(|row| Some(row.predicted_gb_per_s)),
        "binding_stage" => text(|row| row.binding.to_string()),
        other => return no_column(other),
    })
}
