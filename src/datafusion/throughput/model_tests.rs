//! Tests of the model: it is monotone, every stage bounds it, and in simple cases it equals the thesis.

use proptest::prelude::*;

use super::model::*;
use super::rates::significant;

const FREE: f64 = f64::INFINITY;

/// Number of rates in a list of rates, in which each rate can be changed alone.
const NUM_RATES: usize = 10;

fn rates_of(rate: &[f64], launch_s: f64) -> Rates {
    Rates {
        storage_gb_per_s: rate[0],
        is_storage_cached: false,
        cpu: CpuRates {
            check_gb_per_s: rate[1],
            staging_gb_per_s: rate[4],
            decode_gb_per_s: rate[2],
            matching_gb_per_s: rate[3],
        },
        device: Some(DeviceRates {
            h2d_gb_per_s: rate[5],
            d2h_gb_per_s: rate[6],
            decode_gb_per_s: rate[7],
            matching_gb_per_s: rate[8],
            memory_gb_per_s: rate[9],
            launch_s,
            startup_s: 0.1,
        }),
    }
}

prop_compose! {
    fn rate_list()(logs in prop::collection::vec(-2.0..4.0_f64, NUM_RATES)) -> Vec<f64> {
        logs.into_iter().map(|log| 10_f64.powf(log)).collect()
    }
}

prop_compose! {
    fn column()(
        text_bytes in 1..1_u64 << 40,
        row_bytes in 1..1000_u64,
        ratio in 0.5..20.0,
        sidecar_bytes_per_byte in 0.0..0.2,
    ) -> Column {
        Column { text_bytes, num_rows: text_bytes / row_bytes, ratio, sidecar_bytes_per_byte }
    }
}

prop_compose! {
    fn query()(
        selectivity in prop::option::of(0.0..=1.0),
        is_wanted_on_host: bool,
        is_in_host_memory: bool,
        num_cores in 1..100_usize,
    ) -> Query {
        Query { selectivity, is_wanted_on_host, are_rows_compared: false, is_in_host_memory, num_cores }
    }
}

fn route() -> impl Strategy<Value = Route> {
    prop::sample::select(vec![Route::Cpu, Route::Gpu, Route::GpuResident])
}

fn plan() -> impl Strategy<Value = Plan> {
    (0..1000_u64).prop_map(|num_blocks| match num_blocks {
        0 => Plan::Serial,
        _ => Plan::Overlapped { num_blocks },
    })
}

/// A query on blocks in host memory, whose decoded rows stay on the device.
const ALL_ROWS_ON_DEVICE: Query = Query {
    selectivity: None,
    is_wanted_on_host: false,
    are_rows_compared: false,
    is_in_host_memory: true,
    num_cores: 1,
};

/// Returns the seconds in which the cores work.
fn cores_s(prediction: &Prediction) -> f64 {
    let on_cores = prediction.stages.iter().filter(|time| time.stage.is_on_cores());
    on_cores.map(|time| time.seconds).sum()
}

fn is_at_most(a: f64, b: f64) -> bool {
    a <= b * (1.0 + 1e-9)
}

proptest! {
    #[test]
    fn a_faster_part_never_makes_the_whole_slower(
        list in rate_list(), launch_s in 0.0..1e-3_f64,
        which in 0..=NUM_RATES, factor in 1.0..100.0_f64,
        column in column(), query in query(), route in route(), plan in plan(),
    ) {
        let before = predict(&rates_of(&list, launch_s), &column, &query, route, plan).unwrap();
        let mut faster = list.clone();
        let mut faster_launch_s = launch_s;
        match faster.get_mut(which) {
            Some(rate) => *rate *= factor,
            None => faster_launch_s /= factor,
        }
        let rates = rates_of(&faster, faster_launch_s);
        let after = predict(&rates, &column, &query, route, plan).unwrap();
        prop_assert!(is_at_most(before.rate_gb_per_s, after.rate_gb_per_s));
    }

    #[test]
    fn more_cores_and_better_ratios_never_make_it_slower(
        list in rate_list(), column in column(), query in query(), route in route(), plan in plan(),
    ) {
        let rates = rates_of(&list, 1e-5);
        let before = predict(&rates, &column, &query, route, plan).unwrap();
        let query = Query { num_cores: query.num_cores + 1, ..query };
        let column = Column { ratio: 1.1 * column.ratio, ..column };
        let after = predict(&rates, &column, &query, route, plan).unwrap();
        prop_assert!(is_at_most(before.rate_gb_per_s, after.rate_gb_per_s));
    }

    #[test]
    fn a_part_of_the_rows_never_takes_longer_than_a_larger_one(
        list in rate_list(), column in column(), query in query(), route in route(), plan in plan(),
        few in 0.0..=1.0, many in 0.0..=1.0,
    ) {
        let rates = rates_of(&list, 1e-5);
        let seconds = |part| {
            let query = Query { selectivity: Some(part), ..query };
            predict(&rates, &column, &query, route, plan).unwrap().seconds
        };
        prop_assert!(is_at_most(seconds(f64::min(few, many)), seconds(f64::max(few, many))));
    }

    #[test]
    fn overlap_never_loses_where_launches_are_free(
        list in rate_list(), column in column(), query in query(), route in route(),
        few in 1..1000_u64, more in 0..1000_u64,
    ) {
        let rates = rates_of(&list, 0.0);
        let rate = |plan| predict(&rates, &column, &query, route, plan).unwrap().rate_gb_per_s;
        let overlapped = |num_blocks| rate(Plan::Overlapped { num_blocks });
        prop_assert!(is_at_most(rate(Plan::Serial), overlapped(few)));
        prop_assert!(is_at_most(overlapped(few), overlapped(few + more)));
    }

    #[test]
    fn no_prediction_beats_a_stage_or_comes_from_nowhere(
        list in rate_list(), launch_s in 0.0..1e-3_f64,
        column in column(), query in query(), route in route(), plan in plan(),
    ) {
        let prediction = predict(&rates_of(&list, launch_s), &column, &query, route, plan).unwrap();
        let mut sum_s = 0.0;
        for time in &prediction.stages {
            prop_assert!(is_at_most(time.seconds, prediction.seconds), "{prediction:?}");
            sum_s += time.seconds;
        }
        prop_assert!(is_at_most(prediction.seconds, sum_s), "{prediction:?}");
        if plan == Plan::Serial {
            let binding_s = prediction.seconds_of(prediction.binding);
            let others = prediction.stages.iter().filter(|time| time.stage != Stage::DeviceMemory);
            prop_assert!(others.into_iter().all(|time| time.seconds <= binding_s));
        } else {
            let cores = cores_s(&prediction);
            prop_assert!(is_at_most(cores, prediction.seconds), "{prediction:?}");
        }
        let rate = column.text_bytes as f64 / 1e9 / prediction.seconds;
        prop_assert!((rate / prediction.rate_gb_per_s - 1.0).abs() < 1e-9);
    }

    #[test]
    fn many_parts_come_down_to_the_slowest_stage(
        list in rate_list(), column in column(), query in query(), route in route(),
    ) {
        let rates = rates_of(&list, 0.0);
        let plan = Plan::Overlapped { num_blocks: 1 << 40 };
        let prediction = predict(&rates, &column, &query, route, plan).unwrap();
        let longest_s = match prediction.binding {
            stage if stage.is_on_cores() => cores_s(&prediction),
            stage => prediction.seconds_of(stage),
        };
        prop_assert!((prediction.seconds / longest_s - 1.0).abs() < 1e-6, "{prediction:?}");
    }

    #[test]
    fn the_best_number_of_parts_beats_its_neighbours(
        list in rate_list(), log_launch in -7.0..-3.0_f64, column in column(), query in query(),
    ) {
        let rates = rates_of(&list, 10_f64.powf(log_launch));
        let seconds = |num_blocks| {
            let plan = Plan::Overlapped { num_blocks };
            predict(&rates, &column, &query, Route::Gpu, plan).unwrap().seconds
        };
        let best = best_num_blocks(&rates, &column, &query, Route::Gpu, u64::MAX).unwrap();
        for other in [1, best / 2, best.saturating_mul(2), best + 1] {
            // Rounding down to a whole number of parts costs up to half if there are few parts.
            let slack = 1.0 + 1.0 / best as f64;
            prop_assert!(seconds(best) <= slack * seconds(other.max(1)), "{best} against {other}");
        }
        prop_assert!(best_num_blocks(&rates, &column, &query, Route::Gpu, 3).unwrap() <= 3);
    }

    #[test]
    fn two_stages_are_the_equations_of_the_thesis(
        ratio in 0.5..20.0, link in 0.01..1000.0_f64, decode in 0.01..4000.0_f64,
        num_blocks in 1..500_u64,
    ) {
        // Only the link and the decoder take time.
        let mut list = vec![FREE; NUM_RATES];
        (list[5], list[7]) = (link, decode);
        let query = ALL_ROWS_ON_DEVICE;
        let column = Column::new(1 << 30, 1, ratio);
        let rate = |plan| {
            predict(&rates_of(&list, 0.0), &column, &query, Route::Gpu, plan).unwrap().rate_gb_per_s
        };
        let is_near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
        // The equations as printed: 3.4, then 3.5 if transfer takes longer and 3.6 if decoding
        // does.
        let n = num_blocks as f64;
        let cr = ratio;
        let tio = link;
        let td = decode;
        let serial = cr * tio * td / (td + cr * tio);
        let overlapped = if cr * tio <= td {
            cr * tio * n * td / (n * td + cr * tio)
        } else {
            td * cr * n * tio / (cr * n * tio + td)
        };
        prop_assert!(is_near(serial_gb_per_s(cr, tio, td), serial));
        prop_assert!(is_near(rate(Plan::Serial), serial));
        prop_assert!(is_near(overlapped_gb_per_s(cr, tio, td, num_blocks), overlapped));
        let plan = Plan::Overlapped { num_blocks };
        prop_assert!(is_near(rate(plan), overlapped));
        prop_assert!(is_near(overlapped_gb_per_s(cr, tio, td, 1), serial));
    }

    #[test]
    fn codecs_change_places_at_their_crossing(
        a in (1.0..10.0_f64, 1.0..3000.0_f64), b in (1.0..10.0_f64, 1.0..3000.0_f64),
    ) {
        let rate = |codec: (f64, f64), link| serial_gb_per_s(codec.0, link, codec.1);
        if let Some(link) = crossing_gb_per_s(a, b) {
            prop_assert!((rate(a, link) / rate(b, link) - 1.0).abs() < 1e-6);
            let better_ratio = if a.0 > b.0 { (a, b) } else { (b, a) };
            let [winner, loser] = [better_ratio.0, better_ratio.1].map(|c| rate(c, link / 2.0));
            prop_assert!(winner >= loser * (1.0 - 1e-9));
        } else {
            let first = rate(a, 1e-6) >= rate(b, 1e-6);
            for link in [0.01, 1.0, 100.0, 1e6] {
                let (x, y) = if first { (a, b) } else { (b, a) };
                prop_assert!(rate(x, link) >= rate(y, link) * (1.0 - 1e-9));
            }
        }
    }
}

#[test]
fn equation_3_4_gives_the_table_of_the_design() {
    // Table of anchors/gsst.md, section 6, with ratio 2.74: rows by link, columns by decoding rate.
    let decode = [191.0, 600.0, 1100.0, 2000.0];
    for (link, expected) in [
        (6.5, [16.3, 17.3, 17.5, 17.7]),
        (14.5, [32.9, 37.3, 38.3, 39.0]),
        (26.0, [51.9, 63.7, 66.9, 68.8]),
        (55.0, [84.2, 120.4, 132.5, 140.1]),
        (450.0, [165.4, 403.6, 581.4, 762.8]),
    ] {
        for (decode, expected) in decode.into_iter().zip(expected) {
            let got = serial_gb_per_s(2.74, link, decode);
            assert!((got - expected).abs() < 0.06, "{link} {decode}: {got}");
        }
    }
}

#[test]
fn parts_need_about_a_megabyte_behind_pcie_5() {
    let mut list = vec![FREE; NUM_RATES];
    (list[5], list[7]) = (55.0, 2000.0);
    let query = Query {
        selectivity: None,
        is_wanted_on_host: false,
        are_rows_compared: false,
        is_in_host_memory: true,
        num_cores: 1,
    };
    let column = Column::new(1_000_000_000, 1, 2.74);
    let rates = rates_of(&list, 7e-6);
    let best = best_num_blocks(&rates, &column, &query, Route::Gpu, u64::MAX).unwrap();
    assert_eq!(best, 947);
}

#[test]
fn memory_is_shared_where_stages_overlap() {
    // Traffic per byte of text, as in the anchors: 1 / CR arrives, 1 / CR is read, 1 is written.
    let mut list = vec![FREE; NUM_RATES];
    list[9] = 4300.0;
    let query = Query {
        selectivity: None,
        is_wanted_on_host: false,
        are_rows_compared: false,
        is_in_host_memory: true,
        num_cores: 1,
    };
    let column = Column::new(1 << 30, 1, 2.74);
    let plan = Plan::Overlapped { num_blocks: 100 };
    let prediction = predict(&rates_of(&list, 0.0), &column, &query, Route::Gpu, plan).unwrap();
    assert!((prediction.rate_gb_per_s - 4300.0 / (1.0 + 2.0 / 2.74)).abs() < 1.0);
    assert_eq!(prediction.binding, Stage::DeviceMemory);
    let resident = predict(&rates_of(&list, 0.0), &column, &query, Route::GpuResident, plan).unwrap();
    assert_eq!(resident.rate_gb_per_s.round(), 3150.0);
}

#[test]
fn rows_that_go_back_take_their_views_along() {
    let mut list = vec![FREE; NUM_RATES];
    list[6] = 50.0;
    let column = Column::new(1_000_000_000, 10_000_000, 3.0);
    let seconds = |selectivity| {
        let query = Query {
            selectivity,
            is_wanted_on_host: true,
            are_rows_compared: false,
            is_in_host_memory: true,
            num_cores: 1,
        };
        predict(&rates_of(&list, 0.0), &column, &query, Route::Gpu, Plan::Serial).unwrap().seconds
    };
    assert!((seconds(None) - 1.16 / 50.0).abs() < 1e-9);
    assert!((seconds(Some(0.1)) - 0.116 / 50.0).abs() < 1e-9);
    assert_eq!(seconds(Some(0.0)), 0.0);
}

#[test]
fn nonsense_is_refused() {
    let query = |selectivity| Query {
        selectivity,
        is_wanted_on_host: true,
        are_rows_compared: false,
        is_in_host_memory: false,
        num_cores: 1,
    };
    let good = vec![1.0; NUM_RATES];
    let column = Column::new(100, 1, 2.0);
    let is_refused = |rates: &Rates, column: &Column, query: &Query| {
        let error = predict(rates, column, query, Route::Gpu, Plan::Serial);
        matches!(error, Err(tadoc::Error::InvalidArgument { .. }))
    };
    let rates = rates_of(&good, 0.0);
    assert!(!is_refused(&rates, &column, &query(Some(0.5))));
    for i in 0..NUM_RATES {
        for wrong in [0.0, -1.0, f64::NAN] {
            let mut list = good.clone();
            list[i] = wrong;
            assert!(is_refused(&rates_of(&list, 0.0), &column, &query(None)), "{i} {wrong}");
        }
    }
    assert!(is_refused(&Rates { device: None, ..rates }, &column, &query(None)));
    assert!(is_refused(&rates_of(&good, f64::NAN), &column, &query(None)));
    for part in [-0.1, 1.1, f64::NAN] {
        assert!(is_refused(&rates, &column, &query(Some(part))));
    }
    for ratio in [0.0, f64::NAN] {
        assert!(is_refused(&rates, &Column::new(100, 1, ratio), &query(None)));
    }
}

#[test]
fn rows_are_compared_where_they_are_decoded() {
    let rates = rates_of(&[FREE; NUM_RATES], 0.0);
    let query = |selectivity, num_cores| {
        let are_rows_compared = true;
        Query { selectivity, is_wanted_on_host: false, are_rows_compared, is_in_host_memory: true, num_cores }
    };
    let column = Column::new(1 << 30, 100_000_000, 2.0);
    let prediction = |query, route| predict(&rates, &column, &query, route, Plan::Serial).unwrap();
    let on_cores = prediction(query(None, 1), Route::Cpu);
    assert_eq!((on_cores.seconds, on_cores.binding), (1.0, Stage::CpuCompare));
    assert_eq!(prediction(query(None, 4), Route::Cpu).seconds, 0.25);
    assert_eq!(prediction(query(Some(0.5), 1), Route::Cpu).seconds, 0.5);
    assert_eq!(prediction(query(None, 1), Route::Gpu).seconds_of(Stage::CpuCompare), 0.0);
}

#[test]
fn an_empty_column_has_no_rate() {
    let rates = rates_of(&[FREE; NUM_RATES], 1e-5);
    let query = Query {
        selectivity: None,
        is_wanted_on_host: true,
        are_rows_compared: false,
        is_in_host_memory: false,
        num_cores: 1,
    };
    for (route, seconds) in [(Route::Cpu, 0.0), (Route::Gpu, 1e-5)] {
        let column = Column::new(0, 0, 2.0);
        let prediction = predict(&rates, &column, &query, route, Plan::Serial).unwrap();
        assert_eq!((prediction.rate_gb_per_s, prediction.seconds), (0.0, seconds));
    }
}

#[test]
fn predictions_can_be_read() {
    let mut list = vec![FREE; NUM_RATES];
    list[5] = 50.0;
    let query = Query {
        selectivity: None,
        is_wanted_on_host: false,
        are_rows_compared: false,
        is_in_host_memory: true,
        num_cores: 1,
    };
    let column = Column::new(1 << 30, 1, 2.0);
    let prediction = predict(&rates_of(&list, 0.0), &column, &query, Route::Gpu, Plan::Serial).unwrap();
    assert_eq!(prediction.to_string(), "100 GB/s, bound by host to device");
    let shown = [0.0, 0.00123, 0.5, 9.994, 12.34, 123.4, 2390.4].map(significant);
    assert_eq!(shown, ["0", "0.00123", "0.500", "9.99", "12.3", "123", "2390"]);
}
