//! Syncs from and to a store.

use std::fs;
use std::process::Child;

use object_store::ObjectStoreExt;
use object_store::path::Path;
use testkit::command::{BUCKET, s3_server};

use super::{counts, documents, stored};
use crate::harness::{Folder, Ran, new_folder};
use crate::living_s3::{PATIENT, block_on, client};
use crate::locations::with_store;

fn run(folder: &Folder, arguments: &[&str]) -> Ran {
    Ran::from(with_store(folder.command(arguments)).output().unwrap())
}

/// Returns the paths and texts of a corpus, in order.
fn rows(folder: &Folder, corpus: &str) -> Vec<String> {
    let sql = format!("SELECT concat(path, '=', text) AS d FROM documents('{corpus}') ORDER BY path");
    let text = run(folder, &["sql", "-q", "--format", "csv", "-c", &sql]).ok();
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_corpus_in_a_store_is_kept_in_step() {
    if s3_server().is_none() {
        return;
    }
    let folder = new_folder();
    let corpus = format!("s3://{BUCKET}/synced/corpus");
    let sync = |options: &[&str]| counts(&run(&folder, &[&["sync", "in", &corpus, "--json"], options].concat()).ok());
    folder.write("in/a.txt", "one");
    folder.write("in/sub/b.txt", "two");
    assert_eq!(sync(&["-n"]), [2, 0, 0, 0]);
    assert_eq!(sync(&[]), [2, 0, 0, 0]);
    assert_eq!(sync(&[]), [0, 0, 0, 2]);
    folder.write("in/a.txt", "three");
    fs::rename(folder.join("in/sub/b.txt"), folder.join("in/c.txt")).unwrap();
    assert_eq!(sync(&["--dry-run"]), [1, 1, 1, 0]);
    assert_eq!(sync(&[]), [1, 1, 1, 0]);
    assert_eq!(rows(&folder, &corpus), ["a.txt=three", "c.txt=two"]);
    // One of several at a time commits, and the others see that.
    for at in 0..30 {
        folder.write(&format!("in/{at}"), "new");
    }
    let start = || with_store(folder.command(&["sync", "in", &corpus, "-q"])).spawn().unwrap();
    for mut child in [start(), start()] as [Child; 2] {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(rows(&folder, &corpus).len(), 32);
    assert_eq!(sync(&[]), [0, 0, 0, 32]);
    run(&folder, &["optimize", &corpus, "-q", "--clean-up", "0"]).ok();
    assert_eq!(sync(&[]), [0, 0, 0, 32]);
}

#[test]
fn a_prefix_of_a_store_is_a_folder() {
    let Some(server) = s3_server() else { return };
    let folder = new_folder();
    let url = format!("s3://{BUCKET}/synced/in");
    let put = |name: &str, text: &'static str| {
        let path = Path::from(format!("synced/in/{name}"));
        block_on(client(server.address, PATIENT).put(&path, text.into())).unwrap();
    };
    let delete = |name: &str| {
        let path = Path::from(format!("synced/in/{name}"));
        block_on(client(server.address, PATIENT).delete(&path)).unwrap();
    };
    let sync = |corpus: &str| counts(&run(&folder, &["sync", &url, corpus, "--json"]).ok());
    put("a.txt", "one");
    put("sub/b.txt", "two");
    assert_eq!(sync("c"), [2, 0, 0, 0]);
    assert_eq!(sync("c"), [0, 0, 0, 2]);
    put("a.txt", "One");
    put("c.txt", "three");
    delete("sub/b.txt");
    assert_eq!(sync("c"), [1, 1, 1, 0]);
    assert_eq!(stored(&folder, "c"), documents(&[("a.txt", "One"), ("c.txt", "three")]));
    // The corpus may lie below the prefix.
    let inner = format!("{url}/corpus");
    assert_eq!(sync(&inner), [2, 0, 0, 0]);
    assert_eq!(sync(&inner), [0, 0, 0, 2]);
    // A prefix without objects is a mistake, and no empty folder.
    let nothing = run(&folder, &["sync", &format!("s3://{BUCKET}/synced/nothing"), "c"]);
    assert_eq!(nothing.status, 1, "{}", nothing.stderr);
    let file = run(&folder, &["sync", &format!("{url}/a.txt"), "c"]);
    assert!(file.stderr.contains("is not a folder"), "{}", file.stderr);
    assert_eq!(stored(&folder, "c").len(), 2);
}
