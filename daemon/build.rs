//! Rebuilds the crate when a migration changes: `sqlx::migrate!` embeds the folder and does not watch it by itself.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
