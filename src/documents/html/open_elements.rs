//! The open elements of a page, and if a reader sees what stands in them.
//!
//! ```text
//! <div hidden><p>a</div>b         div ends p: b is seen
//! <p hidden>a<p>b                 p ends p: b is seen
//! <li style="display:none">a<li>b li ends li: b is seen
//! <b hidden>a<p>b</b>c            b goes on in p, up to its end: c is seen
//! <table hidden>a<tr><td>b        text of a table outside its cells stands before it: a is seen
//! ```
//!
//! There is no tree, only the path to the place that is read. Source: the WHATWG standard of HTML, 13.2.6,
//! the parts that say which elements a tag ends: scopes, implied end tags, formatting elements that are
//! opened again, and the adoption agency. Not followed are frames, the order of `head` and `body`, and what
//! may stand in `select`. Elements lie at most [`MAX_DEPTH`] deep, as in browsers, and a few formatting
//! elements are opened again. So time is linear in the bytes.

use super::Form;

/// Most elements that are open at once. A deeper one ends its neighbour.
const MAX_DEPTH: usize = 512;
/// Most formatting elements of one name and look that are opened again, as in browsers. They also look at the
/// other attributes, which make no difference here.
const MAX_ALIKE: usize = 3;
/// Most formatting elements that are opened again at one place: as many as there are names, and some of
/// another look.
const MAX_FORMATTING: usize = 48;

/// Properties of elements, as bits.
type Kinds = u32;

const SPECIAL: Kinds = 1;
/// Ends the search for an element in scope.
const SCOPE: Kinds = 1 << 1;
const FORMATTING: Kinds = 1 << 2;
const VOID: Kinds = 1 << 3;
/// Its start tag ends an open `p`.
const ENDS_P: Kinds = 1 << 4;
const HEADING: Kinds = 1 << 5;
const LIST: Kinds = 1 << 6;
/// `dd` and `dt`.
const TERM: Kinds = 1 << 7;
const CELL: Kinds = 1 << 8;
/// `tbody`, `thead` and `tfoot`.
const SECTION: Kinds = 1 << 9;
/// `svg` and `math`.
const FOREIGN: Kinds = 1 << 10;
/// Ends elements of SVG and MathML.
const BREAKOUT: Kinds = 1 << 11;
/// Contents that are never seen.
const UNSEEN: Kinds = 1 << 12;
/// White space stays.
const PREFORMATTED: Kinds = 1 << 13;
/// Formatting elements outside stay closed in it.
const MARKER: Kinds = 1 << 14;
/// HTML stands in it again, inside SVG.
const INTEGRATION: Kinds = 1 << 15;
const PAGE: Kinds = 1 << 16;

/// Names of elements with the same properties.
const GROUPS: &[(&str, Kinds)] = &[
    ("p", SPECIAL | ENDS_P | BREAKOUT),
    ("div dl ol ul menu center blockquote", SPECIAL | ENDS_P | BREAKOUT),
    ("li", SPECIAL | LIST | BREAKOUT),
    ("dd dt", SPECIAL | TERM | BREAKOUT),
    ("h1 h2 h3 h4 h5 h6", SPECIAL | ENDS_P | HEADING | BREAKOUT),
    ("address article aside details dir fieldset figcaption figure footer form", SPECIAL | ENDS_P),
    ("header hgroup main nav plaintext search section summary xmp", SPECIAL | ENDS_P),
    ("dialog", ENDS_P),
    ("pre listing", SPECIAL | ENDS_P | PREFORMATTED | BREAKOUT),
    ("textarea", SPECIAL | PREFORMATTED),
    ("table", SPECIAL | ENDS_P | SCOPE | BREAKOUT),
    ("hr", SPECIAL | ENDS_P | VOID | BREAKOUT),
    ("td th", SPECIAL | SCOPE | CELL | MARKER),
    ("tr", SPECIAL),
    ("tbody thead tfoot", SPECIAL | SECTION),
    ("caption", SPECIAL | SCOPE | MARKER),
    ("colgroup select title button", SPECIAL),
    ("applet marquee object", SPECIAL | SCOPE | MARKER),
    ("template", SPECIAL | SCOPE | MARKER | UNSEEN),
    ("script style noscript iframe noembed noframes", SPECIAL | UNSEEN),
    ("a big font", FORMATTING),
    ("b code em i nobr s small strike strong tt u", FORMATTING | BREAKOUT),
    ("br img embed", SPECIAL | VOID | BREAKOUT),
    ("area base basefont bgsound col frame input keygen link meta param source track wbr", SPECIAL | VOID),
    ("span ruby sub sup var", BREAKOUT),
    ("svg math", FOREIGN),
    ("foreignobject desc annotation-xml", INTEGRATION | SCOPE),
    ("html head body", PAGE),
];
/// Places of the table of names. Three in four are free.
const NUM_PLACES: usize = 512;

/// The elements of [`GROUPS`], each at the next free place from its hash on.
static PLACES: [(Name, Kinds); NUM_PLACES] = table();

const fn table() -> [(Name, Kinds); NUM_PLACES] {
    let mut table = [(Name(0), 0); NUM_PLACES];
    let mut group = 0;
    while group < GROUPS.len() {
        let (names, kinds) = GROUPS[group];
        let mut rest = names.as_bytes();
        while !rest.is_empty() {
            let mut len = 0;
            while len < rest.len() && rest[len] != b' ' {
                len += 1;
            }
            let (name, behind) = rest.split_at(len);
            let name = Name::new(name);
            let mut place = name.place();
            while table[place].1 != 0 {
                place = (place + 1) % NUM_PLACES;
            }
            table[place] = (name, kinds);
            rest = if behind.is_empty() { behind } else { behind.split_at(1).1 };
        }
        group += 1;
    }
    table
}

/// Returns the properties of the element `name`.
fn kinds(name: Name) -> Kinds {
    let mut place = name.place();
    loop {
        let (other, kinds) = PLACES[place];
        if other == name || kinds == 0 {
            return kinds;
        }
        place = (place + 1) % NUM_PLACES;
    }
}

/// A name of an element, by its hash (FNV-1a).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name(u64);

impl Name {
    const fn new(name: &[u8]) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut idx = 0;
        while idx < name.len() {
            hash = (hash ^ name[idx] as u64).wrapping_mul(0x100_0000_01b3);
            idx += 1;
        }
        Self(hash)
    }

    const fn place(self) -> usize {
        (self.0 % NUM_PLACES as u64) as usize
    }
}

const P: Name = Name::new(b"p");
const A: Name = Name::new(b"a");
const NOBR: Name = Name::new(b"nobr");
const BUTTON: Name = Name::new(b"button");
const DIV: Name = Name::new(b"div");
const ADDRESS: Name = Name::new(b"address");
const FORM: Name = Name::new(b"form");
const HEAD: Name = Name::new(b"head");
const SELECT: Name = Name::new(b"select");
const OPTION: Name = Name::new(b"option");
const OPTGROUP: Name = Name::new(b"optgroup");
const TABLE: Name = Name::new(b"table");
const TR: Name = Name::new(b"tr");
const TEMPLATE: Name = Name::new(b"template");
const UL: Name = Name::new(b"ul");
const OL: Name = Name::new(b"ol");
const CAPTION: Name = Name::new(b"caption");
const COLGROUP: Name = Name::new(b"colgroup");

/// The visibility that the attributes of an element give its contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// True if the element takes no place: `hidden`, or `display: none`.
    pub is_gone: bool,
    /// True or false for `visibility`, or none without it.
    pub is_visible: Option<bool>,
}

impl Look {
    /// Returns `look` with what `style`, the value of that attribute, says. Of two values the last one counts.
    pub fn from_style(style: &[u8], look: Self) -> Self {
        let style = style.to_ascii_lowercase();
        let mut look = look;
        let mut is_shown = None;
        for declaration in style.split(|&byte| byte == b';') {
            let Some(colon) = declaration.iter().position(|&byte| byte == b':') else { continue };
            let (name, value) = declaration.split_at(colon);
            let value = value[1..].split(|&byte| byte == b'!').next().unwrap_or_default().trim_ascii();
            match name.trim_ascii() {
                b"display" => is_shown = Some(value != b"none"),
                b"visibility" => match value {
                    b"hidden" | b"collapse" => look.is_visible = Some(false),
                    b"visible" | b"initial" => look.is_visible = Some(true),
                    _ => {}
                },
                _ => {}
            }
        }
        // A style is stronger than the attribute `hidden`.
        look.is_gone = is_shown.map_or(look.is_gone, |is_shown| !is_shown);
        look
    }
}

/// The visibility of text at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// It is seen.
    Seen,
    /// It takes place and is not seen.
    Invisible,
    /// It takes no place.
    Gone,
}

#[derive(Debug, Clone, Copy)]
struct Element {
    name: Name,
    kinds: Kinds,
    look: Look,
    /// With the elements around it.
    sight: Sight,
    is_preformatted: bool,
    /// Number of a formatting element, which it keeps where it is opened again, or 0.
    number: usize,
    /// Sight of text in front of the table that is around it.
    before_table: Option<Sight>,
}

/// A formatting element that is not ended.
#[derive(Debug, Clone, Copy)]
struct Formatting {
    element: Element,
    /// False if another element ended it, so that it is opened again before the next text.
    is_open: bool,
}

/// The elements around the place that is read.
pub struct OpenElements {
    form: Form,
    elements: Vec<Element>,
    /// Formatting elements that are not ended, in the order of their numbers.
    formatting: Vec<Formatting>,
    /// Number of those that are outside each open marker, such as a cell.
    scopes: Vec<usize>,
    num_formatting: usize,
    num_foreign: usize,
}

impl OpenElements {
    /// Begins a page.
    pub fn new(form: Form) -> Self {
        let elements = Vec::new();
        let formatting = Vec::new();
        let scopes = Vec::new();
        Self { form, elements, formatting, scopes, num_formatting: 0, num_foreign: 0 }
    }

    /// Returns how a reader sees text at this place.
    pub fn sight(&self) -> Sight {
        self.sight_below(false)
    }

    /// Returns true if the innermost element is one of SVG or MathML.
    pub fn is_in_foreign(&self) -> bool {
        if self.num_foreign == 0 {
            return false;
        }
        let innermost = |kind| self.elements.iter().rposition(|element| element.kinds & kind != 0);
        let integration = innermost(INTEGRATION).filter(|at| at + 1 < self.elements.len());
        innermost(FOREIGN) > integration
    }

    /// Returns true if white space stays at this place.
    pub fn is_preformatted(&self) -> bool {
        self.elements.last().is_some_and(|element| element.is_preformatted)
    }

    /// Opens formatting elements that others ended, which text or an element at this place makes necessary.
    pub fn begin_text(&mut self) {
        let from = self.marker();
        for idx in from..self.formatting.len() {
            let formatting = &mut self.formatting[idx];
            if !formatting.is_open && self.elements.len() < MAX_DEPTH {
                formatting.is_open = true;
                let element = formatting.element;
                self.push(element);
            }
        }
    }

    /// Opens the element `name`, and ends those that it ends. Returns how a reader sees it.
    pub fn start(&mut self, name: &[u8], look: Look, is_self_closing: bool) -> Sight {
        let name = Name::new(name);
        let kinds = kinds(name);
        let look = Look { is_gone: look.is_gone || kinds & UNSEEN != 0, ..look };
        if self.form != Form::Xhtml {
            // The head is never seen, and its title is text nevertheless.
            let is_first = name != HEAD && self.elements.iter().all(|element| element.kinds & PAGE != 0);
            if kinds & PAGE != 0 && !is_first {
                return self.sight();
            }
            if !self.make_room(name, kinds) {
                return self.sight();
            }
        }
        let sight = self.seen(look, self.sight_for(kinds, name));
        let is_preformatted = kinds & PREFORMATTED != 0 || self.is_preformatted();
        let mut element = Element { name, kinds, look, sight, is_preformatted, number: 0, before_table: None };
        let is_foreign = kinds & FOREIGN != 0 || self.num_foreign > 0;
        let is_empty = is_self_closing && (self.form != Form::Html || is_foreign);
        if is_empty || (self.form != Form::Xhtml && kinds & VOID != 0) {
            return sight;
        }
        if self.form != Form::Xhtml && kinds & FORMATTING != 0 {
            self.num_formatting += 1;
            element.number = self.num_formatting;
        }
        self.push(element);
        if self.form != Form::Xhtml && kinds & MARKER != 0 {
            self.scopes.push(self.formatting.len());
        }
        if element.number > 0 {
            self.note(element);
        }
        sight
    }

    /// Notes a formatting element that is to be opened again, instead of the first one of too many that are
    /// alike.
    fn note(&mut self, element: Element) {
        let from = self.marker();
        let places = from..self.formatting.len();
        let is_alike = |at: &usize| {
            let other = self.formatting[*at].element;
            other.name == element.name && other.look == element.look
        };
        let alike: Vec<usize> = places.filter(is_alike).collect();
        if let Some(first) = alike.first().filter(|_| alike.len() >= MAX_ALIKE) {
            self.formatting.remove(*first);
        }
        if self.formatting.len() < from + MAX_FORMATTING {
            self.formatting.push(Formatting { element, is_open: true });
        }
    }

    /// Ends the element `name`, if it is open here.
    pub fn end(&mut self, name: &[u8]) {
        let name = Name::new(name);
        let kinds = kinds(name);
        if self.form == Form::Xhtml {
            if let Some(at) = self.elements.iter().rposition(|element| element.name == name) {
                self.end_from(at);
            }
            return;
        }
        let found = match () {
            () if kinds & PAGE != 0 => None,
            () if kinds & FORMATTING != 0 && self.end_formatting(name) => None,
            () if name == TEMPLATE => self.elements.iter().rposition(|element| element.name == TEMPLATE),
            () if name == P => self.in_scope(|element| element.name == P, |element| element.name == BUTTON),
            () if kinds & LIST != 0 => self.in_scope(|element| element.name == name, is_list),
            () if kinds & HEADING != 0 => self.in_scope(|element| element.kinds & HEADING != 0, never),
            () if kinds & (CELL | SECTION) != 0 || [TABLE, TR, CAPTION].contains(&name) => self.in_table(name),
            () if kinds & (SPECIAL | ENDS_P) != 0 => self.in_scope(|element| element.name == name, never),
            () => self.any_other(name),
        };
        if let Some(at) = found {
            self.end_from(at);
        }
    }

    /// Ends the elements that the start tag `name` ends, and opens formatting elements again. Returns false if the tag
    /// means nothing here.
    fn make_room(&mut self, name: Name, kinds: Kinds) -> bool {
        if self.num_foreign > 0 && kinds & BREAKOUT != 0 {
            let inner = self.elements.iter().rposition(|element| element.kinds & INTEGRATION != 0);
            let from = inner.map_or(0, |at| at + 1);
            if let Some(at) = self.elements[from..].iter().position(|element| element.kinds & FOREIGN != 0) {
                self.end_from(from + at);
            }
        }
        if kinds & (CELL | SECTION) != 0 || [TR, CAPTION, COLGROUP].contains(&name) {
            return self.make_room_in_table(name, kinds);
        }
        // A form inside a form means nothing.
        if name == FORM && self.elements.iter().any(|element| element.name == FORM) {
            return false;
        }
        if kinds & LIST != 0 {
            self.end_neighbour(LIST);
        }
        if kinds & TERM != 0 {
            self.end_neighbour(TERM);
        }
        if kinds & (ENDS_P | LIST | TERM) != 0
            && let Some(at) = self.in_scope(|element| element.name == P, |element| element.name == BUTTON)
        {
            self.end_from(at);
        }
        let top = self.elements.last().copied();
        let is_on_top = |name: Name| top.is_some_and(|element| element.name == name);
        if kinds & HEADING != 0 && top.is_some_and(|element| element.kinds & HEADING != 0) {
            self.end_from(self.elements.len() - 1);
        }
        if (name == OPTION || name == OPTGROUP) && is_on_top(OPTION) {
            self.end_from(self.elements.len() - 1);
        }
        if name == OPTGROUP && self.elements.last().is_some_and(|element| element.name == OPTGROUP) {
            self.end_from(self.elements.len() - 1);
        }
        if name == BUTTON
            && let Some(at) = self.in_scope(|element| element.name == BUTTON, never)
        {
            self.end_from(at);
        }
        if name == A && self.active(A).is_some() || name == NOBR && self.active(NOBR).is_some() {
            self.end_formatting(name);
        }
        let begins_text = kinds & (SPECIAL | ENDS_P) == 0 || kinds & (VOID | MARKER) != 0;
        if begins_text || name == BUTTON || name == SELECT {
            self.begin_text();
        }
        true
    }

    /// Ends the elements of a table that the start tag of a cell, row or section ends. Outside tables such a tag means
    /// nothing.
    fn make_room_in_table(&mut self, name: Name, kinds: Kinds) -> bool {
        let is_border = |element: &Element| element.name == TABLE || element.name == TEMPLATE;
        let Some(border) = self.elements.iter().rposition(is_border) else { return false };
        // The row, section or table that the new part stands in.
        let holds = |element: &Element| match () {
            () if kinds & CELL != 0 => element.name == TR || element.kinds & SECTION != 0,
            () if name == TR => element.kinds & SECTION != 0,
            () => false,
        };
        let holder = self.elements[border + 1..].iter().rposition(holds).map_or(border, |at| border + 1 + at);
        self.end_from(holder + 1);
        true
    }

    /// Ends the open element of a list, of the properties `kinds`, that a next one ends.
    fn end_neighbour(&mut self, kinds: Kinds) {
        for at in (0..self.elements.len()).rev() {
            let element = self.elements[at];
            if element.kinds & kinds != 0 {
                self.end_from(at);
                return;
            }
            let is_passed = [ADDRESS, DIV, P].contains(&element.name);
            if element.kinds & SPECIAL != 0 && !is_passed {
                return;
            }
        }
    }

    /// Returns the place of the innermost element that is `wanted`, with no border of a scope above it.
    fn in_scope(&self, wanted: impl Fn(&Element) -> bool, is_border: impl Fn(&Element) -> bool) -> Option<usize> {
        let places = self.elements.iter().enumerate().rev();
        for (at, element) in places {
            if wanted(element) {
                return Some(at);
            }
            if element.kinds & SCOPE != 0 || is_border(element) {
                return None;
            }
        }
        None
    }

    /// Returns the place of the element `name` of the innermost table.
    fn in_table(&self, name: Name) -> Option<usize> {
        let places = self.elements.iter().enumerate().rev();
        for (at, element) in places {
            if element.name == name {
                return Some(at);
            }
            if element.name == TABLE || element.name == TEMPLATE {
                return None;
            }
        }
        None
    }

    /// Returns the place of the element `name` if it is no special one and none is above it.
    fn any_other(&self, name: Name) -> Option<usize> {
        let places = self.elements.iter().enumerate().rev();
        for (at, element) in places {
            if element.name == name {
                return Some(at);
            }
            if element.kinds & SPECIAL != 0 {
                return None;
            }
        }
        None
    }

    /// Ends the element at `at` and those in it.
    fn end_from(&mut self, at: usize) {
        while self.elements.len() > at {
            let Some(element) = self.elements.pop() else { return };
            self.forget(element);
        }
    }

    /// Notes that `element` is no longer open.
    fn forget(&mut self, element: Element) {
        self.num_foreign -= usize::from(element.kinds & FOREIGN != 0);
        if self.form == Form::Xhtml {
            return;
        }
        if element.kinds & MARKER != 0 {
            let outside = self.scopes.pop().unwrap_or(self.formatting.len());
            self.formatting.truncate(outside);
        } else if element.number > 0 {
            let number = |formatting: &Formatting| formatting.element.number;
            if let Ok(at) = self.formatting.binary_search_by_key(&element.number, number) {
                self.formatting[at].is_open = false;
            }
        }
    }

    fn push(&mut self, element: Element) {
        if self.elements.len() == MAX_DEPTH {
            self.end_from(MAX_DEPTH - 1);
        }
        let sight = self.seen(element.look, self.sight_for(element.kinds, element.name));
        let before_table = match self.elements.last() {
            _ if element.name == TABLE => Some(self.sight_below(false)),
            around => around.and_then(|around| around.before_table),
        };
        self.num_foreign += usize::from(element.kinds & FOREIGN != 0);
        self.elements.push(Element { sight, before_table, ..element });
    }

    /// Returns the place of the first formatting element behind the last marker.
    fn marker(&self) -> usize {
        self.scopes.last().copied().unwrap_or_default()
    }

    /// Returns the place of the formatting element `name` that is not ended.
    fn active(&self, name: Name) -> Option<usize> {
        let from = self.marker();
        let is_it = |formatting: &Formatting| formatting.element.name == name;
        self.formatting[from..].iter().rposition(is_it).map(|at| from + at)
    }

    /// Ends a formatting element, also where other elements are open in it: these stay open. Returns false if it is
    /// none of those that are not ended.
    fn end_formatting(&mut self, name: Name) -> bool {
        let Some(at) = self.active(name) else { return false };
        let Formatting { element: Element { number, .. }, is_open } = self.formatting[at];
        let place = self.elements.iter().rposition(|element| element.number == number).filter(|_| is_open);
        let Some(place) = place else {
            self.formatting.remove(at);
            return true;
        };
        let above = &self.elements[place + 1..];
        let Some(block) = above.iter().rposition(|element| element.kinds & SPECIAL != 0) else {
            self.end_from(place);
            self.formatting.remove(at);
            return true;
        };
        self.end_from(place + 1 + block + 1);
        self.formatting.remove(at);
        let rest = self.elements.split_off(place);
        for element in rest.into_iter().skip(1) {
            if element.kinds & (SPECIAL | FORMATTING) != 0 {
                self.num_foreign -= usize::from(element.kinds & FOREIGN != 0);
                self.push(element);
            } else {
                self.forget(element);
            }
        }
        true
    }

    /// Returns how an element with `look` is seen in a place that is seen as `around`.
    fn seen(&self, look: Look, around: Sight) -> Sight {
        match look {
            _ if around == Sight::Gone => Sight::Gone,
            Look { is_gone: true, .. } => Sight::Gone,
            Look { is_visible: Some(true), .. } => Sight::Seen,
            Look { is_visible: Some(false), .. } => Sight::Invisible,
            Look { is_visible: None, .. } => around,
        }
    }

    /// Returns how the place of a new element is seen.
    fn sight_for(&self, kinds: Kinds, name: Name) -> Sight {
        let is_of_table = kinds & (CELL | SECTION) != 0 || [TR, CAPTION, COLGROUP].contains(&name);
        let is_hidden_part = kinds & UNSEEN != 0;
        self.sight_below(is_of_table || is_hidden_part)
    }

    /// Returns how text or an element is seen at this place. In a table it stands before the table, unless it
    /// is of the table.
    fn sight_below(&self, is_of_table: bool) -> Sight {
        let Some(element) = self.elements.last() else { return Sight::Seen };
        let is_table = element.name == TABLE || element.name == TR || element.kinds & SECTION != 0;
        if !is_table || is_of_table || self.form == Form::Xhtml {
            return element.sight;
        }
        element.before_table.unwrap_or(element.sight)
    }
}

fn never(_: &Element) -> bool {
    false
}

fn is_list(element: &Element) -> bool {
    element.name == UL || element.name == OL
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the largest numbers of open elements and of formatting elements while tags are read. A `.` is
    /// text.
    fn largest(tags: &str, num_times: usize) -> (usize, usize) {
        let mut open = OpenElements::new(Form::Html);
        let mut largest = (0, 0);
        for tag in std::iter::repeat_n(tags, num_times).flat_map(|tags| tags.split(' ')) {
            match tag.strip_prefix('/') {
                Some(name) => open.end(name.as_bytes()),
                None if tag == "." => open.begin_text(),
                None => {
                    let (name, is_gone) = tag.strip_suffix('!').map_or((tag, false), |name| (name, true));
                    open.start(name.as_bytes(), Look { is_gone, ..Look::default() }, false);
                }
            }
            largest = (largest.0.max(open.elements.len()), largest.1.max(open.formatting.len()));
        }
        largest
    }

    /// Each text opens the formatting elements again, so there may only be a few.
    #[test]
    fn few_formatting_elements_are_opened_again() {
        for tags in [
            "p font .",
            "p b . /p",
            "p a b i .",
            "p b! i! b i .",
            "div p b . /div",
            "li b .",
            "p a b i code em big font s small strike strong tt u nobr .",
            "p a! b i! code em! big font! s small! strike strong! tt u! nobr b! i em .",
        ] {
            let (num_elements, num_formatting) = largest(tags, 2_000);
            assert!(num_formatting <= MAX_FORMATTING, "{tags}: {num_formatting}");
            assert!(num_elements <= 3 * MAX_FORMATTING || tags.starts_with("div"), "{tags}: {num_elements}");
        }
    }

    /// Formatting elements of other cells are not opened again here.
    #[test]
    fn cells_have_formatting_elements_of_their_own() {
        let mut open = OpenElements::new(Form::Html);
        let start = |open: &mut OpenElements, name: &str| open.start(name.as_bytes(), Look::default(), false);
        for name in ["b", "b", "table", "tr", "td", "b", "b", "b", "b", "p"] {
            start(&mut open, name);
        }
        assert_eq!((open.formatting.len(), open.marker()), (5, 2));
        open.end(b"table");
        assert_eq!(open.formatting.iter().map(|formatting| formatting.is_open).collect::<Vec<_>>(), [true; 2]);
    }
}
