//! The commands a generated tool can have.

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Stores a new item.
    Add,
    /// Shows all items.
    List,
    /// Shows the items that contain a text.
    Search,
    /// Shows one item.
    Show,
    /// Prints the number of items.
    Count,
    /// Changes the text of an item.
    Edit,
    /// Puts tags on an item.
    Tag,
    /// Marks an item as done.
    Done,
    /// Writes all items as JSON.
    Export,
    /// Adds items from JSON.
    Import,
    /// Removes an item.
    Remove,
}

/// Every word a goal may name, with what it does. The word becomes the name of the command.
const WORDS: [(&str, Action); 18] = [
    ("add", Action::Add),
    ("create", Action::Add),
    ("new", Action::Add),
    ("list", Action::List),
    ("search", Action::Search),
    ("find", Action::Search),
    ("show", Action::Show),
    ("view", Action::Show),
    ("count", Action::Count),
    ("edit", Action::Edit),
    ("update", Action::Edit),
    ("tag", Action::Tag),
    ("done", Action::Done),
    ("complete", Action::Done),
    ("export", Action::Export),
    ("import", Action::Import),
    ("remove", Action::Remove),
    ("delete", Action::Remove),
];

/// A command: what it does and the word the user chose for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verb {
    /// What it does.
    pub action: Action,
    /// The name of the command.
    pub word: &'static str,
}

impl Verb {
    /// Returns the command of a word, also as `adds` or `adding`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let form_of = |word: &str| {
            let stem = word.strip_suffix('e').unwrap_or(word);
            let doubled = word.chars().last().map(|last| format!("{word}{last}ing"));
            let third = if word.ends_with("ch") || word.ends_with("sh") { "es" } else { "s" };
            text == word
                || text == format!("{word}{third}")
                || text == format!("{stem}ing")
                || Some(text) == doubled.as_deref()
        };
        WORDS.iter().find(|(word, _)| form_of(word)).map(|&(word, action)| Self { action, word })
    }

    /// Returns the name of the Python module; `import` is a keyword there.
    #[must_use]
    pub fn module(self) -> &'static str {
        if self.word == "import" { "import_" } else { self.word }
    }

    /// Returns all words, for messages.
    #[must_use]
    pub fn words() -> Vec<&'static str> {
        WORDS.iter().map(|(word, _)| *word).collect()
    }
}
