//! Tests of scans on a device that fails. The CPU answers and the log says why; if a device was
//! demanded, an error names the way out. The session continues.
//!
//! Each case runs in a process of its own (this binary again), because some faults last as long as
//! their process. The process has a calibration with which `auto` wants a device for any text.
//! Faults are real: full device memory, and kernels that write to no memory. One case runs at a
//! time, because a device that one case fills has no memory for the others.

#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod breakage;
mod log;
mod scene;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::collect;
use futures::StreamExt;
use tadoc_cuda::{GpuError, num_devices};
use testkit::say;

use breakage::{Fault, break_device, fill_device};
use scene::{NUM_ROW_GROUPS, Scene, alone, alone_on_device, gpu_error};

/// Environment in which the driver sees no device.
const NO_DEVICE: (&str, &str) = ("CUDA_VISIBLE_DEVICES", "-1");
/// Environment in which the driver sees only the first device.
const ONE_DEVICE: (&str, &str) = ("CUDA_VISIBLE_DEVICES", "0");
const SCAN: &str = "SELECT number, text FROM t";

#[test]
fn without_a_device_the_cpu_answers_and_says_why() {
    alone("without_a_device_the_cpu_answers_and_says_why", &[NO_DEVICE], async {
        let scene = Scene::new(1, usize::MAX).await;
        let reason = num_devices().unwrap_err();
        let plan = scene.answer(&format!("EXPLAIN {SCAN}")).await;
        assert!(plan.contains(&format!("device=cpu: {reason}; ")), "{plan}");
        assert_eq!(scene.scan(SCAN).await, (0, 0));
        scene.answer("SET tadoc.device = 'gpu'").await;
        let error = scene.error(SCAN).await;
        let expected = format!("tadoc.device = gpu: {reason}; SET tadoc.device = 'auto'");
        assert!(error.to_string().contains(&expected), "{error}");
        scene.answer("SET tadoc.device = 'auto'").await;
        assert_eq!(scene.scan(SCAN).await, (0, 0));
    });
}

#[test]
fn little_device_memory_leaves_the_rows_to_the_cpu() {
    alone_on_device("little_device_memory_leaves_the_rows_to_the_cpu", &[ONE_DEVICE], async {
        let scene = Scene::new(1, usize::MAX).await;
        // The device gives back the memory that it keeps between queries if the limit sinks.
        for _ in 0..2 {
            scene.answer("SET tadoc.gpu_memory_bytes = '4GiB'").await;
            assert_eq!(scene.scan(SCAN).await, (NUM_ROW_GROUPS, 0));
            scene.answer("SET tadoc.gpu_memory_bytes = '4KiB'").await;
            assert_eq!(scene.scan(SCAN).await, (0, NUM_ROW_GROUPS));
        }
        log::assert_said("decoding on the CPU", "bytes of device memory");
        scene.answer("SET tadoc.device = 'gpu'").await;
        let error = scene.error(SCAN).await;
        assert!(matches!(gpu_error(&error), Some(GpuError::OutOfMemory { .. })), "{error}");
        assert!(error.to_string().contains("raise tadoc.gpu_memory_bytes"), "{error}");
        scene.answer("SET tadoc.gpu_memory_bytes = '4GiB'").await;
        assert_eq!(scene.scan(SCAN).await, (NUM_ROW_GROUPS, 0));
    });
}

#[test]
fn little_device_memory_leaves_counts_of_different_rows_to_the_cpu() {
    alone_on_device("little_device_memory_leaves_counts_of_different_rows_to_the_cpu", &[ONE_DEVICE], async {
        let scene = Scene::new(2, usize::MAX).await;
        let sql = "SELECT count(DISTINCT text) FROM t";
        let expected = scene.answer("SELECT count(DISTINCT number) AS \"count(DISTINCT t.text)\" FROM t").await;
        let top = "SELECT text, count(*) AS n FROM t GROUP BY text ORDER BY n DESC, text LIMIT 5";
        let groups = "SELECT text, count(*) AS n FROM t GROUP BY text, number ORDER BY n DESC, text LIMIT 5";
        let expected_top = scene.answer(groups).await;
        assert!(scene.answer(&format!("EXPLAIN {top}")).await.contains("TadocFrequentRowsExec"));
        assert!(scene.answer(&format!("EXPLAIN {sql}")).await.contains("TadocDistinctCountExec"));
        // Memory is enough for no chunk, for some of them, and for all.
        for memory in ["4KiB", "3MiB", "4MiB", "4GiB"] {
            scene.answer(&format!("SET tadoc.gpu_memory_bytes = '{memory}'")).await;
            assert_eq!(scene.answer(sql).await, expected, "{memory}");
            assert_eq!(scene.answer(top).await, expected_top, "{memory}");
        }
        log::assert_said("comparing rows on the CPU", "bytes of device memory");
        scene.answer("SET tadoc.device = 'gpu'").await;
        assert_eq!(scene.answer(sql).await, expected);
        scene.answer("SET tadoc.gpu_memory_bytes = '4KiB'").await;
        let error = scene.error(sql).await;
        assert!(matches!(gpu_error(&error), Some(GpuError::OutOfMemory { .. })), "{error}");
        assert!(error.to_string().contains("raise tadoc.gpu_memory_bytes"), "{error}");
        assert_eq!(scene.reserved(), 0);
    });
}

#[test]
fn a_full_device_leaves_the_rows_to_the_cpu() {
    alone_on_device("a_full_device_leaves_the_rows_to_the_cpu", &[ONE_DEVICE], async {
        let scene = Scene::new(1, usize::MAX).await;
        let taken = fill_device();
        let (_, num_fallbacks) = scene.scan(SCAN).await;
        assert!(num_fallbacks > 0);
        log::assert_said("decoding on the CPU", "memory");
        drop(taken);
        // A device that could not be opened is not tried again; an open device is used.
        let (num_on_device, _) = scene.scan(SCAN).await;
        assert!([0, NUM_ROW_GROUPS].contains(&num_on_device), "{num_on_device}");
    });
}

#[test]
fn a_device_lost_between_row_groups_leaves_the_rest_to_the_cpu() {
    alone_on_device("a_device_lost_between_row_groups_leaves_the_rest_to_the_cpu", &[ONE_DEVICE], async {
        let scene = Scene::new(1, usize::MAX).await;
        let plan = scene.plan(SCAN).await;
        let mut rows = plan.execute(0, scene.context.task_ctx()).unwrap();
        let mut batches = vec![rows.next().await.unwrap().unwrap()];
        // A row group on the device is counted before its rows are returned.
        let (num_on_device, _) = scene.counted(&plan);
        assert!(num_on_device > 0, "{}", log::all());
        break_device(0, Fault::IllegalAddress);
        while let Some(batch) = rows.next().await {
            batches.push(batch.unwrap());
        }
        scene.assert_all_rows(&batches);
        let (num_on_device, num_fallbacks) = scene.counted(&plan);
        assert!(num_fallbacks > 0, "{num_on_device} on the device");
        assert_eq!(num_on_device + num_fallbacks, NUM_ROW_GROUPS);
        log::assert_said("decoding on the CPU", "CUDA error 700");
        // The plans of later queries know the lost device.
        let plan = scene.answer(&format!("EXPLAIN {SCAN}")).await;
        assert!(plan.contains("device=cpu: device 0 is lost since an earlier fault"), "{plan}");
        assert_eq!(scene.scan(SCAN).await, (0, 0));
        scene.answer("SET tadoc.device = 'gpu'").await;
        let error = scene.error(SCAN).await.to_string();
        assert!(error.contains("tadoc.device = gpu: device 0 is lost"), "{error}");
        assert!(error.contains("SET tadoc.device = 'auto'"), "{error}");
    });
}

#[test]
fn a_demanded_device_that_is_lost_is_an_error() {
    alone_on_device("a_demanded_device_that_is_lost_is_an_error", &[ONE_DEVICE], async {
        let scene = Scene::new(1, usize::MAX).await;
        scene.answer("SET tadoc.device = 'gpu'").await;
        let plan = scene.plan(SCAN).await;
        let mut rows = plan.execute(0, scene.context.task_ctx()).unwrap();
        rows.next().await.unwrap().unwrap();
        break_device(0, Fault::Trap);
        let error = loop {
            match rows.next().await.unwrap() {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        let cause = gpu_error(&error);
        let is_fault = matches!(cause, Some(GpuError::Lost { .. } | GpuError::Driver { .. }));
        assert!(is_fault, "{error}");
        assert!(error.to_string().contains("SET tadoc.device = 'auto'"), "{error}");
        scene.answer("SET tadoc.device = 'auto'").await;
        assert_eq!(scene.scan(SCAN).await, (0, 0));
    });
}

#[test]
fn results_count_in_the_memory_pool_while_they_live() {
    alone_on_device("results_count_in_the_memory_pool_while_they_live", &[ONE_DEVICE], async {
        let scene = Scene::new(1, 1 << 30).await;
        let batches = scene.rows("SELECT text FROM t").await;
        let text_bytes = scene.text_len_bytes();
        assert!(scene.reserved() >= text_bytes, "{} of {text_bytes}", scene.reserved());
        let last = batches.last().unwrap().slice(0, 1);
        drop(batches);
        assert!((1..text_bytes).contains(&scene.reserved()), "{}", scene.reserved());
        drop(last);
        assert_eq!(scene.reserved(), 0);
    });
}

#[test]
fn little_host_memory_leaves_the_rows_to_the_cpu() {
    alone_on_device("little_host_memory_leaves_the_rows_to_the_cpu", &[ONE_DEVICE], async {
        // Memory is enough for the stored bytes of row groups, but not for the rows of a device.
        let scene = Scene::new(1, 200 << 10).await;
        let (num_on_device, num_fallbacks) = scene.scan(SCAN).await;
        assert_eq!((num_on_device, num_fallbacks), (0, NUM_ROW_GROUPS));
        log::assert_said("decoding on the CPU", "host memory for the rows of a device");
        scene.answer("SET tadoc.device = 'gpu'").await;
        let error = scene.error(SCAN).await;
        let root = error.find_root();
        assert!(matches!(root, DataFusionError::ResourcesExhausted(_)), "{error}");
        assert!(error.to_string().contains("raise the session's memory limit"), "{error}");
        assert_eq!(scene.reserved(), 0);
        scene.answer("SET tadoc.device = 'auto'").await;
        assert_eq!(scene.scan(SCAN).await, (0, NUM_ROW_GROUPS));
    });
}

#[test]
fn a_device_lost_before_corpora_are_counted_leaves_them_to_the_cpu() {
    let name = "a_device_lost_before_corpora_are_counted_leaves_them_to_the_cpu";
    alone_on_device(name, &[ONE_DEVICE], async {
        let scene = Scene::new(1, usize::MAX).await;
        let corpus = scene.corpus().await;
        let sql = format!("SELECT * FROM sequence_count('{corpus}', 2)");
        let expected = scene.answer(&sql).await;
        scene.answer("SET tadoc.device = 'gpu'").await;
        let before = scene.plan(&sql).await;
        assert_eq!(scene.answer(&sql).await, expected);
        break_device(0, Fault::IllegalAddress);
        let rows = collect(before.clone(), scene.context.task_ctx()).await.unwrap();
        assert_eq!(pretty_format_batches(&rows).unwrap().to_string(), expected);
        assert_eq!(scene.counted(&before), (0, 1));
        log::assert_said("counting on the CPU", "CUDA error 700");
        let error = scene.error(&sql).await.to_string();
        assert!(error.contains("tadoc.device = gpu: device 0 is lost"), "{error}");
        scene.answer("SET tadoc.device = 'auto'").await;
        assert_eq!(scene.answer(&sql).await, expected);
    });
}

#[test]
fn partitions_take_all_devices_in_turn() {
    if num_devices().is_ok_and(|num_devices| num_devices < 2) {
        say("skipped: there is one device");
        return;
    }
    alone_on_device("partitions_take_all_devices_in_turn", &[], async {
        let scene = Scene::new(4, usize::MAX).await;
        scene.answer("SET tadoc.device = 'gpu'").await;
        assert_eq!(scene.scan(SCAN).await, (NUM_ROW_GROUPS, 0));
        for partition in 0..4 {
            let device = partition % num_devices().unwrap();
            let used = format!("partition={partition} device={device}");
            log::assert_said("decoding on a device", &used);
        }
        break_device(0, Fault::IllegalAddress);
        scene.answer("SET tadoc.device = 'auto'").await;
        let (num_on_device, num_fallbacks) = scene.scan(SCAN).await;
        assert_eq!(num_on_device + num_fallbacks, NUM_ROW_GROUPS);
        // On two H200 the driver then reported the other device as failed, too.
        let (num_on_device, _) = scene.scan(SCAN).await;
        assert!([0, NUM_ROW_GROUPS].contains(&num_on_device), "{num_on_device}");
    });
}
