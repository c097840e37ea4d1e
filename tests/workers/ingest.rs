//! `tadoc ingest --workers`: the file of one process, byte for byte, whatever workers do.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::cluster::{TOKEN, Worker, list, wait_until};
use testkit::command::{Folder, Ran};
use testkit::random::Random;

/// Longest time of an ingest whose workers fail.
const BOUND: Duration = Duration::from_secs(60);

/// Returns a folder with documents of many kinds and lengths, and rows with columns.
fn inputs() -> Folder {
    let folder = Folder::for_program(env!("CARGO_BIN_EXE_tadoc"));
    let mut random = Random(48);
    for number in 0..50 {
        let words: Vec<&str> = (0..random.below(900)).map(|_| *random.pick(&WORDS)).collect();
        folder.write(&format!("texts/{number:02}.txt"), words.join(" "));
    }
    folder.write("texts/empty.txt", "");
    folder.write("texts/long.txt", "one line of a long document\n".repeat(4000));
    folder.write("texts/binary", (0..30_000).map(|_| random.number() as u8).collect::<Vec<u8>>());
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"texts/not\xff\xfeutf8.txt");
        fs::write(folder.path().join(name), "a name that is not UTF-8").unwrap();
    }
    let row = |at: usize| format!("{{\"body\":\"{} {at}\",\"at\":{at},\"tag\":\"t{}\"}}\n", WORDS[at % 9], at % 5);
    folder.write("rows.jsonl", (0..3000).map(row).collect::<String>());
    folder
}

const WORDS: [&str; 9] = ["file", "Fold", "the sea", "segment", "café", "scan", "storm", "To be", "grammar"];

/// Ingests by the workers `urls`, if there are any, into `name`.
fn ingest(folder: &Folder, urls: &str, arguments: &[&str], name: &str) -> Ran {
    let workers = if urls.is_empty() { vec![] } else { vec!["--workers", urls] };
    folder.run(&[&["ingest", "--block-size", "20KiB", "-o", name][..], arguments, &workers].concat())
}

fn bytes(folder: &Folder, name: &str) -> Vec<u8> {
    fs::read(folder.path().join(name)).unwrap()
}

/// Checks that `urls` build the file of one process. Returns standard error.
fn check(folder: &Folder, urls: &str, arguments: &[&str]) -> String {
    ingest(folder, "", &[arguments, &["--force"]].concat(), "alone.tadoc").ok();
    let ran = ingest(folder, urls, &[arguments, &["--force"]].concat(), "together.tadoc");
    let stderr = ran.stderr.clone();
    ran.ok();
    assert!(bytes(folder, "alone.tadoc") == bytes(folder, "together.tadoc"), "{arguments:?}\n{stderr}");
    stderr
}

/// Returns the numbers of segments that workers built, and of all, from the summary.
fn shares(stderr: &str) -> (u64, u64) {
    let line = stderr.lines().find(|line| line.contains(" by workers")).unwrap_or_else(|| panic!("{stderr}"));
    let part = line.rsplit(", ").next().unwrap();
    let numbers: Vec<u64> = part.split(' ').filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[1])
}

#[test]
fn the_file_is_the_same_for_any_number_of_workers() {
    let folder = inputs();
    let workers = [(), (), ()].map(|()| Worker::start(&folder, &[]));
    for num_workers in 1..=3 {
        let urls = list(&workers[..num_workers]);
        for arguments in [
            &["texts"][..],
            &["texts", "--layout", "small"],
            &["texts", "rows.jsonl", "--documents", "lines", "--timestamp", "auto"],
            &["rows.jsonl", "--documents", "jsonl:body"],
            &["texts", "--tokenizer", "uax29", "--builder", "sequitur", "--blocks-at-once", "3"],
            &["texts", "--layout", "indexed:5", "--threads", "1"],
        ] {
            let stderr = check(&folder, &urls, arguments);
            let (by_workers, all) = shares(&stderr);
            assert!(all > 1 && by_workers == all, "{arguments:?}: {stderr}");
        }
    }
    check(&folder, &list(&workers), &["--allow-empty", "texts", "--glob", "*.none"]);
    assert!(workers.iter().all(|worker| worker.computed() > 0.0));
    for worker in workers {
        assert_eq!(worker.end(), (0, String::new()));
    }
}

#[test]
fn living_corpora_get_one_commit() {
    let folder = inputs();
    folder.write("elsewhere/x.txt", "nothing");
    let workers = [(), ()].map(|()| Worker::start(&folder, &["--allow", "elsewhere"]));
    for (name, urls) in [("alone", String::new()), ("together", list(&workers))] {
        ingest(&folder, &urls, &["texts", "--append"], name).ok();
        let ran = ingest(&folder, &urls, &["rows.jsonl", "--documents", "jsonl:body", "--append"], name);
        assert_eq!(ran.stderr.contains(" by workers"), !urls.is_empty(), "{}", ran.stderr);
        ran.ok();
    }
    let rows = |name: &str| folder.ok(&["sql", "-q", "-c", &format!("SELECT * FROM documents('{name}')")]);
    assert_eq!(rows("alone"), rows("together"));
    folder.ok(&["verify", "together"]);
    let segments = |name: &str| {
        let files = fs::read_dir(folder.path().join(name).join("segments")).unwrap();
        let mut all: Vec<Vec<u8>> = files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
        all.sort_unstable();
        all
    };
    assert!(segments("alone") == segments("together"));
    assert_eq!(segments("together").len(), 2);
}

#[test]
fn tokens_and_certificates_are_those_of_statements() {
    let folder = inputs();
    folder.write("token", TOKEN);
    folder.write("cert.pem", include_str!("../serve/tls/cert.pem"));
    folder.write("key.pem", include_str!("../serve/tls/key.pem"));
    let tls = ["--token-file", "token", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let workers = [(), ()].map(|()| Worker::start(&folder, &tls));
    let urls = list(&workers);
    let right = ["texts", "--workers-token-file", "token", "--workers-ca", "cert.pem"];
    let stderr = check_by(&folder, &urls, &right);
    assert!(!stderr.contains("warning"), "{stderr}");
    let (by_workers, all) = shares(&stderr);
    assert_eq!(by_workers, all);
    for (wrong, said) in [(&right[..1], "certificate"), (&["texts", "--workers-ca", "cert.pem"], "token")] {
        let stderr = check_by(&folder, &urls, wrong);
        assert!(!stderr.contains(" by workers"), "{stderr}");
        for worker in &workers {
            let warning = format!("warning: worker {}/: ", worker.url);
            let line = stderr.lines().find(|line| line.starts_with(&warning)).unwrap_or_else(|| panic!("{stderr}"));
            assert!(line.contains(said) && !line.contains(TOKEN), "{line}");
        }
    }
}

/// Variant of [`check`] in which only the ingest with workers has `arguments`, but for the first.
fn check_by(folder: &Folder, urls: &str, arguments: &[&str]) -> String {
    ingest(folder, "", &[arguments[0], "--force"], "alone.tadoc").ok();
    let ran = ingest(folder, urls, &[arguments, &["--force"]].concat(), "together.tadoc");
    let stderr = ran.stderr.clone();
    ran.ok();
    assert!(bytes(folder, "alone.tadoc") == bytes(folder, "together.tadoc"), "{stderr}");
    stderr
}

/// An ingest of lines that come through a pipe.
struct Lines {
    child: Child,
    sent: String,
}

impl Lines {
    fn start(folder: &Folder, urls: &str) -> Self {
        let arguments = ["ingest", "-", "--documents", "lines", "--block-size", "20KiB", "-o", "together.tadoc"];
        let mut command = folder.command(&[&arguments[..], &["--workers", urls]].concat());
        let child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { child, sent: String::new() }
    }

    fn send(&mut self, num_lines: usize) {
        let start = self.sent.len();
        for at in 0..num_lines {
            self.sent += &format!("line {at} of {num_lines} tells of {}\n", WORDS[at % 9]);
        }
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(&self.sent.as_bytes()[start..]).unwrap();
        stdin.flush().unwrap();
    }

    /// Ends the input, and checks the file. Returns standard error.
    fn end(mut self, folder: &Folder) -> String {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        let alone = ["ingest", "-", "--documents", "lines", "--block-size", "20KiB", "-o", "alone.tadoc"];
        folder.run_with_input(&alone, self.sent.as_bytes()).ok();
        assert!(bytes(folder, "alone.tadoc") == bytes(folder, "together.tadoc"), "{stderr}");
        stderr
    }
}

#[test]
fn a_worker_killed_in_the_middle_loses_no_block() {
    for num_killed in [1, 2] {
        let folder = Folder::for_program(env!("CARGO_BIN_EXE_tadoc"));
        let workers = [(), ()].map(|()| Worker::start(&folder, &[]));
        let before = workers[0].computed();
        let mut lines = Lines::start(&folder, &list(&workers));
        lines.send(150_000);
        assert!(wait_until(BOUND, || workers[0].computed() > before), "the worker does not work");
        for worker in &workers[..num_killed] {
            worker.signal("KILL");
        }
        lines.send(30_000);
        let stderr = lines.end(&folder);
        for (at, worker) in workers.iter().enumerate() {
            let is_told = stderr.contains(&format!("warning: worker {}/: ", worker.url));
            assert_eq!(is_told, at < num_killed, "{stderr}");
        }
        if num_killed == 1 {
            let (by_workers, all) = shares(&stderr);
            assert_eq!(by_workers, all, "{stderr}");
        }
    }
}

#[test]
fn silent_workers_and_servers_of_other_kinds_are_left_out() {
    let folder = inputs();
    let workers = [(), ()].map(|()| Worker::start(&folder, &[]));
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let mute_url = format!("http://{}", mute.local_addr().unwrap());
    let chatty = TcpListener::bind("127.0.0.1:0").unwrap();
    let chatty_url = format!("http://{}", chatty.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in chatty.incoming() {
            // The other side may hang up.
            let _ = stream.and_then(|mut stream| stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nbytes of no meaning"));
        }
    });
    workers[1].signal("STOP");
    let start = Instant::now();
    let urls = format!("{},{mute_url},{chatty_url}", list(&workers));
    let stderr = check(&folder, &urls, &["texts"]);
    assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    for url in [&mute_url, &chatty_url, &workers[1].url] {
        assert!(stderr.contains(&format!("warning: worker {url}/: ")), "{url}: {stderr}");
    }
    let (by_workers, all) = shares(&stderr);
    assert_eq!(by_workers, all, "{stderr}");
    workers[1].signal("CONT");
    let stderr = check(&folder, &workers[1].url, &["texts"]);
    assert!(!stderr.contains("warning"), "{stderr}");
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let folder = Folder::for_program(env!("CARGO_BIN_EXE_tadoc"));
    let workers = [(), ()].map(|()| Worker::start(&folder, &[]));
    let before = workers[0].computed();
    let mut lines = Lines::start(&folder, &list(&workers));
    lines.send(150_000);
    assert!(wait_until(BOUND, || workers[0].computed() > before), "the worker does not work");
    let interrupt = std::process::Command::new("kill").args(["-INT", &lines.child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert_eq!(lines.child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.names(), Vec::<String>::new());
    for worker in workers {
        assert_eq!(worker.end(), (0, String::new()));
    }
}

#[test]
fn wrong_lists_of_workers_are_refused() {
    let folder = inputs();
    let ran = ingest(&folder, "ftp://one", &["texts"], "x.tadoc");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("workers: expected a URL like http:"), "{}", ran.stderr);
}
