//! `harness-lessons.md`: notes across runs (artifacts.md 1.7; S4-041).
//!
//! Invariant: every field is one line whatever the texts hold, so that our own output is always readable (weaknesses 3).

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LessonDoc {
    /// After `### L-n: `.
    pub title: String,
    /// `task`, `planner`, `summary`.
    pub category: String,
    /// What was tried.
    pub strategy: String,
    /// `accept`, `revert`, `replan`, `summary`.
    pub outcome: String,
    /// What was learnt.
    pub insight: String,
    /// `goal=…; scope=…; role=…`.
    pub context: String,
    /// Event it belongs to.
    pub iteration: i64,
    /// When.
    pub timestamp: String,
}

/// How an entry's header begins.
pub const LESSON_HEADER: &str = "### L-";
/// Longest field in characters; a lesson is a hint for a prompt, not a transcript.
pub const LESSON_FIELD_MAX: usize = 2_000;

impl LessonDoc {
    /// The entry with number `n`, without the empty line that separates entries.
    #[must_use]
    pub fn render(&self, n: usize) -> String {
        let mut out = format!("{LESSON_HEADER}{n}: {}\n", line(&self.title));
        let iteration = self.iteration.to_string();
        for (name, value) in [
            ("Category", &self.category),
            ("Strategy", &self.strategy),
            ("Outcome", &self.outcome),
            ("Insight", &self.insight),
            ("Context", &self.context),
            ("Iteration", &iteration),
            ("Timestamp", &self.timestamp),
        ] {
            out.push_str(&format!("- **{name}:** {}\n", line(value)));
        }
        out
    }
}

/// Number of entries: lines that begin as a header does. Foreign text does not matter.
#[must_use]
pub fn count_lessons(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with(LESSON_HEADER)).count()
}

/// Reads every entry that it can; foreign lines, unknown fields and missing fields are passed over.
#[must_use]
pub fn read_lessons(text: &str) -> Vec<LessonDoc> {
    let mut lessons: Vec<LessonDoc> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if let Some(header) = line.strip_prefix(LESSON_HEADER) {
            let title = header.split_once(':').map_or("", |(_, title)| title).trim().to_owned();
            lessons.push(LessonDoc { title, ..LessonDoc::default() });
            open = true;
        } else if line.starts_with('#') {
            open = false;
        } else if let (true, Some(lesson), Some((name, value))) = (open, lessons.last_mut(), field(line)) {
            match name {
                "Category" => lesson.category = value,
                "Strategy" => lesson.strategy = value,
                "Outcome" => lesson.outcome = value,
                "Insight" => lesson.insight = value,
                "Context" => lesson.context = value,
                "Iteration" => lesson.iteration = value.parse().unwrap_or(0),
                "Timestamp" => lesson.timestamp = value,
                _ => {}
            }
        }
    }
    lessons
}

fn field(line: &str) -> Option<(&str, String)> {
    let (name, value) = line.strip_prefix("- **")?.split_once(":**")?;
    Some((name, value.trim().to_owned()))
}

/// One line: white space and control characters collapse to one space; `-` when nothing is left, since fields may not be empty.
fn line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let folded = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = folded.chars().take(LESSON_FIELD_MAX).collect();
    if cut.len() < folded.len() {
        cut.push('…');
    }
    if cut.is_empty() { "-".to_owned() } else { cut }
}
