//! English nouns, as far as a tool's texts need them.

/// Words that end in `-ies` and keep the `e` in the singular.
const IE_WORDS: [&str; 7] = ["movies", "cookies", "ties", "pies", "selfies", "hoodies", "smoothies"];

/// Singulars that no rule gives, with their plurals.
const IRREGULAR: [(&str, &str); 10] = [
    ("bus", "buses"),
    ("person", "people"),
    ("child", "children"),
    ("book", "books"),
    ("cache", "caches"),
    ("shelf", "shelves"),
    ("knife", "knives"),
    ("series", "series"),
    ("quiz", "quizzes"),
    ("mouse", "mice"),
];

/// Returns the singular of a lower-case noun; a singular stays as it is.
pub(super) fn singular(noun: &str) -> String {
    if let Some((one, _)) = IRREGULAR.iter().find(|(one, many)| noun == *one || noun == *many) {
        return (*one).to_owned();
    }
    if IE_WORDS.contains(&noun) {
        return noun[..noun.len() - 1].to_owned();
    }
    if let Some(stem) = noun.strip_suffix("ies").filter(|stem| stem.len() > 1) {
        return format!("{stem}y");
    }
    for ending in ["sses", "xes", "ches", "shes", "zzes", "oes"] {
        if noun.ends_with(ending) {
            return noun[..noun.len() - 2].to_owned();
        }
    }
    let keeps_s = ["ss", "us", "is"].iter().any(|ending| noun.ends_with(ending));
    match noun.strip_suffix('s') {
        Some(stem) if !keeps_s && stem.len() > 1 => stem.to_owned(),
        _ => noun.to_owned(),
    }
}

/// Returns the plural of a lower-case singular noun.
pub(super) fn plural(noun: &str) -> String {
    if let Some((_, many)) = IRREGULAR.iter().find(|(one, _)| noun == *one) {
        return (*many).to_owned();
    }
    let before_y = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    if let Some(stem) = before_y.filter(|stem| !stem.is_empty()) {
        return format!("{stem}ies");
    }
    if ["s", "x", "ch", "sh", "z"].iter().any(|ending| noun.ends_with(ending)) {
        return format!("{noun}es");
    }
    if ["potato", "tomato", "hero", "echo"].contains(&noun) {
        return format!("{noun}es");
    }
    format!("{noun}s")
}

/// Returns `a` or `an`, by the first letter.
pub(super) fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
