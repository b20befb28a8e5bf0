//! Running the commands one after the other.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness_core::evidence::{CommandExit, CommandRun};
use harness_proto::plan::{Check, CommandLine};
use tokio_util::sync::CancellationToken;

use super::fingerprint::fingerprint;
use super::spec::{Collected, EvidenceError, EvidenceSpec, ProcessNote, on};
use super::{command, output};
use crate::process::{self, Captured, Child, Exit, Limits, Marker, OutputMode, ProcessError, Spec, StdinMode, Wall};
use crate::redact::Redactor;

/// How long an interrupted command has between TERM and KILL.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How much later than the launcher's own limit the backstop kills; only a launcher that was stopped needs it.
const BACKSTOP: Duration = Duration::from_secs(30);
/// Processes of one command that may live at once; a fork bomb ends here.
const PROCESSES_MAX: u64 = 4_096;

/// Runs setup and checks. Setup ends at its first failure, and then no check runs; of the checks all run.
///
/// `on_process` is told of each process before the command is waited for and after nothing of it lives.
///
/// # Errors
/// [`EvidenceError`]: there is no evidence, and that is not the code's fault; `Interrupted` when `stop` was cancelled.
///
/// Cancel safety: dropping the future kills what runs (the lifeline closes); nothing is recorded.
pub async fn collect(
    spec: EvidenceSpec,
    stop: CancellationToken,
    mut on_process: impl FnMut(ProcessNote) + Send,
) -> Result<Collected, EvidenceError> {
    let tree = spec.tree_path.canonicalize().map_err(on("use the tree", &spec.tree_path))?;
    for folder in [&spec.tmp, &spec.scratch, &spec.output_dir] {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(on("create", folder))?;
    }
    let mut collected = Collected::default();
    for (place, check) in spec.setup.iter().enumerate() {
        let one = One { spec: &spec, tree: &tree, check, before: &spec.setup[..place], role: "setup", id: fresh_id() };
        let run = one.run(&stop, &mut on_process).await?;
        let failed = run.exit != CommandExit::Code(0);
        collected.setup.push(run);
        if failed {
            return Ok(collected);
        }
    }
    for (place, check) in spec.checks.iter().enumerate() {
        if let Some(restore) = spec.restore.as_ref().filter(|_| place > 0) {
            restore().await.map_err(|why| EvidenceError::Restore { command: check.command.display(), why })?;
        }
        let one = One { spec: &spec, tree: &tree, check, before: &spec.setup, role: "evidence", id: fresh_id() };
        collected.runs.push(one.run(&stop, &mut on_process).await?);
    }
    Ok(collected)
}

/// One command.
struct One<'a> {
    spec: &'a EvidenceSpec,
    tree: &'a Path,
    check: &'a Check,
    before: &'a [Check],
    role: &'static str,
    /// Part of every file's name: an exit record that an earlier command left must never be taken for this one's.
    id: String,
}

fn fresh_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

impl One<'_> {
    async fn run(
        &self,
        stop: &CancellationToken,
        on_process: &mut (impl FnMut(ProcessNote) + Send),
    ) -> Result<CommandRun, EvidenceError> {
        if stop.is_cancelled() {
            return Err(EvidenceError::Interrupted);
        }
        let env = command::environment(self.check, &self.spec.env, &self.spec.tmp);
        let redactor = self.spec.redactor.clone().and_environment(&env);
        let cwd = match command::folder(self.check, self.tree) {
            Ok(cwd) => cwd,
            Err(why) => return self.never_ran(command::no_folder(), &why, &env, &redactor).await,
        };
        let Some(argv) = command::argv(self.check, &self.spec.env) else {
            let why = "there is no `sh` on PATH";
            return self.never_ran(CommandExit::NotStarted(why.to_owned()), why, &env, &redactor).await;
        };
        let marker = Marker::new(&self.spec.run, &self.spec.task, self.spec.attempt, self.role);
        let spec = self.process(argv, cwd, env.clone(), marker);
        let mut child = match process::spawn(spec).await {
            Ok(child) => child,
            Err(error) => {
                let (exit, why) = command::not_started(&error);
                return self.never_ran(exit, &why, &env, &redactor).await;
            }
        };
        let identity = child.identity().clone();
        on_process(ProcessNote::Started(identity.clone()));
        let ended = self.wait(&mut child, stop).await;
        if !matches!(ended, Err(EvidenceError::Process { source: ProcessError::Unkillable { .. }, .. })) {
            on_process(ProcessNote::Ended(identity));
        }
        self.record(&ended?, &env, redactor).await
    }

    fn process(&self, argv: Vec<OsString>, cwd: PathBuf, env: Vec<(OsString, OsString)>, marker: Marker) -> Spec {
        let file = |name: &str| OutputMode::File { path: self.file(name), cap_bytes: output::OUTPUT_CAP_BYTES / 2 };
        Spec {
            argv,
            cwd,
            env,
            stdin: StdinMode::Null,
            stdout: file("out"),
            stderr: file("err"),
            wall: command::wall(&self.spec.wall, self.network()),
            limits: Limits {
                max_wall: Some(Duration::from_secs(self.timeout_s().into())),
                max_processes: Some(PROCESSES_MAX),
                ..Limits::default()
            },
            record: self.file("exit"),
            scratch: self.spec.scratch.join("launcher"),
            marker,
        }
    }

    async fn wait(&self, child: &mut Child, stop: &CancellationToken) -> Result<Exit, EvidenceError> {
        let told = |source| EvidenceError::Process { command: self.check.command.display(), source };
        let backstop = Duration::from_secs(self.timeout_s().into()) + BACKSTOP;
        // `wait` is cancel safe; the two others only end the waiting.
        tokio::select! {
            biased;
            exit = child.wait() => exit.map_err(told),
            () = stop.cancelled() => {
                child.terminate(STOP_GRACE).await.map_err(told)?;
                Err(EvidenceError::Interrupted)
            }
            () = tokio::time::sleep(backstop) => child.kill().await.map_err(told),
        }
    }

    async fn record(
        &self,
        exit: &Exit,
        env: &[(OsString, OsString)],
        redactor: Redactor,
    ) -> Result<CommandRun, EvidenceError> {
        if lost(&exit.stdout) || lost(&exit.stderr) {
            return Err(EvidenceError::OutputLost { command: self.check.command.display() });
        }
        let (digest, stdout, mut stderr) = {
            let (out, err, record, temp) = (self.file("out"), self.file("err"), self.file("exit"), self.temp());
            let (folder, redactor) = (self.spec.output_dir.clone(), redactor.clone());
            let work = move || -> std::io::Result<(String, String, String)> {
                let digest = output::keep(&out, &err, &folder, &temp, &redactor)?;
                let texts = (output::tail(&out, &redactor)?, output::tail(&err, &redactor)?);
                for used in [&out, &err, &record] {
                    remove_if_there(used)?;
                }
                Ok((digest, texts.0, texts.1))
            };
            blocking(work).await.map_err(on("keep the output in", &self.spec.output_dir))?
        };
        let shell = matches!(self.check.command, CommandLine::Cmd(_));
        let (ended, remark) = command::ended(exit, &stderr, shell, self.timeout_s());
        if let Some(remark) = remark {
            append_remark(&mut stderr, &remark);
        }
        Ok(CommandRun {
            exit: ended,
            stdout,
            stderr,
            output: digest,
            output_bytes: whole(exit.stdout.bytes_total.saturating_add(exit.stderr.bytes_total)),
            duration_ms: whole(exit.duration.as_millis()),
            ..self.empty_run(env, &redactor)
        })
    }

    /// A command that did not start: it has no output, and why is shown in its place.
    async fn never_ran(
        &self,
        exit: CommandExit,
        why: &str,
        env: &[(OsString, OsString)],
        redactor: &Redactor,
    ) -> Result<CommandRun, EvidenceError> {
        let (out, err, record, temp) = (self.file("out"), self.file("err"), self.file("exit"), self.temp());
        let folder = self.spec.output_dir.clone();
        let (text, redactor_copy) = (format!("{why}\n"), redactor.clone());
        let work = move || {
            std::fs::write(&out, b"")?;
            std::fs::write(&err, text)?;
            let digest = output::keep(&out, &err, &folder, &temp, &redactor_copy)?;
            for used in [&out, &err, &record] {
                remove_if_there(used)?;
            }
            Ok(digest)
        };
        let digest = blocking(work).await.map_err(on("keep the output in", &self.spec.output_dir))?;
        let stderr = redactor.text(why);
        Ok(CommandRun { exit, stderr, output: digest, ..self.empty_run(env, redactor) })
    }

    fn empty_run(&self, env: &[(OsString, OsString)], redactor: &Redactor) -> CommandRun {
        let walled = matches!(self.spec.wall, Wall::Confined(_));
        CommandRun {
            command: redactor.text(&self.check.command.display()),
            expect_tests_min: self.check.expect_tests_min,
            exit: CommandExit::NotStarted(String::new()),
            stdout: String::new(),
            stderr: String::new(),
            output: String::new(),
            output_bytes: 0,
            duration_ms: 0,
            fingerprint: fingerprint(&self.spec.tree_id, self.before, self.check, env, walled, self.network()),
        }
    }

    fn network(&self) -> bool {
        self.check.network.unwrap_or(self.spec.network_default)
    }

    /// At least a second: zero would be no time at all.
    fn timeout_s(&self) -> u32 {
        self.check.timeout_s.unwrap_or(self.spec.timeout_s).max(1)
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.spec.scratch.join(format!("{}-{}.{kind}", self.role, self.id))
    }

    /// In the folder of the outputs, so that the rename stays on one file system.
    fn temp(&self) -> PathBuf {
        self.spec.output_dir.join(format!(".harness-tmp-{}-{}", std::process::id(), self.id))
    }
}

/// Whether output got lost, other than by the cap.
fn lost(captured: &Captured) -> bool {
    captured.truncated && captured.bytes_kept < captured.bytes_total.min(output::OUTPUT_CAP_BYTES / 2)
}

fn append_remark(stderr: &mut String, remark: &str) {
    if !stderr.is_empty() && !stderr.ends_with('\n') {
        stderr.push('\n');
    }
    stderr.push_str(remark);
    let skip = stderr.chars().count().saturating_sub(output::TAIL_CHARS);
    *stderr = stderr.chars().skip(skip).collect();
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn whole(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

/// Runs file work off the async threads; a panic in it is told as an I/O error.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> std::io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(std::io::Error::other(error)),
    }
}
