//! Errors: conversion from the core to DataFusion, masking of secrets.

mod closest;
mod failure;
mod secrets;

pub use closest::shown;
pub(crate) use closest::{closest, did_you_mean, files_beside};
pub use failure::{contain_panics_of, datafusion_error};
pub(crate) use failure::{core_error, from_gsst, gsst_error, task_error};
pub use secrets::{Secrets, mask_secrets};
pub use tadoc::containment::{contain_panics, quiet_readers};
