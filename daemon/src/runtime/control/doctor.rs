//! `doctor`: what this machine and this repository lack, each with the command that helps.

use std::path::PathBuf;

use harness_core::policy::Policy;
use harness_proto::api::answer::{Diagnosis, DoctorAnswer};
use harness_proto::error::Problem;

use super::problem::store_problem;
use crate::git;
use crate::process;
use crate::runtime::context::{blocking, values_of};
use crate::runtime::registry::Runtime;
use crate::store::RunFilter;

/// Less free space than this is a warning, in percent.
const FREE_LEAST: u32 = 5;

fn finding(id: &str, severity: &str, what: String, why: &str, next: &str) -> Diagnosis {
    Diagnosis { id: id.into(), severity: severity.into(), what, why: why.into(), next: next.into() }
}

impl Runtime {
    pub(super) async fn examine(&self, repo: Option<String>) -> Result<DoctorAnswer, Problem> {
        let mut findings = blocking(move || {
            let mut found = machine();
            if let Some(path) = repo {
                found.push(repository(&PathBuf::from(path)));
            }
            found
        })
        .await;
        findings.push(self.space());
        findings.push(self.database().await?);
        findings.extend(self.states().await?);
        Ok(DoctorAnswer { schema: "harness.doctor/1".into(), findings })
    }

    fn space(&self) -> Diagnosis {
        let free = self.daemon_view().disk_free_percent;
        let severity = if free < FREE_LEAST { "warning" } else { "ok" };
        let what = format!("{free} % of the disk of {} is free", self.inner.config.state_dir.display());
        finding("disk", severity, what, "a full disk holds every run", "free space, or set HARNESS_STATE_DIR")
    }

    async fn database(&self) -> Result<Diagnosis, Problem> {
        let report = self.inner.store.check().await.map_err(|e| store_problem(&e))?;
        Ok(if report.is_healthy() {
            finding("database", "ok", format!("{} rows are sound", report.rows), "", "")
        } else {
            let what = report.problems.join("; ");
            finding("database", "error", what, "the store is the authority of every run", "harnessctl db check")
        })
    }

    /// The independent checker over every stored run (corrections 42).
    async fn states(&self) -> Result<Vec<Diagnosis>, Problem> {
        let filter = RunFilter { limit: 200, ..RunFilter::default() };
        let rows = self.inner.store.list_runs(&filter).await.map_err(|e| store_problem(&e))?;
        let mut found = Vec::new();
        for row in rows {
            let loaded = self.inner.store.load(&row.run).await.map_err(|e| store_problem(&e))?;
            let Ok(policy) = values_of(&loaded.policy).and_then(|v| Policy::from_values(&v)) else { continue };
            let audit = harness_core::audit::audit(&loaded.state, &policy);
            if !audit.is_empty() {
                let what = format!("{}: {}", row.run, audit.join("; "));
                let next = format!("harnessctl stop {}, and keep the database for a report", row.run);
                found.push(finding("run_state", "error", what, "a run contradicts itself", &next));
            }
        }
        Ok(found)
    }
}

fn machine() -> Vec<Diagnosis> {
    let mut found = Vec::new();
    found.push(match git::version() {
        Ok(version) => finding("git", "ok", format!("git {version}"), "", ""),
        Err(error) => finding("git", "error", error.to_string(), "every run works through git", &error.next()),
    });
    let walls = process::probe();
    found.push(if walls.filesystem {
        let what =
            format!("Landlock {}, namespaces: {}, network walls: {}", walls.abi, walls.namespaces, walls.network);
        finding("walls", "ok", what, "", "")
    } else {
        let what = format!("this kernel cannot confine agents (Landlock {})", walls.abi);
        let next = "upgrade the kernel, or create-launch with --execution-policy danger_full_access";
        finding("walls", "warning", what, "agents and evidence would be able to touch your files", next)
    });
    found
}

fn repository(path: &std::path::Path) -> Diagnosis {
    match git::discover(path) {
        Ok(repo) => {
            let what = format!("{} is usable", repo.top_level.display());
            finding("repository", "ok", what, "", "")
        }
        Err(error) => finding("repository", "error", error.to_string(), error.code(), &error.next()),
    }
}
