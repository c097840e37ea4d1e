//! The rows of workers are those of one session.

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use datafusion_tadoc_distributed::engine::DistributedExt;
use datafusion_tadoc_distributed::engine::grpc::DefaultChannelResolver;
use testkit::plans::CALLS;

use super::fixtures::{Cluster, Scene, rows, rows_of, session, sorted, write_corpus};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_function_has_the_rows_of_one_machine() {
    let scene = Scene::new().await;
    let alone = session(2);
    for num_workers in [1, 2, 3, 5] {
        let cluster = Cluster::start(num_workers).await;
        let together = cluster.session(2);
        for call in CALLS {
            let sql = format!("SELECT * FROM {}", scene.call(call));
            let expected = rows(&alone, &sql).await.unwrap();
            let got = rows(&together, &sql).await;
            let got = got.unwrap_or_else(|error| panic!("{sql}\n{error}"));
            assert_eq!(sorted(got), sorted(expected), "{num_workers} workers: {sql}");
        }
    }
}

/// Functions whose rows are packed by the machines that count them, and others that are added up.
const ADDED_UP: [&str; 11] = [
    "sequence_count(@, 2)",
    "sequence_count(@, 6, fold => true)",
    "cooccurrence(@, 4, min_count => 3)",
    "inverted_index(@)",
    "inverted_index(@, fold => true)",
    "word_count(@)",
    "word_sort(@, fold => true)",
    "ranked_inverted_index(@)",
    "ranked_inverted_index(@, 5, fold => true)",
    "sequence_count(@, 1)",
    "log_templates(@)",
];
/// Number of those whose rows are packed.
const NUM_PACKED: usize = 9;

async fn explained(ctx: &SessionContext, scene: &Scene, call: &str) -> String {
    let sql = format!("EXPLAIN SELECT * FROM {}", scene.call(call));
    rows(ctx, &sql).await.unwrap().join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn packed_rows_are_merged_to_those_of_one_machine() {
    let scene = Scene::new().await;
    for (num_workers, num_partitions) in [(1, 2), (2, 1), (2, 2), (3, 3), (5, 1)] {
        let cluster = Cluster::start(num_workers).await;
        let alone = session(2);
        let together = cluster.session(num_partitions);
        for call in &ADDED_UP[..NUM_PACKED] {
            let plan = explained(&together, &scene, call).await;
            // An only worker has no other to send rows to.
            let has_stages = plan.contains("NetworkShuffleExec") == (num_workers > 1);
            assert!(
                has_stages
                    && plan.contains("TadocMergedRowsExec")
                    && plan.contains("parcels=")
                    && plan.contains(" in one process"),
                "{plan}"
            );
            assert!(!plan.contains("AggregateExec"), "{plan}");
        }
        for call in ADDED_UP {
            let of_call = scene.call(call);
            let mut statements = vec![format!("SELECT * FROM {of_call}")];
            if call.contains("sequence_count") || call.contains("cooccurrence") {
                statements.extend([
                    format!("SELECT count(*), sum(count), max(count) FROM {of_call}"),
                    format!("SELECT * FROM {of_call} WHERE count BETWEEN 3 AND 9"),
                    format!("SELECT * FROM {of_call} ORDER BY count DESC, 1, 2 LIMIT 7"),
                ]);
            }
            for sql in statements {
                // An order that both promise is the same.
                let is_ordered = ADDED_UP[..NUM_PACKED].contains(&call);
                let expected = rows(&alone, &sql).await.unwrap();
                let got = rows(&together, &sql).await;
                let got = got.unwrap_or_else(|error| panic!("{num_workers} workers: {sql}\n{error}"));
                if is_ordered {
                    assert_eq!(got, expected, "{num_workers} workers: {sql}");
                } else {
                    assert_eq!(sorted(got), sorted(expected), "{num_workers} workers: {sql}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn words_have_common_numbers_where_memory_has_room_for_them() {
    let scene = Scene::new().await;
    let alone = session(2);
    let cluster = Cluster::start(3).await;
    // Without lists and texts, with texts, with lists, and with documents and their counts.
    for sql in [
        "SELECT count(*), sum(count) FROM sequence_count(@, 3)",
        "SELECT * FROM cooccurrence(@, 5, fold => true) WHERE word2 > 'm'",
        "SELECT * FROM inverted_index(@)",
        "SELECT * FROM ranked_inverted_index(@, 2)",
        "SELECT * FROM sequence_count(@, 9)",
    ] {
        let sql = scene.call(sql);
        let expected = rows(&alone, &sql).await.unwrap();
        let mut shown = Vec::new();
        let limits_kib = std::iter::successors(Some(200_000), |kib| Some(kib * 7 / 8).filter(|&kib| kib > 200));
        for limit_kib in limits_kib {
            let together = cluster.session(2);
            let limit = format!("SET tadoc.max_memory_bytes = '{limit_kib}KiB'");
            rows(&together, &limit).await.unwrap();
            let plan = rows(&together, &format!("EXPLAIN {sql}")).await.unwrap().join("\n");
            let are_common = plan.contains("words=common");
            let case = (plan.contains("TadocMergedRowsExec"), are_common);
            if shown.contains(&case) {
                continue;
            }
            shown.push(case);
            let got = rows(&together, &sql).await.unwrap_or_else(|error| panic!("{limit_kib} KiB: {sql}\n{error}"));
            assert_eq!(sorted(got), sorted(expected.clone()), "{limit_kib} KiB: {sql}");
        }
        assert!(shown.starts_with(&[(true, true), (true, false)]), "{sql}: {shown:?}");
    }
}

/// Functions whose scans are told a number of each word.
const NUMBERED: [&str; 7] = [
    "tfidf(@)",
    "tfidf(@, top => 3)",
    "tfidf(@, fold => true)",
    "tokens(@)",
    "tokens(@, fold => 'accents')",
    "doc_term_matrix(@)",
    "doc_term_matrix(@, fold => true)",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scans_that_are_told_numbers_have_the_rows_of_one_machine() {
    let scene = Scene::new().await;
    for (num_workers, num_partitions) in [(1, 2), (2, 1), (2, 3), (3, 2), (5, 1)] {
        let cluster = Cluster::start(num_workers).await;
        let alone = session(2);
        let together = cluster.session(num_partitions);
        for call in NUMBERED {
            let plan = explained(&together, &scene, call).await;
            assert!(plan.contains("TadocWordNumbersExec") && plan.contains("TadocMergedRowsExec"), "{plan}");
            // Words are added up as numbers, and rows of documents stay where they are.
            assert!(!plan.contains("AggregateExec") && !plan.contains("JoinExec"), "{plan}");
            assert_eq!(plan.contains("NetworkBroadcastExec"), num_workers > 1, "{plan}");
            let of_call = scene.call(call);
            if call.starts_with("doc_term_matrix") {
                for sql in [
                    format!("SELECT * FROM {of_call}"),
                    format!("SELECT doc_id, word_ids[2], counts FROM {of_call} WHERE doc_id % 3 = 1"),
                ] {
                    let expected = rows(&alone, &sql).await.unwrap();
                    let got = rows(&together, &sql).await.unwrap();
                    assert_eq!(sorted(got), sorted(expected), "{num_workers} workers: {sql}");
                }
                continue;
            }
            let number = if call.starts_with("tfidf") { "df" } else { "word_id" };
            let call = of_call;
            for sql in [
                format!("SELECT * FROM {call}"),
                format!("SELECT {number}, word FROM {call} WHERE doc_id BETWEEN 3 AND 5 OR doc_id = 8"),
                format!("SELECT count(*), sum({number}) FROM {call} WHERE word > 'm'"),
                format!("SELECT doc_id, {number} FROM {call} ORDER BY {number} DESC, doc_id, word LIMIT 7"),
                format!(
                    "SELECT a.doc_id, sum(a.{number} + b.{number}) FROM {call} a JOIN {call} b ON a.doc_id = b.doc_id \
                     AND a.word = b.word GROUP BY 1"
                ),
                format!("SELECT max({number}) FROM {call} UNION ALL SELECT min({number}) FROM {call}"),
            ] {
                let expected = rows(&alone, &sql).await.unwrap();
                let got = rows(&together, &sql).await;
                let got = got.unwrap_or_else(|error| panic!("{num_workers} workers: {sql}\n{error}"));
                assert_eq!(sorted(got), sorted(expected), "{num_workers} workers: {sql}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn documents_of_sequences_stay_where_they_are_unless_they_are_ranked() {
    let scene = Scene::new().await;
    let alone = session(2);
    let cluster = Cluster::start(3).await;
    let together = cluster.session(2);
    let call = scene.call("ranked_inverted_index(@, 2)");
    for (sql, is_merged) in [
        (format!("SELECT sequence, doc_id, count FROM {call}"), false),
        (format!("SELECT count(*), sum(count) FROM {call} WHERE doc_id > 3 AND count > 1"), false),
        (format!("SELECT doc_id, max(count) FROM {call} WHERE doc_id IN (1, 4) GROUP BY 1"), false),
        (format!("SELECT sequence FROM {call} WHERE rank = 2 AND count > 1"), true),
        (format!("SELECT sequence, doc_id, rank FROM {call} WHERE doc_id = 4"), true),
        (format!("SELECT sequence, rank, count FROM {call} ORDER BY count DESC, rank DESC, sequence LIMIT 9"), true),
    ] {
        let plan = rows(&together, &format!("EXPLAIN {sql}")).await.unwrap().join("\n");
        assert_eq!(plan.contains("TadocMergedRowsExec"), is_merged, "{plan}");
        assert!(plan.contains("Stage 1"), "{plan}");
        let expected = rows(&alone, &sql).await.unwrap();
        let got = rows(&together, &sql).await;
        let got = got.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        assert_eq!(sorted(got), sorted(expected), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn small_corpora_stay_in_one_process() {
    let scene = Scene::new().await;
    let cluster = Cluster::start(2).await;
    let alone = session(2);
    let choosing = cluster.choosing_session(2);
    for call in ADDED_UP.into_iter().chain(NUMBERED) {
        let plan = explained(&choosing, &scene, call).await;
        assert!(plan.contains("workers=none") && plan.contains("one task on this machine"), "{plan}");
        let times = plan.contains(" estimated, ") && plan.contains(" on 2 workers");
        assert_eq!(times, !ADDED_UP[NUM_PACKED..].contains(&call), "{plan}");
        let sql = format!("SELECT * FROM {}", scene.call(call));
        assert_eq!(rows(&choosing, &sql).await.unwrap(), rows(&alone, &sql).await.unwrap(), "{sql}");
    }
}

/// Texts of words that nobody repeats: it takes longer to open them than to read them.
fn unrepeated_texts() -> Vec<(String, Vec<u8>)> {
    let mut number = 1u64;
    let mut word = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:05}", (number >> 33) % 90_000)
    };
    let mut text = || (0..6_000).map(|_| word() + " ").collect::<String>().into_bytes();
    (0..100).map(|document| (format!("{document}"), text())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_statement_that_comes_again_opens_the_corpus_where_that_is_faster() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("texts.tadoc");
    write_corpus(&path, 200_000, &unrepeated_texts());
    let cluster = Cluster::start(2).await;
    let choosing = cluster.choosing_session(1);
    let sql = format!("SELECT count(*), sum(length(text)) FROM documents('{}')", path.display());
    let explain = format!("EXPLAIN {sql}");
    let expected = rows(&session(1), &sql).await.unwrap();
    // EXPLAIN asks no worker.
    for _ in 0..2 {
        let plan = rows(&choosing, &explain).await.unwrap().join("\n");
        assert!(plan.contains("Stage 1") && plan.contains("workers=2: "), "{plan}");
    }
    assert_eq!(rows(&choosing, &sql).await.unwrap(), expected);
    let plan = rows(&choosing, &explain).await.unwrap().join("\n");
    assert!(plan.contains("workers=none: ") && plan.contains(" once it is open here"), "{plan}");
    assert_eq!(rows(&choosing, &sql).await.unwrap(), expected);
    let plan = rows(&choosing, &explain).await.unwrap().join("\n");
    assert!(plan.contains("workers=none: ") && !plan.contains(" once it is open here"), "{plan}");
    // Another session has not asked.
    let plan = rows(&cluster.choosing_session(1), &explain).await.unwrap().join("\n");
    assert!(plan.contains("workers=2: "), "{plan}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn corpora_larger_than_memory_are_added_up_as_texts() {
    let scene = Scene::new().await;
    let alone = session(2);
    let cluster = Cluster::start(2).await;
    let small = cluster.choosing_session(2);
    let mut has_runs = false;
    for limit in ["4MiB", "2MiB", "1MiB", "512KiB", "256KiB", "128KiB"] {
        rows(&small, &format!("SET tadoc.max_memory_bytes = '{limit}'")).await.unwrap();
        has_runs = explained(&small, &scene, ADDED_UP[0]).await.contains("AggregateExec");
        if has_runs {
            break;
        }
    }
    assert!(has_runs);
    for call in ADDED_UP.into_iter().chain(NUMBERED) {
        let sql = format!("SELECT * FROM {}", scene.call(call));
        let expected = sorted(rows(&alone, &sql).await.unwrap());
        let got = rows(&small, &sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        assert_eq!(sorted(got), expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn statements_have_the_rows_of_one_machine() {
    let scene = Scene::new().await;
    let alone = session(2);
    let cluster = Cluster::start(3).await;
    let together = cluster.session(2);
    for sql in [
        "SELECT path, words FROM documents(@) WHERE doc_id BETWEEN 3 AND 7 AND bytes > 100",
        "SELECT path FROM documents(@) WHERE text LIKE '%dynamic%' AND text NOT LIKE '%fold%'",
        "SELECT word, count FROM word_count(@) WHERE count > 5 AND word LIKE 'co%' ORDER BY word",
        "SELECT path, count(*) FROM search(@, 'scan') GROUP BY path ORDER BY path",
        "SELECT w.word, d.path FROM word_count(@) w JOIN inverted_index(@) i ON w.word = i.word \
         JOIN documents(@) d ON d.doc_id = i.doc_ids[1] WHERE w.count > 40",
        "SELECT path, count FROM term_count(@, 'scan') ORDER BY count DESC, path LIMIT 3",
        "SELECT d.path, p.phrase FROM documents(@) d JOIN repeated_phrases(@, min_words => 12) p \
         ON d.doc_id < p.words AND d.doc_id > 8",
        "SELECT word, count FROM word_count(@) UNION ALL SELECT word, count FROM word_count(#)",
        "SELECT word FROM word_count(@) WHERE word IN (SELECT word FROM word_count(#))",
        "SELECT count(*) FROM tokens(@)",
        "SELECT sequence FROM sequence_count(@, 2) WHERE count > 3 ORDER BY count DESC, sequence LIMIT 5",
        "SELECT count(*), sum(count) FROM sequence_count(@, 3, fold => true)",
        "SELECT word, doc_ids FROM inverted_index(@) WHERE doc_count > 2 AND word > 'm' ORDER BY word",
        "SELECT word2, count FROM cooccurrence(@, 4, min_count => 3) WHERE count < 9",
        "SELECT count(*), sum(length(word)) FROM inverted_index(@, fold => true)",
        "SELECT word, count, score FROM keyness(@, #) ORDER BY score DESC, word LIMIT 9",
        "SELECT count(*) FROM (SELECT * FROM search(@, 'the') LIMIT 5)",
        "SELECT count(*) FROM (SELECT * FROM word_count(@) LIMIT 7)",
        "SELECT path, rank() OVER (ORDER BY words DESC) FROM documents(@)",
        "SELECT doc_id, count_word(@, doc_id, 'the') FROM documents(@) WHERE words > 50",
    ] {
        let sql = scene.call(sql);
        let expected = rows(&alone, &sql).await.unwrap();
        let got = rows(&together, &sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        assert_eq!(sorted(got), sorted(expected), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn documents_keep_their_order() {
    let scene = Scene::new().await;
    let alone = session(1);
    let cluster = Cluster::start(2).await;
    let together = cluster.session(2);
    for call in ["search(@, 'scan')", "documents(@)", "grep(@, 'fn ')", "term_vector(@)"] {
        let sql = format!("SELECT * FROM {}", scene.call(call));
        let expected = rows(&alone, &sql).await.unwrap();
        assert_eq!(rows(&together, &sql).await.unwrap(), expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn senders_without_our_version_are_refused() {
    let scene = Scene::new().await;
    let cluster = Cluster::start(2).await;
    // Its requests do not name a version.
    let other = SessionStateBuilder::new_from_existing(cluster.session(2).state())
        .with_distributed_channel_resolver(DefaultChannelResolver::default());
    let other = SessionContext::new_with_state(other.build());
    let sql = scene.call("SELECT path, count FROM term_count(@, 'scan')");
    let error = rows(&other, &sql).await.unwrap_err().to_string();
    assert!(error.contains("run the same version on all machines"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn plans_show_stages_and_no_stage_where_all_segments_are_needed() {
    let scene = Scene::new().await;
    let cluster = Cluster::start(3).await;
    let together = cluster.session(2);
    let explained = async |call: &str| {
        let sql = format!("EXPLAIN SELECT * FROM {}", scene.call(call));
        rows(&together, &sql).await.unwrap().join("\n")
    };
    let spread = explained("search(@, 'scan')").await;
    assert!(spread.contains("TadocRunsExec") && spread.contains("NetworkCoalesceExec"), "{spread}");
    for call in [
        "repeated_phrases(@)",
        "repeated_spans(@)",
        "near_duplicates(@)",
        "near_duplicate_clusters(@)",
        "collocates(@, 'of')",
    ] {
        let whole = explained(call).await;
        assert!(whole.contains("one task on this machine") && !whole.contains("Network"), "{whole}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_refuse_a_file_that_was_replaced_after_planning() {
    let scene = Scene::new().await;
    let cluster = Cluster::start(2).await;
    let together = cluster.session(2);
    let sql = scene.call("SELECT word, sum(count) FROM term_vector(@) GROUP BY word");
    let plan = together.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
    let path = scene.dir.path().join("many.tadoc");
    let bytes = std::fs::read(&path).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    std::fs::write(&path, bytes).unwrap();
    let error = rows_of(plan, &together).await.unwrap_err().to_string();
    assert!(error.contains("not the file that was planned"), "{error}");
    rows(&together, &sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parquet_and_gsst_files_have_the_rows_of_one_machine() {
    let scene = Scene::new().await;
    let alone = session(2);
    let cluster = Cluster::start(2).await;
    let together = cluster.session(2);
    // Files of any length are divided.
    let divide = "SET distributed.file_scan_config_bytes_per_partition = '1'";
    rows(&together, divide).await.unwrap();
    rows(&together, "SET datafusion.optimizer.repartition_file_min_size = '0'").await.unwrap();
    let text = "OPTIONS (gsst_row_group_rows '40', gsst_columns 'word')";
    let rows_of_forty = "OPTIONS (max_row_group_size '40')";
    for (table, format, options, read_as) in [
        ("gsst", "gsst", text, "gsst"),
        ("parquet", "parquet", rows_of_forty, "parquet"),
        ("by_another_name", "gsst", text, "parquet"),
    ] {
        let file = scene.dir.path().join(format!("{table}.parquet")).display().to_string();
        let copy = format!(
            "COPY (SELECT doc_id, word, count FROM {}) TO '{file}' STORED AS {format} {options}",
            scene.call("term_vector(@)")
        );
        rows(&alone, &copy).await.unwrap();
        for ctx in [&alone, &together] {
            let create = format!("CREATE EXTERNAL TABLE {table} STORED AS {read_as} LOCATION '{file}'");
            rows(ctx, &create).await.unwrap();
        }
        for sql in [
            format!("SELECT * FROM {table}"),
            format!("SELECT word, sum(count) FROM {table} WHERE word LIKE 's%' GROUP BY word"),
            format!("SELECT count(*) FROM {table} WHERE doc_id > 3 AND word <> 'the'"),
        ] {
            let expected = rows(&alone, &sql).await.unwrap();
            let got = rows(&together, &sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
            assert_eq!(sorted(got), sorted(expected), "{sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_write_the_segments_of_a_copy() {
    let scene = Scene::new().await;
    let alone = session(2);
    let cluster = Cluster::start(2).await;
    let together = cluster.session(2);
    let living = scene.dir.path().join("written").display().to_string();
    let create = format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{living}' OPTIONS ('tadoc.create' 'true')");
    rows(&together, &create).await.unwrap();
    rows(&together, "SET tadoc.workers_write = true").await.unwrap();
    let query = scene.call("SELECT path, text, length(text) AS len FROM documents(@)");
    let copy = format!("COPY ({query}) TO '{living}/' STORED AS TADOC");
    let plan = rows(&together, &format!("EXPLAIN {copy}")).await.unwrap().join("\n");
    assert!(plan.contains("TadocSegmentsSink") && plan.contains("TadocWriteSegmentsExec"), "{plan}");
    assert!(plan.contains("Stage 1"), "{plan}");
    let versions = async |table: &str| {
        let history = format!("SELECT count(*) FROM \"{table}$history\"");
        let count = rows(&alone, &history).await.unwrap().pop().unwrap();
        count.trim_matches(['|', ' ']).to_owned()
    };
    for (times, table, expected) in [(2, "once", query.clone()), (3, "twice", format!("{query} UNION ALL {query}"))] {
        rows(&together, &copy).await.unwrap();
        let table_of = format!("CREATE EXTERNAL TABLE {table} STORED AS TADOC LOCATION '{living}'");
        rows(&alone, &table_of).await.unwrap();
        let got = rows(&alone, &format!("SELECT path, text, len FROM {table}")).await.unwrap();
        assert_eq!(sorted(got), sorted(rows(&alone, &expected).await.unwrap()));
        // One commit for each statement, behind that which made the corpus.
        assert_eq!(versions(table).await, times.to_string());
    }
    let segments = std::fs::read_dir(scene.dir.path().join("written/segments")).unwrap().count();
    assert!(segments > 2, "{segments} files");
    // No rows, no commit.
    let none = format!("COPY ({query} WHERE path = 'no such') TO '{living}/' STORED AS TADOC");
    rows(&together, &none).await.unwrap();
    assert_eq!(versions("twice").await, "3");
    // A row that is refused ends the statement, and nothing is committed.
    let bad = format!(
        "COPY (SELECT path, CASE WHEN doc_id = 1 THEN NULL ELSE text END AS text FROM ({})) TO '{living}/' \
         STORED AS TADOC",
        scene.call("SELECT doc_id, path, text FROM documents(@)")
    );
    let error = rows(&together, &bad).await.unwrap_err().to_string();
    assert!(error.to_lowercase().contains("null"), "{error}");
    assert_eq!(versions("twice").await, "3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_of_divided_queries_are_whole() {
    let scene = Scene::new().await;
    let alone = session(2);
    let cluster = Cluster::start(2).await;
    let together = cluster.session(2);
    for (name, ctx) in [("alone", &alone), ("together", &together)] {
        let path = |what: &str| scene.dir.path().join(format!("{name}_{what}")).display().to_string();
        let living = path("living");
        let copy = path("copy.tadoc");
        for statement in [
            format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{living}' OPTIONS ('tadoc.create' 'true')"),
            "INSERT INTO d (path, text) SELECT path, text FROM documents(@) ORDER BY doc_id".to_owned(),
            "DELETE FROM d WHERE path IN (SELECT path FROM search(@, 'repartition'))".to_owned(),
            "UPDATE d SET text = 'short' WHERE doc_id = 2".to_owned(),
            format!("COPY (SELECT path, text FROM documents(@) ORDER BY path) TO '{copy}'"),
        ] {
            let statement = scene.call(&statement);
            let done = rows(ctx, &statement).await;
            done.unwrap_or_else(|error| panic!("{name}: {statement}\n{error}"));
        }
    }
    for corpus in ["living", "copy.tadoc"] {
        let read = |name: &str| {
            let path = scene.dir.path().join(format!("{name}_{corpus}"));
            format!("SELECT doc_id, path, text FROM documents('{}')", path.display())
        };
        let expected = rows(&alone, &read("alone")).await.unwrap();
        assert_eq!(rows(&alone, &read("together")).await.unwrap(), expected, "{corpus}");
        assert_eq!(sorted(rows(&together, &read("together")).await.unwrap()), sorted(expected));
    }
}
