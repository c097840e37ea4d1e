//! Generated text that is the same in every run: logs, versions of documents, and prose whose word
//! frequencies follow Zipf's law.

use rayon::prelude::*;

/// Approximate number of bytes of a document.
const DOC_BYTES: usize = 64 << 10;
/// Number of versions of a document.
const NUM_VERSIONS: usize = 32;
const NUM_WORDS: usize = 200_000;

/// A generator of reproducible numbers (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    /// Returns a word number. The frequency of a word is proportional to one over its place.
    fn word(&mut self) -> usize {
        let uniform = self.below(1 << 30) as f64 / (1u64 << 30) as f64;
        (NUM_WORDS as f64).powf(uniform) as usize - 1
    }

    fn for_document(document: usize) -> Self {
        let mut random = Self((document as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        random.below(2);
        random
    }
}

/// Returns documents of this kind, of `len_bytes` together or slightly more.
pub fn documents(kind: &str, len_bytes: usize) -> Vec<Vec<u8>> {
    let num_docs = len_bytes.div_ceil(DOC_BYTES);
    let words: Vec<String> = (0..NUM_WORDS).map(spelled).collect();
    match kind {
        "log" => (0..num_docs).into_par_iter().map(log).collect(),
        "prose" => (0..num_docs).into_par_iter().map(|doc| prose(doc, &words)).collect(),
        _ => {
            let num_bases = num_docs.div_ceil(NUM_VERSIONS);
            (0..num_bases).into_par_iter().flat_map_iter(|doc| versions(doc, &words)).collect()
        }
    }
}

/// Returns a word of letters for each number.
fn spelled(number: usize) -> String {
    const SYLLABLES: [&str; 16] =
        ["ta", "re", "in", "so", "mu", "ka", "le", "on", "di", "va", "her", "pes", "ol", "qua", "zen", "by"];
    let mut left = number + 16;
    let mut word = String::new();
    while left > 0 {
        word.push_str(SYLLABLES[left % 16]);
        left /= 16;
    }
    word
}

fn prose(doc: usize, words: &[String]) -> Vec<u8> {
    let mut random = Random::for_document(doc);
    let mut text = Vec::with_capacity(DOC_BYTES + 64);
    while text.len() < DOC_BYTES {
        text.extend_from_slice(words[random.word()].as_bytes());
        let separator: &[u8] = match random.below(16) {
            0 => b". ",
            1 => b", ",
            2 if random.below(6) == 0 => b".\n\n",
            _ => b" ",
        };
        text.extend_from_slice(separator);
    }
    text
}

/// Returns versions of a document. Each version replaces a few sentences of the one before and adds
/// one.
fn versions(doc: usize, words: &[String]) -> Vec<Vec<u8>> {
    let mut random = Random::for_document(doc + (1 << 40));
    let sentence = |random: &mut Random| {
        let mut sentence = Vec::new();
        for _ in 0..8 + random.below(12) {
            sentence.extend_from_slice(words[random.word()].as_bytes());
            sentence.push(b' ');
        }
        sentence.extend_from_slice(b".\n");
        sentence
    };
    let mut sentences: Vec<Vec<u8>> = Vec::new();
    while sentences.iter().map(Vec::len).sum::<usize>() < DOC_BYTES {
        let added: Vec<_> = (0..64).map(|_| sentence(&mut random)).collect();
        sentences.extend(added);
    }
    let version = |_| {
        for _ in 0..6 {
            let at = random.below(sentences.len());
            sentences[at] = sentence(&mut random);
        }
        let at = random.below(sentences.len());
        let added = sentence(&mut random);
        sentences.insert(at, added);
        sentences.concat()
    };
    (0..NUM_VERSIONS).map(version).collect()
}

fn log(doc: usize) -> Vec<u8> {
    const LEVELS: [&str; 4] = ["INFO", "INFO", "WARN", "ERROR"];
    const SERVICES: [&str; 8] = ["auth", "billing", "search", "gateway", "mailer", "catalog", "session", "export"];
    const MESSAGES: [&str; 10] = [
        "request completed with status",
        "connection accepted from peer on port",
        "cache miss for key",
        "retrying upstream call, attempt",
        "user logged in with id",
        "query took longer than expected, ms",
        "garbage collection finished, freed bytes",
        "configuration reloaded, revision",
        "failed to parse header, offset",
        "worker picked up job number",
    ];
    let mut random = Random::for_document(doc + (1 << 41));
    let mut text = String::with_capacity(DOC_BYTES + 256);
    let mut second = doc * 97;
    while text.len() < DOC_BYTES {
        second += random.below(2);
        let hour = second / 3600 % 24;
        let minute = second / 60 % 60;
        let host = random.below(40);
        let num_bits = 1 + random.below(20);
        let number = random.below(1 << num_bits);
        text.push_str(&format!(
            "2026-11-{:02}T{hour:02}:{minute:02}:{:02}Z {} host-{host:02} {}[{}]: {} {number}\n",
            1 + second / 86_400 % 28,
            second % 60,
            LEVELS[random.below(4)],
            SERVICES[random.below(8)],
            1000 + host * 7,
            MESSAGES[random.below(10)],
        ));
    }
    text.into_bytes()
}
