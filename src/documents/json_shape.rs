//! The shape of rows of JSON: the kinds of values at each place, and the columns that they make.
//!
//! ```text
//! {"a": 1,   "b": {"c": "x"}}
//! {"a": 2.5, "b": null, "d": 7}           a: Float64   b: Struct(c: Utf8)   d: Utf8, with `[1]` as a text
//! {"d": [1]}
//! ```
//!
//! Values of several kinds are texts: numbers and texts, and also objects or lists and anything else. Fields stand in
//! the order of their names in the row that has them first. `serde_json` visits a row once, which checks it, too.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Returns if the field of a name is read.
pub type Wanted = dyn Fn(&str) -> bool;

/// The kinds of values at one place of all rows.
#[derive(Debug, Default)]
pub struct Shape {
    has_boolean: bool,
    has_integer: bool,
    has_float: bool,
    has_text: bool,
    /// True if the value is no column.
    pub is_left_out: bool,
    items: Option<Box<Shape>>,
    fields: Option<Box<Object>>,
}

/// The fields of the objects at one place.
#[derive(Debug, Default)]
struct Object {
    fields: Vec<(String, Shape)>,
    idx_by_name: HashMap<String, usize>,
}

impl Shape {
    /// Returns true if values are of several kinds, so that objects and lists are texts.
    pub fn is_mixed(&self) -> bool {
        let has_scalar = self.has_boolean || self.has_integer || self.has_float || self.has_text;
        let num_kinds = u8::from(has_scalar) + u8::from(self.items.is_some()) + u8::from(self.fields.is_some());
        num_kinds > 1
    }

    /// Returns true if values at this place or below are of several kinds.
    pub fn has_mixed(&self) -> bool {
        let mut fields = self.fields.iter().flat_map(|object| &object.fields);
        let has_mixed_items = self.items.as_ref().is_some_and(|items| items.has_mixed());
        self.is_mixed() || has_mixed_items || fields.any(|(_, shape)| shape.has_mixed())
    }

    /// Returns true if one of the values is a list.
    pub fn has_lists(&self) -> bool {
        self.items.is_some()
    }

    /// Returns the shape of the items of lists.
    pub fn items(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// Returns the shape of the field `name` of objects.
    pub fn field(&self, name: &str) -> Option<&Self> {
        let object = self.fields.as_ref()?;
        object.idx_by_name.get(name).map(|&idx| &object.fields[idx].1)
    }

    /// Returns the shape of the field `name` of objects, to be changed.
    pub fn field_mut(&mut self, name: &str) -> Option<&mut Self> {
        let object = self.fields.as_mut()?;
        object.idx_by_name.get(name).map(|&idx| &mut object.fields[idx].1)
    }

    /// Returns the columns of rows of this shape.
    pub fn columns(&self) -> Fields {
        let fields = self.fields.iter().flat_map(|object| &object.fields);
        let fields = fields.filter(|(_, shape)| !shape.is_left_out);
        fields.map(|(name, shape)| Field::new(name, shape.data_type(), true)).collect()
    }

    /// Returns the type of the values.
    pub fn data_type(&self) -> DataType {
        if self.is_mixed() {
            return DataType::Utf8;
        }
        if self.fields.is_some() {
            return DataType::Struct(self.columns());
        }
        if let Some(items) = &self.items {
            return DataType::List(item_field(items.data_type()));
        }
        match (self.has_boolean, self.has_integer || self.has_float, self.has_text) {
            (false, false, false) => DataType::Null,
            (true, false, false) => DataType::Boolean,
            (false, true, false) if self.has_float => DataType::Float64,
            (false, true, false) => DataType::Int64,
            _ => DataType::Utf8,
        }
    }

    /// Adds the object in `row`. Fields that are not `wanted` are checked, but their shapes do not count.
    ///
    /// # Errors
    /// `row` is no object; the shape has parts of it then.
    pub fn add(&mut self, row: &[u8], wanted: &dyn Fn(&str) -> bool) -> Result<(), serde_json::Error> {
        let mut json = serde_json::Deserializer::from_slice(row);
        json.deserialize_map(Row { shape: self, wanted })?;
        json.end()
    }
}

fn item_field(items: DataType) -> FieldRef {
    Arc::new(Field::new_list_field(items, true))
}

/// Visitor of a row.
struct Row<'a> {
    shape: &'a mut Shape,
    wanted: &'a dyn Fn(&str) -> bool,
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.shape.fields.get_or_insert_default().add(map, self.wanted)
    }
}

/// Visitor of a value.
struct Seen<'a>(&'a mut Shape);

impl<'de> DeserializeSeed<'de> for Seen<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seen<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.0.has_boolean = true;
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.0.has_integer = true;
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        match i64::try_from(number) {
            Ok(_) => self.0.has_integer = true,
            Err(_) => self.0.has_float = true,
        }
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.0.has_float = true;
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.0.has_text = true;
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let items = self.0.items.get_or_insert_default();
        while list.next_element_seed(Seen(items))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.fields.get_or_insert_default().add(map, &|_| true)
    }
}

impl Object {
    fn add<'de, A: MapAccess<'de>>(&mut self, mut map: A, wanted: &dyn Fn(&str) -> bool) -> Result<(), A::Error> {
        let num_known = self.fields.len();
        // Rows have their fields in one order, mostly.
        let mut next = 0;
        while let Some(idx) = map.next_key_seed(Name { object: self, next, wanted })? {
            match idx {
                Some(idx) => {
                    map.next_value_seed(Seen(&mut self.fields[idx].1))?;
                    next = idx + 1;
                }
                None => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        let new = &mut self.fields[num_known..];
        if !new.is_empty() {
            new.sort_by(|(left, _), (right, _)| left.cmp(right));
            let places = new.iter().enumerate().map(|(idx, (name, _))| (name.clone(), num_known + idx));
            self.idx_by_name.extend(places);
        }
        Ok(())
    }

    fn idx(&mut self, name: &str, next: usize) -> usize {
        if self.fields.get(next).is_some_and(|(known, _)| known == name) {
            return next;
        }
        if let Some(&idx) = self.idx_by_name.get(name) {
            return idx;
        }
        self.idx_by_name.insert(name.to_owned(), self.fields.len());
        self.fields.push((name.to_owned(), Shape::default()));
        self.fields.len() - 1
    }
}

/// Visitor of the name of a field, which returns its place.
struct Name<'a> {
    object: &'a mut Object,
    next: usize,
    wanted: &'a dyn Fn(&str) -> bool,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<Option<usize>, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Option<usize>, E> {
        Ok((self.wanted)(name).then(|| self.object.idx(name, self.next)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow::json::reader::infer_json_schema;
    use serde_json::{Map, Value, json};
    use testkit::random::Random;

    use super::*;

    fn shape(rows: &[Value]) -> Shape {
        let mut shape = Shape::default();
        rows.iter().for_each(|row| shape.add(row.to_string().as_bytes(), &|_| true).unwrap());
        shape
    }

    fn scalar(random: &mut Random) -> Value {
        random.pick(&[json!(1), json!(0.5), json!(u64::MAX), json!("x"), json!(true), Value::Null]).clone()
    }

    fn row(random: &mut Random, depth: usize) -> Value {
        let names = ["b", "a", "c", "e", "d"];
        let mut object = Map::new();
        for _ in 0..random.below(4) {
            let name = *random.pick(&names);
            let value = match (name, depth) {
                ("b", 1..) => row_or_null(random, depth - 1),
                // Arrow takes a list of nulls for texts.
                ("c", _) => (0..random.below(3)).map(|_| scalar(random)).filter(|item| !item.is_null()).collect(),
                ("e", 1..) => (0..random.below(3)).map(|_| row(random, depth - 1)).collect(),
                ("b" | "e", _) => continue,
                _ => scalar(random),
            };
            object.insert(name.to_owned(), value);
        }
        Value::Object(object)
    }

    fn row_or_null(random: &mut Random, depth: usize) -> Value {
        if random.below(4) == 0 { Value::Null } else { row(random, depth) }
    }

    #[test]
    fn shapes_are_those_of_arrow() {
        for case in 0..3000 {
            let random = &mut Random(case);
            let rows: Vec<Value> = (0..1 + random.below(6)).map(|_| row(random, 2)).collect();
            let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
            let (schema, _) = infer_json_schema(Cursor::new(&lines), None).unwrap();
            let shape = shape(&rows);
            assert_eq!(&shape.columns(), schema.fields(), "{case}: {lines}");
            assert!(!shape.has_mixed());
        }
    }

    #[test]
    fn several_kinds_are_texts() {
        let rows = [json!({"a": {}, "b": [1], "c": null}), json!({"a": 1, "b": [[2]], "c": {"d": [1]}})];
        let rows = [&rows[..], &[json!({"c": {"d": {}}})]].concat();
        let shape = shape(&rows);
        let kinds: Vec<String> = shape.columns().iter().map(|field| field.data_type().to_string()).collect();
        assert_eq!(kinds, ["Utf8", "List(Utf8)", "Struct(\"d\": Utf8)"]);
        assert!(shape.has_mixed() && !shape.is_mixed() && shape.field("a").unwrap().is_mixed());
        assert!(shape.field("b").unwrap().items().unwrap().is_mixed());
    }
}
