//! Strict reading of one JSON object: takes known members, collects every error with its path (S4-046).

use std::collections::BTreeSet;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::parse::{kind, short};

/// The members of one object that are still to be read.
pub(super) struct Members<'a> {
    path: String,
    map: &'a Map<String, Value>,
    errors: &'a mut Vec<String>,
    known: BTreeSet<&'static str>,
}

/// A closed vocabulary with some first value, used only where an error was recorded.
pub(super) trait Word: FromStr + Copy + 'static {
    const FIRST: Self;
}

macro_rules! first_word {
    ($($name:ident :: $first:ident),*) => {$(
        impl Word for crate::vocab::$name { const FIRST: Self = Self::$first; }
    )*};
}
first_word!(Verdict::Revert, RecoverySignal::None, Severity::Critical, CriterionOutcome::Fail);

impl<'a> Members<'a> {
    pub(super) fn new(path: String, map: &'a Map<String, Value>, errors: &'a mut Vec<String>) -> Self {
        Self { path, map, errors, known: BTreeSet::new() }
    }

    fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn fail(&mut self, name: &str, what: &str) {
        let place = self.at(name);
        self.errors.push(format!("{place}: {what}"));
    }

    fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.insert(name);
        let found = self.map.get(name);
        if found.is_none() {
            self.fail(name, "missing");
        }
        found
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Marks a member as read elsewhere.
    pub(super) fn skip(&mut self, name: &'static str) {
        self.known.insert(name);
    }

    pub(super) fn text(&mut self, name: &'static str) -> String {
        match self.take(name) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => {
                self.fail(name, &format!("must be a text, is {}", kind(other)));
                String::new()
            }
        }
    }

    pub(super) fn integer(&mut self, name: &'static str) -> i64 {
        let Some(value) = self.take(name) else {
            return 0;
        };
        // JSON Schema counts 2.0 as an integer, and some agents write it so.
        let whole = value.as_i64().or_else(|| {
            value.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9_007_199_254_740_992.0).map(|f| f as i64)
        });
        whole.unwrap_or_else(|| {
            self.fail(name, &format!("must be an integer, is {}", kind(value)));
            0
        })
    }

    pub(super) fn word<W: Word>(&mut self, name: &'static str, rule: &str) -> W {
        let Some(value) = self.take(name) else {
            return W::FIRST;
        };
        match value.as_str().and_then(|text| text.parse().ok()) {
            Some(word) => word,
            None => {
                self.fail(name, &format!("{rule} It is {}.", short(value)));
                W::FIRST
            }
        }
    }

    fn list(&mut self, name: &'static str) -> &'a [Value] {
        match self.take(name) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.fail(name, &format!("must be a list, is {}", kind(other)));
                &[]
            }
        }
    }

    pub(super) fn texts(&mut self, name: &'static str) -> Vec<String> {
        let mut out = Vec::new();
        for (place, item) in self.list(name).iter().enumerate() {
            match item {
                Value::String(text) => out.push(text.clone()),
                other => self.fail(&format!("{name}[{place}]"), &format!("must be a text, is {}", kind(other))),
            }
        }
        out
    }

    pub(super) fn object(&mut self, name: &'static str, read: impl FnOnce(&mut Members<'_>)) {
        match self.take(name) {
            None => {}
            Some(Value::Object(map)) => {
                let path = self.at(name);
                let mut inner = Members::new(path, map, self.errors);
                read(&mut inner);
                inner.finish();
            }
            Some(other) => self.fail(name, &format!("must be an object, is {}", kind(other))),
        }
    }

    pub(super) fn objects<T>(&mut self, name: &'static str, read: impl Fn(&mut Members<'_>) -> T) -> Vec<T> {
        let mut out = Vec::new();
        for (place, item) in self.list(name).iter().enumerate() {
            let path = format!("{name}[{place}]");
            match item {
                Value::Object(map) => {
                    let path = self.at(&path);
                    let mut inner = Members::new(path, map, self.errors);
                    out.push(read(&mut inner));
                    inner.finish();
                }
                other => self.fail(&path, &format!("must be an object, is {}", kind(other))),
            }
        }
        out
    }

    /// Reports every member that nobody asked for.
    pub(super) fn finish(&mut self) {
        let unknown: Vec<String> =
            self.map.keys().filter(|name| !self.known.contains(name.as_str())).take(20).cloned().collect();
        for name in unknown {
            let shown: String = name.chars().take(60).collect();
            self.fail(&shown, "unknown member");
        }
    }
}
