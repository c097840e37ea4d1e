//! `tadoc export` to an object store: the files of a folder, also after `kill -9`.

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt};
use testkit::command::{BUCKET, s3_server};

use crate::export::{NUM_DOCS, files, lines};
use crate::harness::Ran;
use crate::living_s3::{PATIENT, block_on, client};
use crate::locations::with_store;

/// Returns the names and bytes of the objects below `prefix`.
fn objects(prefix: &str) -> Vec<(String, Vec<u8>)> {
    let store = client(s3_server().unwrap().address, PATIENT);
    let read = async {
        let prefix = object_store::path::Path::from(prefix);
        let listed: Vec<_> = store.list(Some(&prefix)).try_collect().await.unwrap();
        let mut objects = Vec::new();
        for object in listed {
            let bytes = store.get(&object.location).await.unwrap().bytes().await.unwrap();
            objects.push((object.location.filename().unwrap().to_owned(), bytes.to_vec()));
        }
        objects.sort();
        objects
    };
    block_on(read)
}

fn export(out: &str, form: &str) -> Vec<String> {
    let words = "export lines.tadoc --docs-per-file 30 --format FORM --where doc_id<200 -o OUT".split(' ');
    words.map(|word| word.replace("FORM", form).replace("OUT", out)).collect()
}

#[test]
fn an_export_to_a_store_goes_on_and_has_the_files_of_a_folder() {
    if s3_server().is_none() {
        return;
    }
    let folder = lines();
    let command = |arguments: &[String]| {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        with_store(folder.command(&words))
    };
    let run = |arguments: &[String]| Ran::from(command(arguments).output().unwrap());
    let url = |name: &str| format!("s3://{BUCKET}/export/{name}");
    for form in ["jsonl", "jsonl.gz", "parquet"] {
        run(&export(form, form)).ok();
        let whole = files(&folder, form);
        assert_eq!(whole.len(), 1 + NUM_DOCS.div_ceil(30));
        let mut child = command(&export(&url(form), form)).stderr(Stdio::null()).spawn().unwrap();
        while objects(&format!("export/{form}")).len() < 3 && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Objects are whole at all times.
        let of_killed = objects(&format!("export/{form}"));
        assert!(of_killed.len() >= 3 && of_killed.iter().all(|object| whole.contains(object)), "{form}");
        let said = run(&export(&url(form), form));
        assert!(said.status == 0 && said.stderr.contains(" of an earlier run"), "{}", said.stderr);
        assert!(objects(&format!("export/{form}")) == whole, "{form}");
        // A slash at the end names the same place, and nothing is left to do.
        let said = run(&export(&format!("{}/", url(form)), form));
        assert!(said.stderr.contains("0 documents in 0 files in "), "{}", said.stderr);
    }
    assert!(!folder.join("s3:").exists());

    // An object that is gone is written again.
    let store = client(s3_server().unwrap().address, PATIENT);
    block_on(store.delete(&"export/jsonl/part-00003.jsonl".into())).unwrap();
    let said = run(&export(&url("jsonl"), "jsonl"));
    assert!(said.stderr.contains("30 documents in 1 file in "), "{}", said.stderr);
    assert!(objects("export/jsonl") == files(&folder, "jsonl"));

    // Another export, and objects of something else, are refused.
    let other = run(&export(&url("jsonl"), "parquet"));
    assert!(other.status == 1 && other.stderr.contains("its format is \"jsonl\", and now"), "{}", other.stderr);
    let taken = run(&export(&url(""), "jsonl"));
    assert!(taken.status == 1 && taken.stderr.contains("has files of something else"), "{}", taken.stderr);
}
