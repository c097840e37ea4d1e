//! Adds documents to a living corpus: a part, and one commit.

use std::sync::{Arc, Mutex, PoisonError};

use tadoc::Error;
use tadoc_store::{Change, CommitKind, PartWriter};

use super::Arguments;
use super::job::Job;
use crate::failure::{Failure, Outcome};
use crate::inputs::Input;
use crate::interrupt;
use crate::living::Living;
use crate::output::note;

/// Adds the documents of `inputs` to the living corpus in one commit, and prints a summary.
pub fn append(mut job: Job, inputs: Vec<Input>, arguments: &Arguments) -> Outcome {
    interrupt::ask_first();
    let living = Living::open_or_create(&arguments.output, arguments.tokenizer)?;
    let say = |text: String| {
        if !arguments.quiet {
            note(text);
        }
    };
    let name = living.store.location();
    job.options.profile = living.store.profile();
    let (base, ingest) = (living.version(None)?, job.options);
    let outcome = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&outcome);
    let file = name.clone();
    let write = move |out: &mut PartWriter| {
        let written = job.write(&inputs, out, &file).map(|(_, done)| done);
        let footer = match &written {
            Ok(done) if done.report.footer.num_docs() > 0 => Ok(done.report.footer.clone()),
            // Any error ends the file. The real reason is in `kept`.
            _ => Err(Error::Cancelled),
        };
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
        footer
    };
    let written = living.store.write_part(write);
    let written = living.wait(async { Ok(written.await) })?;
    let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (part, done) = match (written, outcome) {
        (Ok(part), Some(Ok(done))) => (part, done),
        (Err(Error::Cancelled), Some(Ok(done))) => {
            say(format!("{name}: nothing to add\n{}", done.times()));
            return Ok(());
        }
        (Err(Error::Cancelled), Some(Err(failure))) => return Err(failure),
        (Err(error), _) => return Err(error.into()),
        (Ok(_), _) => return Err(Failure::new("the builder broke down")),
    };
    if interrupt::is_asked() {
        return Err(Failure::interrupted());
    }
    let change = Change::append(CommitKind::Append, &[part]);
    let version = living.wait(living.store.commit(&base, &change))?;
    say(done.summary(&format!("{name}: version {}", version.number)));
    if let Some(done) = living.recompress(&version, arguments.recompress_ratio, ingest) {
        say(done);
    }
    Ok(())
}
