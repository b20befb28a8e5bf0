//! `config show`: places and policy, each with where it comes from.

use clap::{Args, Subcommand};
use harness_proto::exit::Exit;
use harness_proto::place;
use harness_proto::policy::{FIELDS, PolicyValues, show};
use serde_json::json;

use super::create_launch::refused;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::columns;

/// See the module.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Print places and the policy of a profile
    Show(ShowArgs),
}

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    /// Preset of the policy
    #[arg(long, default_value = "dag")]
    profile: String,
    /// Show the policy with this set
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print where each value comes from (always printed)
    #[arg(long, hide = true)]
    origin: bool,
}

pub(crate) fn run(context: &Context<'_>, verb: &ConfigVerb) -> Result<Exit, Failure> {
    let ConfigVerb::Show(args) = verb;
    let preset = PolicyValues::preset(&args.profile).map_err(|e| refused(&e))?;
    let mut values = preset.clone();
    for assignment in &args.set {
        values.set(assignment).map_err(|e| refused(&e))?;
    }
    values.validate().map_err(|e| refused(&e))?;
    let origin = |key: &str| if values.get(key) == preset.get(key) { args.profile.as_str() } else { "--set" };
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let state_from = ["HARNESS_STATE_DIR", "XDG_STATE_HOME", "HOME"].into_iter().find(|name| set(name)).unwrap_or("-");
    let runs =
        place::runs_dir(&|name: &str| std::env::var_os(name)).map(|p| p.display().to_string()).unwrap_or_default();
    let places = [
        ("state", context.state_dir.display().to_string(), state_from.to_owned()),
        ("runs", runs, if set("HARNESS_RUNS_DIR") { "HARNESS_RUNS_DIR".to_owned() } else { "state".to_owned() }),
        ("socket", context.socket.path.display().to_string(), format!("{:?}", context.socket.origin).to_lowercase()),
    ];
    let answer = json!({
        "schema": "harness.config/1",
        "places": places.iter().map(|(name, path, from)| json!({"name": name, "path": path, "origin": from})).collect::<Vec<_>>(),
        "policy": FIELDS.iter().map(|f| json!({
            "key": f.key, "value": values.get(f.key), "origin": origin(f.key), "available": f.is_built(), "meaning": f.meaning,
        })).collect::<Vec<_>>(),
    });
    context.out.answer(&answer, "", || {
        let mut rows = vec![["KEY", "VALUE", "FROM", "MEANING"].map(str::to_owned).to_vec()];
        rows.extend(
            places.iter().map(|(name, path, from)| vec![(*name).to_owned(), path.clone(), from.clone(), String::new()]),
        );
        for field in FIELDS {
            let value = show(values.get(field.key));
            let mark = if field.is_built() { "" } else { " (only this value now)" };
            rows.push(vec![
                field.key.to_owned(),
                value,
                origin(field.key).to_owned(),
                format!("{}{mark}", field.meaning),
            ]);
        }
        columns(&rows).join("\n")
    })?;
    Ok(Exit::Success)
}
