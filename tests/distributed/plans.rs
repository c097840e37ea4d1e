//! Random statements have the same rows with one, two and three workers, and at any number of partitions.
//!
//! The orders that plan nodes promise are checked one by one, too: each node of a plan is run, and its rows
//! are compared with its promise.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use testkit::plans::{CALLS, seeds, statement};

use super::fixtures::{Cluster, Scene, rows, session, spreading_session};

/// Number of random statements. `PLANS` asks for others.
const NUM_STATEMENTS: u64 = 40;

/// Compares the rows of random statements in `others` with those of `alone`.
async fn compare(scene: &Scene, alone: &SessionContext, others: &[(&str, SessionContext)]) {
    let mut wrong = Vec::new();
    let mut num_compared = 0;
    for seed in seeds(NUM_STATEMENTS) {
        let sql = scene.call(&statement(seed));
        // DataFusion cannot plan all of them.
        let Ok(expected) = rows(alone, &sql).await else { continue };
        num_compared += 1;
        for (name, other) in others {
            match rows(other, &sql).await {
                Ok(got) if got == expected => {}
                Ok(got) => wrong.push(format!("{seed}, {name}: {sql}\n{got:#?}\n{expected:#?}")),
                Err(error) => wrong.push(format!("{seed}, {name}: {sql}\n{error}")),
            }
        }
    }
    assert!(num_compared > seeds(NUM_STATEMENTS).end * 9 / 10, "{num_compared}");
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_statements_have_the_rows_of_one_process_with_workers() {
    let scene = Scene::new().await;
    let clusters = [Cluster::start(1).await, Cluster::start(2).await, Cluster::start(3).await];
    let others = [
        ("1 worker", clusters[0].session(2)),
        ("2 workers", clusters[1].session(3)),
        ("3 workers", clusters[2].session(2)),
    ];
    compare(&scene, &session(1), &others).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_statements_have_the_same_rows_at_any_number_of_partitions() {
    let scene = Scene::new().await;
    let others = [("4", session(4)), ("8", session(8)), ("runs", spreading_session(2))];
    compare(&scene, &session(1), &others).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn statements_over_ordered_scans_have_the_rows_of_one_process() {
    let scene = Scene::new().await;
    let alone = session(1);
    let cluster = Cluster::start(2).await;
    let together = cluster.session(2);
    for sql in [
        "SELECT doc_id, count(*) FROM search(@, 'scan') GROUP BY 1 ORDER BY 1 LIMIT 3",
        "SELECT min(doc_id) FROM (SELECT doc_id FROM search(@, 'scan') GROUP BY 1 ORDER BY 1 LIMIT 1)",
        "SELECT doc_id, max(words) FROM documents(@) GROUP BY 1 ORDER BY 1 LIMIT 3",
        "SELECT doc_id, lag(doc_id) OVER (ORDER BY doc_id) FROM (SELECT doc_id FROM kwic(@, 'the') \
         GROUP BY 1) ORDER BY 1 LIMIT 5",
        "SELECT doc_id FROM grep(@, 'fn ') UNION SELECT doc_id FROM search(@, 'the') ORDER BY 1 LIMIT 4",
        "SELECT DISTINCT doc_id FROM term_vector(@) ORDER BY doc_id LIMIT 5",
        "SELECT doc_id, row_number() OVER (PARTITION BY doc_id ORDER BY word) FROM term_vector(@) \
         WHERE doc_id = 3 ORDER BY 1, 2 LIMIT 5",
        "SELECT d.doc_id, w, row_number() OVER (PARTITION BY d.doc_id, w ORDER BY byte_offset) FROM \
         documents(@) d JOIN (SELECT doc_id AS w, byte_offset FROM search(@, 'scan')) ON d.doc_id = w \
         ORDER BY 1, 2, 3 LIMIT 9",
        "SELECT doc_id, first_value(word ORDER BY word_index), array_agg(word ORDER BY word_index)[2] \
         FROM tokens(@) GROUP BY doc_id ORDER BY doc_id LIMIT 6",
        "SELECT x, count(*) FROM ((SELECT doc_id AS x FROM documents(@) ORDER BY 1 LIMIT 4) UNION ALL \
         (SELECT doc_id AS x FROM search(@, 'scan') ORDER BY 1 LIMIT 9)) GROUP BY x ORDER BY x",
        "WITH RECURSIVE n(i) AS (SELECT min(doc_id) FROM documents(@) UNION ALL SELECT i + 1 FROM n \
         WHERE i < (SELECT max(doc_id) FROM search(@, 'scan'))) SELECT * FROM n ORDER BY i",
    ] {
        let sql = scene.call(sql);
        let expected = rows(&alone, &sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        let got = rows(&together, &sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        assert_eq!(got, expected, "{sql}");
    }
}

/// Statements with parts that DataFusion's messages leave out, or could: of windows, and of other expressions and
/// nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn expressions_and_nodes_arrive_whole() {
    let scene = Scene::new().await;
    let alone = session(1);
    let cluster = Cluster::start(2).await;
    let others = [cluster.session(2), cluster.session(4)];
    let mut statements = Vec::new();
    let functions = ["lag(x)", "lead(x)", "lag(x, 2, 7)", "first_value(x)", "last_value(x)", "nth_value(x, 2)"];
    let frames =
        ["", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"];
    for function in functions {
        for nulls in ["", "IGNORE NULLS"] {
            for frame in frames {
                statements.push(format!(
                    "SELECT doc_id, word_index, {function} {nulls} OVER (PARTITION BY doc_id ORDER BY word_index DESC \
                     {frame}) AS other, row_number() OVER (PARTITION BY doc_id ORDER BY word_index) AS n FROM \
                     (SELECT doc_id, word_index, nullif(word_index % 4, 0) AS x FROM tokens(@) WHERE word_index < 40) \
                     ORDER BY doc_id, word_index"
                ));
            }
        }
    }
    let aggregates = [
        "sum(x)",
        "count(DISTINCT x)",
        "count(*) FILTER (WHERE x > 1)",
        "array_agg(x) FILTER (WHERE x > 1)",
        "array_agg(x)",
        "array_agg(x) IGNORE NULLS",
        "max(x)",
        "min(x) FILTER (WHERE word_index % 5 = 0)",
    ];
    for aggregate in aggregates {
        for frame in &frames[..2] {
            statements.push(format!(
                "SELECT doc_id, word_index, {aggregate} OVER (PARTITION BY doc_id ORDER BY word_index DESC {frame}) AS \
                 other, row_number() OVER (PARTITION BY doc_id ORDER BY word_index) AS n FROM (SELECT doc_id, \
                 word_index, nullif(word_index % 4, 0) AS x FROM tokens(@) WHERE word_index < 30) \
                 ORDER BY doc_id, word_index"
            ));
        }
    }
    let rest = [
        "SELECT doc_id, array_agg(x ORDER BY word_index DESC), first_value(x ORDER BY word_index DESC) IGNORE NULLS, \
         last_value(x ORDER BY word_index) IGNORE NULLS, nth_value(x, 2 ORDER BY word_index DESC), \
         count(DISTINCT x) FILTER (WHERE x > 1), string_agg(word, ',' ORDER BY word_index DESC) FROM (SELECT doc_id, \
         word, word_index, nullif(word_index % 4, 0) AS x FROM tokens(@) WHERE word_index < 30) GROUP BY doc_id \
         ORDER BY doc_id",
        "SELECT a.x, b.x FROM (SELECT nullif(doc_id % 4, 0) AS x FROM documents(@)) a JOIN (SELECT nullif(doc_id % 3, 0) \
         AS x FROM documents(@)) b ON a.x IS NOT DISTINCT FROM b.x ORDER BY 1, 2",
        "SELECT doc_id FROM documents(@) WHERE doc_id % 4 NOT IN (SELECT nullif(doc_id % 3, 0) FROM documents(@)) \
         ORDER BY 1",
        "SELECT doc_id FROM documents(@) WHERE doc_id % 5 NOT IN (SELECT doc_id % 3 FROM documents(@)) ORDER BY 1",
        "SELECT x FROM (SELECT nullif(doc_id % 4, 0) AS x FROM documents(@)) INTERSECT SELECT x FROM (SELECT \
         nullif(doc_id % 3, 0) AS x FROM documents(@)) ORDER BY 1",
        "SELECT count(*) FROM documents(@) a JOIN documents(@) b ON a.doc_id = b.doc_id",
        "SELECT count(*) FROM documents(@) a JOIN documents(@) b ON a.doc_id < b.doc_id",
        "SELECT count(*) FROM documents(@) WHERE words % 2 = 1",
        "SELECT word FROM term_vector(@) WHERE count > 2 ORDER BY word DESC NULLS FIRST, doc_id LIMIT 5 OFFSET 3",
        "SELECT doc_id, unnest(CASE WHEN doc_id % 2 = 0 THEN make_array(doc_id, NULL) END) AS e FROM documents(@) \
         ORDER BY 1, 2",
        "SELECT doc_id, CASE doc_id % 3 WHEN 0 THEN 'none' WHEN 1 THEN NULL ELSE path END FROM documents(@) ORDER BY 1",
        "SELECT doc_id, try_cast(substr(path, 1, 1) AS int), path ILIKE '%S%', path NOT LIKE 'a%', regexp_like(path, \
         's$'), (doc_id IN (1, NULL)), doc_id NOT IN (2, 3) FROM documents(@) ORDER BY 1",
        "SELECT doc_id % 2, doc_id % 3, count(*), grouping(doc_id % 2) FROM documents(@) GROUP BY ROLLUP (doc_id % 2, \
         doc_id % 3) ORDER BY 1, 2, 4",
        "SELECT DISTINCT ON (doc_id) doc_id, word FROM term_vector(@) ORDER BY doc_id, word DESC LIMIT 6",
        "SELECT x.a, y.b FROM (SELECT DISTINCT doc_id AS a, 'all' AS b FROM documents(@)) x LEFT JOIN (SELECT DISTINCT \
         doc_id * 2 AS a, 'all' AS b FROM documents(@)) y ON x.a = y.a AND x.b = y.b ORDER BY y.b, x.a",
        "SELECT y.b, count(*) FROM (SELECT DISTINCT doc_id AS a, 'all' AS b FROM documents(@)) x LEFT JOIN (SELECT \
         DISTINCT doc_id * 2 AS a, 'all' AS b FROM documents(@)) y ON x.a = y.a AND x.b = y.b GROUP BY y.b ORDER BY 1, 2",
    ];
    statements.extend(rest.map(str::to_owned));
    let mut wrong = Vec::new();
    for sql in statements {
        let sql = scene.call(&sql);
        let expected = match rows(&alone, &sql).await {
            Ok(expected) => expected,
            Err(error) => {
                wrong.push(format!("{sql}\n{error}"));
                continue;
            }
        };
        for other in &others {
            match rows(other, &sql).await {
                Ok(got) if got == expected => {}
                Ok(got) => {
                    let differs = got.iter().zip(&expected).find(|(got, expected)| got != expected);
                    wrong.push(format!("{sql}\n{differs:#?}"));
                }
                Err(error) => wrong.push(format!("{sql}\n{error}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn recursive_queries_see_all_rows_in_each_round() {
    let scene = Scene::new().await;
    let cluster = Cluster::start(2).await;
    let counted = scene.call(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n JOIN (SELECT max(doc_id) AS m FROM \
         search(@, 'scan')) ON true WHERE i < m) SELECT count(*) AS n FROM n",
    );
    let expected = scene.call("SELECT max(doc_id) + 1 AS n FROM search(@, 'scan')");
    for ctx in [session(1), session(4), spreading_session(2), cluster.session(2)] {
        assert_eq!(rows(&ctx, &counted).await.unwrap(), rows(&ctx, &expected).await.unwrap());
    }
}

/// Checks that the rows of a partition ascend by `ordering`.
fn check_order(batches: &[RecordBatch], ordering: &LexOrdering, shown: &str) -> Result<()> {
    let Some(first) = batches.first() else { return Ok(()) };
    let field = |sorted: &datafusion::physical_expr::PhysicalSortExpr| {
        Ok(SortField::new_with_options(sorted.expr.data_type(&first.schema())?, sorted.options))
    };
    let converter = RowConverter::new(ordering.iter().map(field).collect::<Result<_>>()?)?;
    let mut last: Option<OwnedRow> = None;
    for batch in batches {
        let column = |sorted: &datafusion::physical_expr::PhysicalSortExpr| {
            sorted.expr.evaluate(batch)?.into_array(batch.num_rows())
        };
        let columns = ordering.iter().map(column).collect::<Result<Vec<_>>>()?;
        for row in &converter.convert_columns(&columns)? {
            assert!(last.is_none_or(|last| last.row() <= row), "not by {ordering}: {shown}");
            last = Some(row.owned());
        }
    }
    Ok(())
}

/// Runs each node of `plan` that promises an order, and checks its rows.
async fn check_promises(plan: &Arc<dyn ExecutionPlan>, ctx: &SessionContext) -> Result<usize> {
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    let mut ordered = Vec::new();
    plan.apply(|node| {
        let ordering = node.output_ordering().cloned();
        ordered.extend(ordering.map(|ordering| (Arc::clone(node), ordering)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    for (node, ordering) in &ordered {
        let node = reset_plan_states(Arc::clone(node))?;
        for partition in 0..node.output_partitioning().partition_count() {
            let stream = node.execute(partition, ctx.task_ctx())?;
            check_order(&stream.try_collect::<Vec<_>>().await?, ordering, &shown)?;
        }
    }
    Ok(ordered.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_node_keeps_the_order_that_it_promises() {
    let scene = Scene::new().await;
    let small = spreading_session(1);
    rows(&small, "SET tadoc.max_memory_bytes = '8MiB'").await.unwrap();
    for ctx in [session(1), session(4), spreading_session(2), small] {
        let mut num_orders = 0;
        for call in CALLS {
            let sql = format!("SELECT * FROM {}", scene.call(call));
            let plan = ctx.sql(&sql).await.unwrap().create_physical_plan().await;
            // Some functions need all segments at once.
            let Ok(plan) = plan else { continue };
            num_orders += check_promises(&plan, &ctx).await.unwrap();
        }
        assert!(num_orders > 15, "{num_orders}");
    }
}
