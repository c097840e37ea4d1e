//! HTML as text: what a reader of the page sees, line by line.
//!
//! ```text
//! <h1>One</h1><p>two <b>three</b><br>four</p>     One
//! <script>…</script><td>a</td><td>b</td>          two three
//!                                                 four
//!                                                 a⇥b
//! ```
//!
//! Source: the WHATWG standard of HTML, for tokens (the crate html5gum) and for the elements that begin a
//! line. Runs of white space become one blank, but not in `pre` and `textarea`. Scripts, styles and what is
//! shown only without scripts are left out; images leave their `alt`. Character references become UTF-8,
//! and so does a page that names another character set ([`charset`](crate::charset)).
//!
//! Time is linear in the bytes. The text between two tags is in memory as a whole, and `--max-row-size`
//! limits the page.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{IoReader, Span, Tokenizer};
use tadoc::containment::contain_panics;

use super::Form;
use crate::charset::{Damage, Given, Utf8Page};
use crate::failure::{Failure, Outcome};
use crate::rows::Rows;

/// Number of bytes of text that are passed on at once.
const PART_BYTES: usize = 16 << 10;
/// Elements whose contents are left out.
const HIDDEN: &[&[u8]] = &[b"script", b"style", b"noscript", b"template", b"iframe", b"noembed", b"noframes"];
/// Elements whose white space stays.
const KEPT: &[&[u8]] = &[b"pre", b"textarea"];
/// Elements that begin and end a line.
const BLOCKS: &[&[u8]] = &[
    b"address",
    b"article",
    b"aside",
    b"blockquote",
    b"body",
    b"br",
    b"caption",
    b"center",
    b"dd",
    b"details",
    b"dialog",
    b"dir",
    b"div",
    b"dl",
    b"dt",
    b"fieldset",
    b"figcaption",
    b"figure",
    b"footer",
    b"form",
    b"frameset",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"head",
    b"header",
    b"hgroup",
    b"hr",
    b"html",
    b"legend",
    b"li",
    b"main",
    b"menu",
    b"nav",
    b"ol",
    b"optgroup",
    b"option",
    b"p",
    b"pre",
    b"search",
    b"section",
    b"select",
    b"summary",
    b"table",
    b"tbody",
    b"textarea",
    b"tfoot",
    b"thead",
    b"title",
    b"tr",
    b"ul",
    b"video",
    b"audio",
];
/// Cells of a table, which have a tab between them.
const CELLS: &[&[u8]] = &[b"td", b"th"];

/// Appends the text of the page that `reader` gives to the open document. `given` is known of its
/// character set.
///
/// # Errors
/// The page is larger than a row may be, and `failed` for the errors of `reader`.
pub fn append_text(
    form: Form,
    given: Given<'_>,
    path: &Arc<str>,
    reader: &mut dyn BufRead,
    rows: &mut Rows<'_, '_>,
    failed: &dyn Fn(io::Error) -> Failure,
) -> Outcome {
    let max_bytes = rows.options.max_row_bytes;
    let mut text = Text::new(form);
    let name = format!("{}: HTML", rows.input.shown());
    let mut is_too_large = false;
    let mut damage = Damage::default();
    let mut convert = || -> Outcome {
        let page = Utf8Page::new(&mut *reader, given).map_err(failed)?;
        damage = page.damage();
        let mut page = page.take(max_bytes.saturating_add(1));
        let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| text.take(event));
        emitter.naively_switch_states(form == Form::Html);
        for part in Tokenizer::new_with_emitter(IoReader::new(&mut page), emitter) {
            rows.sink.append(path, &part.map_err(failed)?)?;
        }
        is_too_large = page.limit() == 0;
        Ok(())
    };
    contain_panics(&name, &mut convert).map_err(Failure::from)??;
    if let Some(charset) = damage.get() {
        rows.sink.undecoded.add_damaged(charset, rows.input);
    }
    if is_too_large {
        return Err(rows.too_large("the HTML of a page"));
    }
    rows.sink.append(path, &text.end())
}

/// The text of a page, tag by tag.
struct Text {
    form: Form,
    text: Vec<u8>,
    /// True if the line has text.
    is_in_line: bool,
    /// Separator before the next text of the line: a blank, a tab or nothing.
    gap: Option<u8>,
    /// True if the next text begins a line.
    is_line_due: bool,
    /// Hidden element around this place, and the number of elements of its name.
    hidden: Option<(Vec<u8>, u64)>,
    /// Number of elements around this place whose white space stays.
    num_kept: u64,
    /// Name of the start tag that is being read.
    tag: Vec<u8>,
    /// True if the next value is the text of an image.
    is_alt: bool,
}

impl Text {
    fn new(form: Form) -> Self {
        Self {
            form,
            text: Vec::new(),
            is_in_line: false,
            gap: None,
            is_line_due: false,
            hidden: None,
            num_kept: 0,
            tag: Vec::new(),
            is_alt: false,
        }
    }

    /// Takes a part of the page. Returns text once there is enough of it.
    fn take(&mut self, event: CallbackEvent<'_>) -> Option<Vec<u8>> {
        match event {
            CallbackEvent::OpenStartTag { name } => self.open(name),
            CallbackEvent::AttributeName { name } => {
                self.is_alt = self.tag == b"img" && name == b"alt";
            }
            CallbackEvent::AttributeValue { value } if self.is_alt && self.hidden.is_none() => {
                self.is_alt = false;
                self.collapsed(value);
            }
            CallbackEvent::CloseStartTag { self_closing: true } if self.form == Form::Xhtml => {
                let name = std::mem::take(&mut self.tag);
                self.close(&name);
            }
            CallbackEvent::EndTag { name } => self.close(name),
            CallbackEvent::String { value } if self.hidden.is_none() => match self.num_kept {
                0 => self.collapsed(value),
                _ => self.kept(value),
            },
            _ => {}
        }
        (self.text.len() >= PART_BYTES).then(|| std::mem::take(&mut self.text))
    }

    fn open(&mut self, name: &[u8]) {
        self.tag = name.to_vec();
        self.is_alt = false;
        match &mut self.hidden {
            Some((hidden, depth)) => *depth += u64::from(hidden == name),
            None if HIDDEN.contains(&name) => self.hidden = Some((name.to_vec(), 1)),
            None if CELLS.contains(&name) => self.gap = Some(b'\t'),
            None => self.border(name),
        }
        self.num_kept += u64::from(self.hidden.is_none() && KEPT.contains(&name));
    }

    fn close(&mut self, name: &[u8]) {
        match &mut self.hidden {
            Some((hidden, depth)) if hidden == name => {
                *depth -= 1;
                if *depth == 0 {
                    self.hidden = None;
                }
            }
            Some(_) => {}
            None => {
                if KEPT.contains(&name) {
                    self.num_kept = self.num_kept.saturating_sub(1);
                }
                self.border(name);
            }
        }
    }

    /// Ends the line if the element does.
    fn border(&mut self, name: &[u8]) {
        if BLOCKS.contains(&name) {
            self.is_line_due = true;
        }
    }

    /// Appends text whose white space becomes single blanks.
    fn collapsed(&mut self, text: &[u8]) {
        for (idx, word) in text.split(u8::is_ascii_whitespace).enumerate() {
            if idx > 0 {
                self.gap = self.gap.or(Some(b' '));
            }
            if !word.is_empty() {
                self.begin();
                self.text.extend_from_slice(word);
            }
        }
    }

    /// Appends text with its white space.
    fn kept(&mut self, text: &[u8]) {
        // The line end behind the tag is none of the text.
        let text = if self.is_line_due { text.strip_prefix(b"\n").unwrap_or(text) } else { text };
        if !text.is_empty() {
            self.begin();
            self.text.extend_from_slice(text);
            self.is_in_line = !text.ends_with(b"\n");
        }
    }

    /// Puts a line end, a tab or a blank in front of the next text, if there is text before it.
    fn begin(&mut self) {
        let gap = self.gap.take().filter(|_| self.is_in_line);
        if !std::mem::take(&mut self.is_line_due) {
            self.text.extend(gap);
        } else if self.is_in_line {
            self.text.push(b'\n');
        }
        self.is_in_line = true;
    }

    /// Returns the rest of the text, with a line end.
    fn end(mut self) -> Vec<u8> {
        if self.is_in_line {
            self.text.push(b'\n');
        }
        self.text
    }
}

/// Returns the text of `page`.
#[cfg(test)]
fn text_of(form: Form, page: &[u8]) -> String {
    let mut text = Text::new(form);
    let mut parts = Vec::new();
    {
        let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| text.take(event));
        emitter.naively_switch_states(form == Form::Html);
        for part in Tokenizer::new_with_emitter(IoReader::new(page), emitter) {
            parts.extend(part.unwrap());
        }
    }
    parts.extend(text.end());
    String::from_utf8_lossy(&parts).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_become_lines() {
        for (page, expected) in [
            ("", ""),
            ("plain  text\n here", "plain text here\n"),
            ("<h1>One</h1><p>two <b>three</b><br>four</p>", "One\ntwo three\nfour\n"),
            ("<title>T</title><script>if (a<b) x('</p>')</script><p>x<style>p{}</style>y", "T\nxy\n"),
            ("<table><tr><td>a<td>b</tr><tr><th> c </th><th>d</table>", "a\tb\nc\td\n"),
            ("<p>a</p>\n\n<p>b</p> c", "a\nb\nc\n"),
            ("<pre>\n  x\n    y\n</pre>z", "  x\n    y\nz\n"),
            ("&lt;a&gt; &uuml;&#x2014;&amp;amp", "<a> ü—&amp\n"),
            ("<img alt='a  cat' src=x><IMG ALT=dog>", "a catdog\n"),
            ("<template>a<template>b</template>c</template>d", "d\n"),
            ("a<!-- b --> c<!DOCTYPE html>", "a c\n"),
            ("<noscript><p>no</p></noscript>yes<script/>never", "yes\n"),
            ("<div><div><div>a</div></div></div><div></div><ul><li>b<li>c</ul>", "a\nb\nc\n"),
            ("</p></pre></script>x", "x\n"),
        ] {
            assert_eq!(text_of(Form::Html, page.as_bytes()), expected, "{page}");
        }
        let page = b"<title/><script src='x'/><p>a<br/>b</p>";
        assert_eq!(text_of(Form::Xhtml, page), "a\nb\n");
        assert_eq!(text_of(Form::Html, b"caf\xe9 <b>\xff"), "caf\u{fffd} \u{fffd}\n");
    }

    #[test]
    fn pages_are_told_by_ending_and_type() {
        for (path, form) in [
            ("a/b.html", Some(Form::Html)),
            ("B.HTM", Some(Form::Html)),
            ("b.html.gz", Some(Form::Html)),
            ("b.xhtml.ZST", Some(Form::Xhtml)),
            ("html", None),
            ("b.html.txt", None),
            ("b.gz", None),
        ] {
            assert_eq!(Form::from_path(path), form, "{path}");
        }
        assert_eq!(Form::from_type(Some("Text/HTML; charset=utf-8")), Some(Form::Html));
        assert_eq!(Form::from_type(Some("application/xhtml+xml")), Some(Form::Xhtml));
        assert_eq!(Form::from_type(Some("text/plain")), None);
        assert_eq!(Form::from_type(None), None);
    }

    /// Returns the words of the text pieces in `pieces`, in order: the slow way, without tags.
    fn words(pieces: &[(&str, &str)]) -> Vec<String> {
        let texts: String = pieces.iter().map(|(_, text)| format!(" {text} ")).collect();
        texts.split_ascii_whitespace().map(str::to_owned).collect()
    }

    proptest! {
        #[test]
        fn words_stay_and_tags_go(
            pieces in prop::collection::vec(
                (
                    prop::sample::select(vec![
                        "<p>", "</p>", "<div class=\"x y\">", "<br/>", "<td>", "<!-- c -->", "<li>", "</ul>",
                        "<script>no</script>", "<style>no</style>", "<h1>",
                    ]),
                    prop::sample::select(vec!["", "a", "b c", " d\n", "\t e  f "]),
                ),
                0..40,
            ),
        ) {
            let page: String = pieces.iter().map(|(tag, text)| format!("{tag} {text} ")).collect();
            let text = text_of(Form::Html, page.as_bytes());
            let got: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
            prop_assert_eq!(got, words(&pieces));
            prop_assert!(!text.contains("  ") && !text.contains("\n\n") && !text.contains(" \n"));
        }

        #[test]
        fn any_bytes_are_read(page in prop::collection::vec(
            prop_oneof![prop::sample::select(b"<>/!-&;'\" aps=\n[]?".to_vec()), any::<u8>()], 0..300,
        )) {
            for form in [Form::Html, Form::Xhtml] {
                text_of(form, &page);
            }
        }
    }
}
