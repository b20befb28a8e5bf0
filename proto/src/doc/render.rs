//! Text of a document, as the predecessor's users know it.

use serde::Serialize;
use serde_json::Value;

/// Renders a document; see [`render_value`].
///
/// # Panics
/// Never for our documents: they hold only texts, numbers, lists and objects with text keys.
#[must_use]
pub fn render(doc: &impl Serialize) -> String {
    let value = serde_json::to_value(doc).expect("documents have text keys and finite numbers");
    render_value(&value)
}

/// Renders a JSON value with 2-space indent, sorted keys, everything outside printable ASCII escaped, one newline at the end.
#[must_use]
pub fn render_value(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out.push('\n');
    out
}

fn write(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&n.to_string()),
        Value::String(text) => quote(text, out),
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place == 0 { "[\n" } else { ",\n" });
                indent(depth + 1, out);
                write(item, depth + 1, out);
            }
            out.push('\n');
            indent(depth, out);
            out.push(']');
        }
        Value::Object(members) if members.is_empty() => out.push_str("{}"),
        Value::Object(members) => {
            // Sorted here and not left to the map: its order is a feature flag of serde_json that any crate can turn on.
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            for (place, (key, item)) in sorted.into_iter().enumerate() {
                out.push_str(if place == 0 { "{\n" } else { ",\n" });
                indent(depth + 1, out);
                quote(key, out);
                out.push_str(": ");
                write(item, depth + 1, out);
            }
            out.push('\n');
            indent(depth, out);
            out.push('}');
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            other => {
                let mut units = [0u16; 2];
                for unit in other.encode_utf16(&mut units) {
                    out.push_str("\\u");
                    for shift in [12u16, 8, 4, 0] {
                        let digit = u32::from((*unit >> shift) & 0xf);
                        out.push(char::from_digit(digit, 16).expect("four bits are one hex digit"));
                    }
                }
            }
        }
    }
    out.push('"');
}
