//! Reading of footers of corpus files from a store: one request, or two if the footer is large.

use datafusion::error::Result;
use object_store::ObjectStore;

use crate::corpora::location::{SourceFile, read_range};
use crate::errors::datafusion_error;
use tadoc::Error;
use tadoc::format::{FileFooter, FooterOutcome, OpenLimits};

/// Reads the footer of `file` with one request, or two if the footer is large.
pub(super) async fn read_footer(store: &dyn ObjectStore, limits: &OpenLimits, file: &SourceFile) -> Result<FileFooter> {
    let len = file.meta.size;
    let mut tail_len = FileFooter::TAIL_BYTES.min(len);
    loop {
        let tail = read_range(store, file, len - tail_len..len).await?;
        let outcome = FileFooter::parse(&file.path, &tail, len, limits).map_err(datafusion_error)?;
        match outcome {
            FooterOutcome::Footer(footer) => return Ok(footer),
            FooterOutcome::NeedsTail(needed) if needed > tail_len && needed <= len => {
                tail_len = needed;
            }
            FooterOutcome::NeedsTail(needed) => {
                let reason = format!("expected a footer inside the file, it asks for {needed} bytes");
                return Err(datafusion_error(Error::Format {
                    file: file.path.clone(),
                    section: "footer",
                    offset: len,
                    reason,
                }));
            }
        }
    }
}
