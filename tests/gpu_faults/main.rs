//! What a scan does where a device fails: the CPU answers and the log says why, or, where a device
//! was demanded, an error that names the way out; and the session goes on.
//!
//! Each case runs in a process of its own (this binary again), since some faults last as long as
//! their process, and with a calibration that makes `auto` want a device for any text. Faults are
//! real: device memory that is full, kernels that write where nothing is. So one case runs at a time:
//! a device that one of them fills has no memory for the others.

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
use testkit::device::say;

use breakage::{Fault, break_device, fill_device};
use scene::{NUM_ROW_GROUPS, Scene, alone, alone_on_device, gpu_error};

/// The driver sees no device.
const NO_DEVICE: (&str, &str) = ("CUDA_VISIBLE_DEVICES", "-1");
/// The driver sees only the first one.
const ONE_DEVICE: (&str, &str) = ("CUDA_VISIBLE_DEVICES", "0");
const SCAN: &str = "SELECT number, text FROM t";

#[test]
fn without_a_device_the_cpu_answers_and_says_why() {
    alone("without_a_device_the_cpu_answers_and_says_why", &[NO_DEVICE], async {
        let (scene, reason) = (Scene::new(1, usize::MAX).await, num_devices().unwrap_err());
        let plan = scene.answer(&format!("EXPLAIN {SCAN}")).await;
        assert!(plan.contains(&format!("device=cpu ({reason}; ")), "{plan}");
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
        // What the device keeps between queries is given back when the limit sinks.
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
fn a_full_device_leaves_the_rows_to_the_cpu() {
    alone_on_device("a_full_device_leaves_the_rows_to_the_cpu", &[ONE_DEVICE], async {
        let scene = Scene::new(1, usize::MAX).await;
        let taken = fill_device();
        let (_, num_fallbacks) = scene.scan(SCAN).await;
        assert!(num_fallbacks > 0);
        log::assert_said("decoding on the CPU", "memory");
        drop(taken);
        // Devices that could not be opened are not asked again; others are used.
        let (num_on_device, _) = scene.scan(SCAN).await;
        assert!([0, NUM_ROW_GROUPS].contains(&num_on_device), "{num_on_device}");
    });
}

#[test]
fn a_device_lost_between_row_groups_leaves_the_rest_to_the_cpu() {
    alone_on_device(
        "a_device_lost_between_row_groups_leaves_the_rest_to_the_cpu",
        &[ONE_DEVICE],
        async {
            let scene = Scene::new(1, usize::MAX).await;
            let plan = scene.plan(SCAN).await;
            let mut rows = plan.execute(0, scene.context.task_ctx()).unwrap();
            let mut batches = vec![rows.next().await.unwrap().unwrap()];
            // Whether a row group was decoded on the device is counted before its rows go out.
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
            // Later queries know it when they are planned.
            let plan = scene.answer(&format!("EXPLAIN {SCAN}")).await;
            assert!(plan.contains("device=cpu (device 0 is lost since an earlier fault"), "{plan}");
            assert_eq!(scene.scan(SCAN).await, (0, 0));
            scene.answer("SET tadoc.device = 'gpu'").await;
            let error = scene.error(SCAN).await.to_string();
            assert!(error.contains("tadoc.device = gpu: device 0 is lost"), "{error}");
            assert!(error.contains("SET tadoc.device = 'auto'"), "{error}");
        },
    );
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
        // Enough for the stored bytes of row groups, not for what a device makes of them.
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
        // On two H200 the driver then answered for the other device, too, as if it had failed.
        let (num_on_device, _) = scene.scan(SCAN).await;
        assert!([0, NUM_ROW_GROUPS].contains(&num_on_device), "{num_on_device}");
    });
}
