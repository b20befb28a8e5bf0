//! Walls, seen from inside: a `command` agent and an evidence command try what they must not do (P4, DESIGN 7, 13; T10).

use std::fs;

use harness_tests::living;

use crate::bench::{World, text};

/// An agent that does its work and tries to break out; what it managed it tells in its summary.
const AGENT: &str = r#"#!/usr/bin/python3 -I
import json, os, subprocess, sys
turn = json.load(sys.stdin)
tries = json.loads(r"""@TRIES@""")
done = []
for name, words in tries:
    try:
        out = subprocess.run(["sh", "-c", words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        if out.returncode == 0:
            done.append(name + " " + out.stdout.strip()[:60])
    except Exception as problem:
        pass
role = turn["role"]
report = {"role": role, "summary": "managed: " + "; ".join(done)}
if role == "implementer":
    os.makedirs("work", exist_ok=True)
    open("work/a.txt", "w").write("a\n")
    report.update(task_id=turn["task_id"], attempt=turn["attempt"], commit="", files_changed=["work/a.txt"], checks_run=[], proposed_tasks=[])
else:
    report.update(task_id=turn["task_id"], attempt=turn["attempt"], commit=turn["commit"], verdict="accept",
        recovery_signal="none", findings=[], proposed_tasks=[],
        criteria_results=[{"criterion": "C1", "result": "pass", "evidence": "seen"}])
print(json.dumps(report))
"#;

fn secrets(world: &World) {
    let home = world.env.path("home");
    for folder in [".ssh", ".aws", ".codex"] {
        fs::create_dir_all(home.join(folder)).unwrap();
        fs::write(home.join(folder).join("secret"), "planted-secret\n").unwrap();
    }
}

/// What must fail, by name.
fn tries(world: &World) -> Vec<(String, String)> {
    let path = |name: &str| world.env.path(name).display().to_string();
    let (repo, home, state) = (world.repo.display().to_string(), path("home"), path("state"));
    let ctl = world.env.bin().join("harnessctl").display().to_string();
    let socket = path("s");
    [
        ("write checkout", format!("echo x >> {repo}/README.md")),
        ("new file in checkout", format!("echo x > {repo}/evil.txt")),
        ("move a ref", format!("git -C {repo} update-ref refs/heads/evil HEAD")),
        ("write git config", format!("git -C {repo} config evil.set yes")),
        ("write hook", format!("echo x > {repo}/.git/hooks/post-checkout")),
        ("write plan", format!("echo x > {repo}/tasks.json")),
        ("write database", format!("echo x >> {state}/harness.db")),
        ("read database", format!("head -c 1 {state}/harness.db")),
        ("new file in state", format!("echo x > {state}/evil")),
        ("write mirror refs", format!("for d in {state}/repos/*.git; do echo x > $d/refs/evil || exit 1; done")),
        ("write mirror config", format!("for d in {state}/repos/*.git; do echo x >> $d/config || exit 1; done")),
        ("read ssh", format!("cat {home}/.ssh/secret")),
        ("read aws", format!("cat {home}/.aws/secret")),
        ("read codex", format!("cat {home}/.codex/secret")),
        ("write home", format!("echo x > {home}/evil")),
        ("link out", format!("ln -s {repo} out && echo x > out/evil.txt")),
        ("socket status", format!("HARNESS_SOCKET={socket} {ctl} --no-autostart status @last")),
        ("socket cancel", format!("HARNESS_SOCKET={socket} {ctl} --no-autostart cancel @last --yes")),
        ("socket after setsid", format!("HARNESS_SOCKET={socket} setsid -w {ctl} --no-autostart list")),
    ]
    .map(|(name, words)| (name.to_owned(), words))
    .to_vec()
}

fn untouched(world: &World, run: &str) {
    assert_eq!(fs::read_to_string(world.repo.join("README.md")).unwrap(), "# A project\n");
    for gone in [world.repo.join("evil.txt"), world.env.path("home/evil"), world.env.path("state/evil")] {
        assert!(!gone.exists(), "{}", gone.display());
    }
    assert_eq!(world.git(&["branch", "--list", "evil"]), "");
    assert_eq!(world.git(&["config", "--get", "--default", "", "evil.set"]), "");
    assert!(!world.repo.join(".git/hooks/post-checkout").exists());
    assert_eq!(world.events(run, "control", "cancel").len(), 0);
    assert_eq!(living(&format!("HARNESS_RUN={run}")), []);
}

#[test]
fn a_command_agent_cannot_leave_its_tree_nor_call_the_socket() {
    let world = World::new();
    let _daemon = world.env.daemon();
    secrets(&world);
    let words = serde_json::to_string(&tries(&world)).unwrap();
    let agent = AGENT.replace("@TRIES@", &words);
    let program = world.program("agent", &agent);
    let text_of = format!("command:{}", program.display());
    let run =
        world.start(&["--agent-for", &format!("implementer={text_of}"), "--agent-for", &format!("verifier={text_of}")]);
    world.completed(&run);
    let said = world.events(&run, "submit_trial", "");
    assert_eq!(text(&said[0]["description"]).trim(), "managed:", "{}", world.history(&run));
    let said = world.events(&run, "verdict", "accept");
    assert_eq!(text(&said[0]["description"]).trim(), "managed:", "{}", world.history(&run));
    untouched(&world, &run);
    assert_eq!(world.landed("main").len(), 1);
}

/// The wall that the test leans on is real: with the opt-out the same writes go through, and status says so.
#[test]
fn danger_full_access_opens_the_wall_and_status_says_so() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let mark = world.env.path("home/outside");
    let check = format!("echo x > {}", mark.display());
    let run = world.start(&["--verify", &check, "--execution-policy", "danger_full_access"]);
    world.completed(&run);
    assert!(mark.exists());
    let status = world.status(&run);
    assert!(status["walls"]["evidence"].to_string().contains("danger_full_access"), "{status:#}");
}

/// Evidence is walled as agents are.
#[test]
fn an_evidence_command_cannot_leave_its_tree_nor_call_the_socket() {
    let world = World::new();
    let _daemon = world.env.daemon();
    secrets(&world);
    // Each try is a command that passes only when the try fails.
    let checks: Vec<String> = tries(&world)
        .iter()
        .map(|(name, words)| format!("if ( {words} ) >/dev/null 2>&1; then echo {name}; exit 1; fi"))
        .collect();
    let mut extra = Vec::new();
    for check in &checks {
        extra.extend(["--verify", check.as_str()]);
    }
    let run = world.start(&extra);
    let (code, status) = world.wait(&run, "done");
    assert_eq!(code, 0, "{status:#}\n{}", world.history(&run));
    untouched(&world, &run);
}
