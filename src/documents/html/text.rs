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
//! line. Runs of white space become one blank, but not in `pre` and `textarea`. Scripts, styles, templates, what is
//! shown only without scripts (`noscript`), and elements that are hidden by `hidden`, or by `display: none` or
//! `visibility: hidden` in their `style`, are left out up to their end ([`open_elements`](super::open_elements));
//! `hidden=until-found` and `aria-hidden` hide nothing from readers, and style sheets are not read. Images leave their
//! `alt`. Character references become UTF-8, and so does a page that names another character set
//! ([`charset`](crate::charset)).
//!
//! Time is linear in the bytes. The text between two tags is in memory as a whole, and `--max-row-size`
//! limits the page.

use std::cell::RefCell;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, IoReader, Span, State, Tokenizer};
use tadoc::error::contain_panics;

use super::Form;
use super::open_elements::{Look, OpenElements, Sight};
use crate::charset::{Damage, Given, Utf8Page};
use crate::failure::{Failure, Outcome};
use crate::rows::Rows;

/// Number of bytes of text that are passed on at once.
const PART_BYTES: usize = 16 << 10;
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
/// Elements at whose start and end the cells of a row end.
const ROW_BORDERS: &[&[u8]] = &[b"tr", b"table"];

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
    let given = match given {
        Given::ContentType(content_type) if form == Form::Html => Given::Html(content_type),
        given => given,
    };
    let name = format!("{}: HTML", rows.input.shown());
    let mut is_too_large = false;
    let mut rest = Vec::new();
    let mut damage = Damage::default();
    let mut convert = || -> Outcome {
        let page = Utf8Page::new(&mut *reader, given).map_err(failed)?;
        damage = page.damage();
        let is_declared = form == Form::Html && page.has_xml_declaration();
        let form = if is_declared { Form::Declared } else { form };
        let text = RefCell::new(Text::new(form));
        let mut page = page.take(max_bytes.saturating_add(1));
        let emitter = Emit::new(form, &text, |event: CallbackEvent<'_>, _: Span<()>| text.borrow_mut().take(event));
        for part in Tokenizer::new_with_emitter(IoReader::new(&mut page), emitter) {
            rows.sink.append(path, &part.map_err(failed)?)?;
        }
        is_too_large = page.limit() == 0;
        rest = text.into_inner().end();
        Ok(())
    };
    contain_panics(&name, &mut convert).map_err(Failure::from)??;
    if let Some(charset) = damage.get() {
        rows.sink.undecoded.add_damaged(charset, rows.input);
    }
    if is_too_large {
        return Err(rows.too_large("the HTML of a page"));
    }
    rows.sink.append(path, &rest)
}

/// Passes the parts of a page on.
struct Emit<'t, F: Callback<Vec<u8>, ()>> {
    inner: CallbackEmitter<F, Vec<u8>>,
    form: Form,
    /// The text of the page, which knows the place that is read.
    text: &'t RefCell<Text>,
    /// True if the tag that is being read ends itself.
    is_self_closing: bool,
}

impl<'t, F: Callback<Vec<u8>, ()>> Emit<'t, F> {
    fn new(form: Form, text: &'t RefCell<Text>, take: F) -> Self {
        let mut inner = CallbackEmitter::new(take);
        inner.naively_switch_states(form != Form::Xhtml);
        Self { inner, form, text, is_self_closing: false }
    }
}

impl<F: Callback<Vec<u8>, ()>> ForwardingEmitter for Emit<'_, F> {
    type Token = Vec<u8>;

    fn inner(&mut self) -> &mut impl Emitter<Token = Vec<u8>> {
        &mut self.inner
    }

    fn init_start_tag(&mut self) {
        self.is_self_closing = false;
        self.inner.init_start_tag();
    }

    fn set_self_closing(&mut self) {
        self.is_self_closing = true;
        self.inner.set_self_closing();
    }

    /// Returns the state behind a start tag: that of scripts, titles and the like, which go on to their end tags.
    fn emit_current_tag(&mut self) -> Option<State> {
        let is_empty = self.is_self_closing && self.form != Form::Html;
        self.inner.emit_current_tag().filter(|_| !is_empty)
    }

    /// Returns true if a section of CDATA is text, as in XML, and in SVG and MathML. In HTML it is a comment.
    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.form != Form::Html || self.text.borrow().open.is_in_foreign()
    }
}

/// Attributes that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attribute {
    Alt,
    Hidden,
    Style,
    Other,
}

/// The cells of a row of a table. Each but the first has a tab in front of it, also if it has no text.
#[derive(Default)]
struct Row {
    num_cells: usize,
    /// Tabs before the next text.
    num_tabs: usize,
    has_text: bool,
}

/// The text of a page, tag by tag.
struct Text {
    text: Vec<u8>,
    /// True if the line has text.
    is_in_line: bool,
    /// True if a blank comes before the next text of the line.
    is_blank_due: bool,
    row: Row,
    /// True if the next text begins a line.
    is_line_due: bool,
    open: OpenElements,
    /// Name of the start tag that is being read.
    tag: Vec<u8>,
    /// Attribute of it whose value is next, and those so far. The first of two with one name counts.
    attribute: Attribute,
    attributes: Vec<Attribute>,
    /// The visibility that its attributes give it.
    look: Look,
    /// Text of the image that it is.
    alt: Vec<u8>,
}

impl Text {
    fn new(form: Form) -> Self {
        Self {
            text: Vec::new(),
            is_in_line: false,
            is_blank_due: false,
            row: Row::default(),
            is_line_due: false,
            open: OpenElements::new(form),
            tag: Vec::new(),
            attribute: Attribute::Other,
            attributes: Vec::new(),
            look: Look::default(),
            alt: Vec::new(),
        }
    }

    /// Takes a part of the page. Returns text once there is enough of it.
    fn take(&mut self, event: CallbackEvent<'_>) -> Option<Vec<u8>> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.clear();
                self.tag.extend_from_slice(name);
                self.attribute = Attribute::Other;
                self.attributes.clear();
                self.look = Look::default();
                self.alt.clear();
            }
            CallbackEvent::AttributeName { name } => self.begin_attribute(name),
            CallbackEvent::AttributeValue { value } => self.take_attribute(value),
            CallbackEvent::CloseStartTag { self_closing } => self.start(self_closing),
            CallbackEvent::EndTag { name } => {
                let is_gone = self.open.sight() == Sight::Gone;
                self.open.end(name);
                if !is_gone {
                    self.border(name);
                }
            }
            CallbackEvent::String { value } => self.take_text(value),
            _ => {}
        }
        (self.text.len() >= PART_BYTES).then(|| std::mem::take(&mut self.text))
    }

    fn begin_attribute(&mut self, name: &[u8]) {
        let attribute = match name {
            b"alt" if self.tag == b"img" => Attribute::Alt,
            b"hidden" => Attribute::Hidden,
            b"style" => Attribute::Style,
            _ => Attribute::Other,
        };
        self.attribute = if self.attributes.contains(&attribute) { Attribute::Other } else { attribute };
        self.attributes.push(self.attribute);
        self.look.is_gone |= self.attribute == Attribute::Hidden;
    }

    fn take_attribute(&mut self, value: &[u8]) {
        match std::mem::replace(&mut self.attribute, Attribute::Other) {
            Attribute::Alt => self.alt.extend_from_slice(value),
            Attribute::Hidden => self.look.is_gone &= !value.trim_ascii().eq_ignore_ascii_case(b"until-found"),
            Attribute::Style => self.look = Look::from_style(value, self.look),
            Attribute::Other => {}
        }
    }

    fn start(&mut self, is_self_closing: bool) {
        let tag = std::mem::take(&mut self.tag);
        let sight = self.open.start(&tag, self.look, is_self_closing);
        if sight != Sight::Gone {
            if CELLS.contains(&tag.as_slice()) {
                // A cell outside of rows may stand behind text.
                let is_behind_text = self.is_in_line && !self.is_line_due;
                self.row.num_tabs += usize::from(self.row.num_cells > 0 || is_behind_text);
                self.row.num_cells += 1;
            } else {
                self.border(&tag);
            }
        }
        if sight == Sight::Seen && !self.alt.is_empty() {
            let alt = std::mem::take(&mut self.alt);
            self.collapsed(&alt);
        }
        self.tag = tag;
    }

    fn take_text(&mut self, text: &[u8]) {
        if !text.iter().all(u8::is_ascii_whitespace) {
            self.open.begin_text();
        }
        match self.open.sight() {
            Sight::Seen if self.open.is_preformatted() => self.kept(text),
            Sight::Seen => self.collapsed(text),
            Sight::Invisible | Sight::Gone => {}
        }
    }

    /// Ends the line if the element does.
    fn border(&mut self, name: &[u8]) {
        if BLOCKS.contains(&name) {
            self.is_line_due = true;
        }
        if ROW_BORDERS.contains(&name) {
            self.row = Row::default();
        }
    }

    /// Appends text whose white space becomes single blanks.
    fn collapsed(&mut self, text: &[u8]) {
        for (idx, word) in text.split(u8::is_ascii_whitespace).enumerate() {
            self.is_blank_due |= idx > 0;
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

    /// Puts a line end, tabs or a blank in front of the next text. A cell that has lines of its own has no tabs, unless
    /// it is the first one of its row with text.
    fn begin(&mut self) {
        let is_line_due = std::mem::take(&mut self.is_line_due);
        let is_blank_due = std::mem::take(&mut self.is_blank_due);
        let num_tabs = std::mem::take(&mut self.row.num_tabs);
        if is_line_due && self.is_in_line {
            self.text.push(b'\n');
        }
        let is_first = !std::mem::replace(&mut self.row.has_text, true);
        if num_tabs > 0 && (is_first || !is_line_due) {
            self.text.extend(std::iter::repeat_n(b'\t', num_tabs));
        } else if is_blank_due && self.is_in_line && !is_line_due {
            self.text.push(b' ');
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
    let text = RefCell::new(Text::new(form));
    let mut parts = Vec::new();
    {
        let emitter = Emit::new(form, &text, |event: CallbackEvent<'_>, _: Span<()>| text.borrow_mut().take(event));
        for part in Tokenizer::new_with_emitter(IoReader::new(page), emitter) {
            parts.extend(part.unwrap());
        }
    }
    parts.extend(text.into_inner().end());
    String::from_utf8_lossy(&parts).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use testkit::random::Random;

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
            ("<table><tr><td>a</td><td></td><td>c</td></tr><tr><td> </td><td>e</td></tr></table>f", "a\t\tc\n\te\nf\n"),
            ("<table><tr><td></td><td><p>a</p></td><td><p>b</p></td></tr></table>", "\ta\nb\n"),
            ("<table><tr><td></td><td></td></tr><tr><td>x</td></tr></table>y<td>z", "x\ny\tz\n"),
            ("<table><tr><td><table><tr><td>a<td>b</table></td><td>c</td></tr></table>", "a\tb\nc\n"),
            ("<table><tr><td hidden>a</td><td>b</td><td><img src=x></td><td>c</td></tr></table>", "b\t\tc\n"),
            ("<p style='color:red' style='display:none'>a</p><p hidden=until-found hidden>b</p>", "a\nb\n"),
            ("<img alt=a alt=b>", "a\n"),
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
        assert_eq!(text_of(Form::Declared, page), "a\nb\n");
        let page = b"<title>T</title><style/><script>if (a<b) x('</p>')</script><textarea/><iframe/><p>a<li>b<div/>c";
        assert_eq!(text_of(Form::Declared, page), "T\na\nb\nc\n");
        for (page, expected) in [
            ("<svg><text>a<![CDATA[b < c]]></text></svg><![CDATA[d]]>e", "ab < ce\n"),
            ("<math><mi><![CDATA[x]]></mi></math>", "x\n"),
            (
                "<svg><g/><![CDATA[a]]><foreignObject><![CDATA[b]]><div><![CDATA[c]]></div></foreignObject></svg>",
                "ab\n",
            ),
            ("<svg><p><![CDATA[a]]></svg>", ""),
            ("<svg/><![CDATA[a]]>b", "b\n"),
            ("<svg hidden><![CDATA[a]]></svg>b", "b\n"),
        ] {
            assert_eq!(text_of(Form::Html, page.as_bytes()), expected, "{page}");
        }
        assert_eq!(text_of(Form::Declared, b"<script>//<![CDATA[\nx</script><p>a<![CDATA[ < b]]>"), "a < b\n");
        for (page, in_xml, in_html) in [
            ("<p>a<![CDATA[if x < 5 > y]]>b</p>", "aif x < 5 > yb\n", "a y]]>b\n"),
            ("<p>a <![CDATA[<b>]] > &amp; ]>]]> b</p>", "a <b>]] > &amp; ]> b\n", "a ]] > & ]>]]> b\n"),
            ("a<![CDATA[]]><![CDATA[x]]]]><![CDATA[>]]>", "ax]]>\n", "a]]>\n"),
            ("<p hidden=''><![CDATA[x]]></p>a<![CDATA[y", "ay\n", "a\n"),
            ("<script><![CDATA[</script>]]></script>a<!-- <![CDATA[ -->b<i alt='<![CDATA['>c</i>", "abc\n", "]]>abc\n"),
        ] {
            assert_eq!(text_of(Form::Xhtml, page.as_bytes()), in_xml, "{page}");
            assert_eq!(text_of(Form::Html, page.as_bytes()), in_html, "{page}");
        }
        assert_eq!(text_of(Form::Html, b"caf\xe9 <b>\xff"), "caf\u{fffd} \u{fffd}\n");
    }

    #[test]
    fn hidden_elements_are_left_out_up_to_their_end() {
        for (page, expected) in [
            ("a<div hidden>b<p>c</p></div>d", "ad\n"),
            ("a<div hidden=until-found>b</div><p aria-hidden=true>c", "a\nb\nc\n"),
            ("a <b hidden=''>b</b> c", "a c\n"),
            ("<p style='Color:red; DISPLAY : none !important'>a<p>b", "b\n"),
            ("<p style='display:none;display:block'>a", "a\n"),
            ("<p style='visibility:hidden'>a<b style='visibility: visible'>b</b>c</p>d", "b\nd\n"),
            ("<p style='visibility:collapse'>a<p style='x-display:none'>b", "b\n"),
            ("<p style='display:none'><b style='visibility:visible'>a</b></p>b", "b\n"),
            ("<p hidden>a<div>b</div>", "b\n"),
            ("<ul><li hidden>a<li>b<ul><li hidden>c</ul>d</ul>", "b\nd\n"),
            ("<dl><dt hidden>a<dd>b<dt>c</dl>", "b\nc\n"),
            ("<h1 hidden>a<h2>b</h1>c", "b\nc\n"),
            ("<br hidden>a<img hidden alt=b><input hidden>c", "ac\n"),
            ("<table><tr><td hidden>a<td>b<tr hidden><td>c<tr><th>d</table>", "b\nd\n"),
            ("<table hidden>a<tr><td>b</table>c", "ac\n"),
            ("<table><tbody hidden><tr><td>a<tbody><tr><td>b</table>", "b\n"),
            ("<table><tr><td hidden><table><tr><td>a</table>b<td>c</table>", "c\n"),
            ("<select><option hidden>a<option>b<optgroup><option>c</select>", "b\nc\n"),
            ("<b hidden>a<p>b</b>c</p>d", "c\nd\n"),
            ("<p><b hidden>a</p><p>b</b>c", "c\n"),
            ("<p><b hidden><b hidden><b hidden><b hidden>a<p>b</b></b></b>c", "c\n"),
            ("<p><b hidden><i><i><i><i>a<p>b</i></i></i></b>c", "c\n"),
            ("<b><table><tr><td><b hidden>a<p>b<td>c</table>d", "\tc\nd\n"),
            ("<table hidden>a<table hidden>b<tr><td>c</table>d</table>e", "abd\ne\n"),
            ("<a hidden>a<a>b</a>c", "bc\n"),
            ("<div><span hidden>a</div>b", "b\n"),
            ("<button hidden>a<button>b</button>c", "bc\n"),
            ("<svg hidden><path/><text>a</text></svg>b<svg hidden/>c", "bc\n"),
            ("<svg hidden><g><p>a", "a\n"),
            ("<div hidden>a</span></p></li></td>b</div>c", "c\n"),
            ("<form>a<form hidden>b</form>c", "a\nb\nc\n"),
            ("<template><td hidden></template>a<td hidden>b", "a\tb\n"),
            ("<custom-element hidden>a<div>b</custom-element>c</div></custom-element>d", "d\n"),
        ] {
            assert_eq!(text_of(Form::Html, page.as_bytes()), expected, "{page}");
        }
        let page = b"<p hidden='hidden'>a<p>b</p></p>c<div hidden=''/>d<br hidden=''>e</br>f";
        assert_eq!(text_of(Form::Xhtml, page), "cdf\n");
    }

    /// A page as a tree of elements, and its source with some of the end tags that may be left out.
    struct Tree {
        source: String,
        words: Vec<String>,
        num_words: usize,
    }

    impl Tree {
        /// Writes an element with the children that it may have.
        fn element(&mut self, random: &mut Random, name: &str, is_seen: bool, depth: usize) {
            let children: &[&str] = match name {
                "ul" => &["li"],
                "dl" => &["dt", "dd"],
                "table" => &["tbody"],
                "tbody" => &["tr"],
                "tr" => &["td", "th"],
                "select" => &["option"],
                "p" | "h1" | "b" | "span" | "option" => &["b", "span", "br", "img"],
                _ => &["p", "div", "ul", "dl", "table", "h1", "b", "span", "select", "br", "section"],
            };
            let (hiding, is_hidden) = *random.pick(&[
                ("", false),
                ("", false),
                (" class=hidden aria-hidden=true", false),
                (" hidden", true),
                (" style='display:none'", true),
                (" style=\"color:red;visibility:hidden\"", true),
            ]);
            self.source += &format!("<{name}{hiding}>");
            if ["br", "img"].contains(&name) {
                return;
            }
            let is_seen = is_seen && !is_hidden;
            let is_of_words = !["ul", "dl", "table", "tbody", "tr", "select"].contains(&name);
            for _ in 0..random.below(4) {
                if is_of_words && random.one_in(2) {
                    let word = format!("w{}", self.num_words);
                    self.num_words += 1;
                    self.source += &format!(" {word} ");
                    if is_seen {
                        self.words.push(word);
                    }
                }
                let child = *random.pick(children);
                let may_nest = name == "option" || child != name || !["b", "p", "h1"].contains(&name);
                if depth > 0 && name != "option" && may_nest {
                    self.element(random, child, is_seen, depth - 1);
                }
            }
            // A parent or a neighbour of the same kind ends these.
            let is_left_out = ["li", "dt", "dd", "tbody", "tr", "td", "th", "option"].contains(&name);
            if !(is_left_out && random.one_in(2)) {
                self.source += &format!("</{name}>");
            }
        }
    }

    #[test]
    fn hidden_words_are_those_of_the_tree() {
        for case in 0..3000 {
            let random = &mut Random(case);
            let mut tree = Tree { source: String::new(), words: Vec::new(), num_words: 0 };
            tree.element(random, "div", true, 6);
            let text = text_of(Form::Html, tree.source.as_bytes());
            let got: Vec<&str> = text.split_ascii_whitespace().collect();
            assert_eq!(got, tree.words, "{}", tree.source);
        }
    }

    #[test]
    fn elements_lie_as_deep_as_browsers_take_them() {
        for tag in ["<div>", "<b>", "<span>", "<li>", "<svg>", "<table><tr><td>", "<custom>"] {
            let page = format!("{}a<p hidden>b<p>c", tag.repeat(20_000));
            let text = text_of(Form::Html, page.as_bytes());
            assert!(text.contains('a') && !text.contains('b') && text.contains('c'), "{tag}");
        }
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
            for form in [Form::Html, Form::Declared, Form::Xhtml] {
                text_of(form, &page);
            }
        }
    }
}
