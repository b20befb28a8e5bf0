#!/usr/bin/env python3
"""A scripted stand-in for `codex app-server`, for testing and benchmarking clients.

It speaks the app-server protocol on stdio (JSON-RPC 2.0 without the "jsonrpc"
member, one message a line) and plays three roles without any model behind it:

  planner      writes tasks.json and plan.md (or returns the tasks in its report)
  implementer  writes one small file in its working directory and commits it
  verifier     looks the commit up and accepts or reverts it

Install it under the name `codex` (a copy or a symbolic link) and start it the way
the real one is started: `codex app-server [anything]`. Standard library only,
Python 3.9 or newer, `git` on PATH. `codex --version` answers too.

Methods: initialize, thread/start, thread/resume, turn/start, turn/interrupt.
Anything else is answered with error -32600, as the real server does. Requests
before `initialize` get "Not initialized", a second one "Already initialized".
End of input ends the process at once, with status 0.

How a turn finds out what to do
-------------------------------
Each value is taken from the first source that has it:
  role          outputSchema const/enum of "role"; a JSON object in the prompt that has
                a "role" member; the words "you are the <role>"; FAKE_CODEX_ROLE
  task_id, attempt, commit
                outputSchema const; the JSON object in the prompt; a line
                "Assigned task: X", "Task: X", "Attempt: N", "Trial commit: X"
  task list and plan file (planner)
                a line "Tasks: PATH" / "Plan: PATH"; tasks.json / plan.md in
                $HARNESS_PLAN_DIR, else in the cwd
  criteria (verifier)
                ids in the outputSchema's enum; lines of the prompt that begin with an id
                ("C1: ...", "- C2 ..."); else the one text "The file is there."
The report has exactly the members that outputSchema asks for: known ones carry real
values, unknown ones the smallest value of their type.

Settings
--------
Every setting is an environment variable FAKE_CODEX_<NAME>. FAKE_CODEX_CONFIG may name
a JSON file with the same names (without the prefix); it is read again at every turn
and wins over the environment, so that a test can change course in mid-run.

  DELAY                seconds each turn takes (default 0); DELAY_PLANNER,
                       DELAY_IMPLEMENTER and DELAY_VERIFIER override it
  TASKS                how many tasks a first plan has (default 3)
  SHAPE                independent (default) | chain | layers:<width> | fan
  PLAN_FILE            JSON file with a list of tasks, or {"tasks": [...]}, as first plan
  REPLAN               what a later planner turn does: auto (default) | requeue | repair |
                       noop. requeue: blocked and failed tasks become ready, attempts 0.
                       repair: each task with "integration_conflict" gets a repair task
                       that names it in "repair_target_task_id"; a repair that got stuck
                       is closed. auto: repair, then requeue of what is left
  REVERT_FIRST         the verifier reverts attempts 1..N of every task (default 0)
  FILE                 file an implementer writes (default "work/{task}.txt")
  FILE_BYTES           its size (default 64)
  COMMIT               1 (default) or 0: report HEAD and commit nothing
  VERIFY               exists (default): the commit must exist | none
  EPHEMERAL_RESUME     never (default): thread/resume of an ephemeral thread fails with
                       "no rollout found for thread id X" | live: works inside the
                       process that started it. Persistent threads can always be resumed
                       in their own process, and in another one if STATE_DIR is set
  SANDBOX              off (default) | enforce: an implementer in a read-only sandbox
                       fails its turn, and one in workspace-write can only commit if the
                       writable roots (thread/start config
                       sandbox_workspace_write.writable_roots, or turn/start sandboxPolicy
                       writableRoots) hold its git folder and the object store, because
                       the real sandbox keeps .git read-only
  ROLE                 role of a turn that names none
  STATE_DIR            folder for what must outlive one process: fault counters, threads
  MAIN_TREE            the folder that touch_main and advance_main work in (default: the
                       folder beside the common git folder)
  TOKENS               tokens that a turn reports (default 100); 0 reports none
  LOG                  JSON Lines file; every process appends one line an event
  LOG_PROMPTS          1: the line of a turn has its prompt
  LEDGER               JSON Lines file outside the harness, appended (O_APPEND, one write a
                       line): one line per effect that really happened, `effect` being
                       turn_begun, file_written, commit_made or turn_ended, with run, task,
                       attempt, role and nonce (from HARNESS_*; else from the prompt), the
                       thread, the turn and a detail (path, commit, status)
  FAULTS               rules, separated by ";" or newlines, see below

Fault rules
-----------
  fault[=argument][@role][:task][:aN or :aN-M][:xK]

role is planner, implementer, verifier, process or * (default); task is a shell
pattern (a rule whose argument is JSON has none with quotes or braces); aN-M limits the rule to attempts N..M; xK lets it fire K times in all (over
all processes when STATE_DIR is set, else in this process). Example:

  revert@verifier:T-002:a1; crash_after_work@implementer:x1; hang@verifier:T-00[3-5]

Whole process, role `process`:
  exit_on_start[=code]   end before reading anything
  hang_init              never answer initialize
  init_error             answer initialize with an error
  slow_init=S            answer it after S seconds
  ignore_term            ignore SIGTERM        ignore_eof   outlive the end of input
  orphan=S               start a child that sleeps S seconds and outlives the server
  stderr=BYTES           write that much to standard error at start

Course of a turn:
  delay=S                take S seconds longer
  hang                   never finish; turn/interrupt still works
  hang_hard              never finish, and ignore turn/interrupt
  crash_before_ack, crash, crash_after_work, crash_after_report, crash_after_turn
                         end the process: before the turn/start answer; after
                         turn/started; when the work is done; when the report is out but
                         turn/completed is not; after turn/completed. Argument: exit
                         code (default 1), or `kill` for SIGKILL
  rpc_error[=code,text]  answer turn/start with an error (default -32001, overloaded)
  late_ack               send all notifications first and the turn/start answer last
  fail[=text]            error notification, then turn/completed with status failed
  error_info=NAME[,STATUS]
                         the same with this codexErrorInfo: the name alone, or
                         {NAME: {"httpStatusCode": STATUS}}
  usage_limit[=UNIX]     the same, usageLimitExceeded, with a window that ends then
  tokens=N               report N tokens, N/10 at a time, before the work begins
  endless                items without end; turn/interrupt works
  unknown_request        ask the client for something unknown and wait for the answer
  async_message          an asynchronous agentMessage, which is no report
  summary_items          the report comes in turn/completed only
  retry_error            an error notification with willRetry, then carry on
  approval               ask the client for approval and wait for any answer
  subagent               items and a turn/completed of another thread come in between
  double_completed       send turn/completed twice
  notify=N               N extra notifications    big_items=BYTES   one huge command item
  garbage                a line that is no JSON   scalar            a line with a number
  nonutf8                a line with bytes that are no UTF-8
  split                  send the report line in small pieces with pauses

Report:
  malformed | empty | fenced | not_object   text, nothing, ```json fence, a JSON list
  drop=member            leave a member out
  set=member,json        set a member, for example set=attempt,1 or set=commit,"--quit"
  claim_role=R           report another role
  big_report=BYTES       a summary of that size
  control_chars          tabs, line breaks, quotes and a NUL in the summary
  blank_summary          a summary of one space
  propose=N              N proposed tasks
  noop_summary=TEXT      replace the summary

Work:
  revert | signal=NAME   (verifier) verdict revert; with that recovery_signal
  conflict[=path]        (implementer) replace that file (default shared.txt) whole, so
                         that tasks from one base commit conflict
  no_commit | two_commits | merge_commit | dirty
                         (implementer) none; two; one with two parents; leave an extra
                         changed and an extra untracked file behind
  touch_main=path        (implementer) change a file in the main working tree as well
  advance_main=path      (implementer) commit a change to that file on the main tree
  write=path, delete=path
                         (implementer) replace that file whole; remove it (in the same commit)
  tasks=KIND             (planner) write a bad task list: cycle | dangling | duplicate |
                         bad_status | bad_priority | not_json | empty | missing_field
"""
from __future__ import annotations

import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

VERSION = "0.0.0-fake"
PREFIX = "FAKE_CODEX_"
ROLES = ("planner", "implementer", "verifier")
INVALID_REQUEST = -32600
OVERLOADED = -32001


# --- settings -----------------------------------------------------------------------


class Settings:
    """Environment settings, overridden by the FAKE_CODEX_CONFIG file if there is one."""

    def __init__(self) -> None:
        self.overrides: dict = {}
        path = os.environ.get(PREFIX + "CONFIG")
        if path:
            try:
                with open(path, encoding="utf-8") as handle:
                    self.overrides = json.load(handle)
            except (OSError, ValueError):
                self.overrides = {}

    def text(self, name: str, default: str = "") -> str:
        if name in self.overrides:
            return str(self.overrides[name])
        return os.environ.get(PREFIX + name, default)

    def number(self, name: str, default: float = 0) -> float:
        value = self.text(name)
        return float(value) if value else default

    def delay(self, role: str) -> float:
        return self.number("DELAY_" + role.upper(), self.number("DELAY"))


class Rule:
    """One fault rule."""

    def __init__(self, text: str, index: int) -> None:
        # A JSON argument may have colons of its own: what follows the last quote or brace limits the rule.
        head, role, rest = re.fullmatch(r'(?s)(.*?)(@[a-z*]+)?((?::[^:"{}]*)*)', text).groups()
        limits, self.role = rest.split(":")[1:], (role or "")[1:]
        self.name, _, self.argument = head.partition("=")
        self.role = self.role or "*"
        self.key = "%d-%s" % (index, re.sub(r"[^A-Za-z0-9]+", "_", text))
        self.task, self.first, self.last, self.times = "*", 0, 0, 0
        for limit in limits:
            attempts = re.fullmatch(r"a(\d+)(?:-(\d+))?", limit)
            if attempts:
                self.first = int(attempts.group(1))
                self.last = int(attempts.group(2) or self.first)
            elif re.fullmatch(r"x\d+", limit):
                self.times = int(limit[1:])
            elif limit:
                self.task = limit

    def fits(self, role: str, task: str, attempt: int) -> bool:
        if self.role not in ("*", role) or (self.role == "*" and role == "process"):
            return False
        if self.first and not self.first <= attempt <= self.last:
            return False
        return fnmatch.fnmatchcase(task, self.task)


class Faults:
    """The rules that apply to one turn (or to the process)."""

    _fired: dict = {}
    _lock = threading.Lock()

    def __init__(self, settings: Settings, role: str, task: str = "", attempt: int = 0) -> None:
        self.active: dict = {}
        self.many: list = []
        rules = re.split(r"[;\n]", settings.text("FAULTS"))
        if role == "verifier" and attempt <= settings.number("REVERT_FIRST"):
            self.active["revert"] = ""
        for index, text in enumerate(rules):
            if not text.strip():
                continue
            rule = Rule(text.strip(), index)
            if rule.fits(role, task, attempt) and self._take(settings, rule):
                self.active[rule.name] = rule.argument
                self.many.append((rule.name, rule.argument))

    def __contains__(self, name: str) -> bool:
        return name in self.active

    def get(self, name: str, default: str = "") -> str:
        return self.active.get(name) or default

    def all(self, name: str) -> list:
        return [argument for fault, argument in self.many if fault == name]

    @classmethod
    def _take(cls, settings: Settings, rule: Rule) -> bool:
        """Count one use of the rule; false when its uses are spent."""
        if not rule.times:
            return True
        folder = settings.text("STATE_DIR")
        if folder:
            os.makedirs(folder, exist_ok=True)
            for turn in range(rule.times):
                path = os.path.join(folder, "fault-%s-%d" % (rule.key, turn))
                try:
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                    return True
                except FileExistsError:
                    continue
            return False
        with cls._lock:
            used = cls._fired.get(rule.key, 0)
            cls._fired[rule.key] = used + 1
            return used < rule.times


# --- small helpers --------------------------------------------------------------------


def new_id() -> str:
    """A UUID of version 7, the kind the real server hands out."""
    stamp = int(time.time() * 1000).to_bytes(6, "big")
    raw = bytearray(stamp + os.urandom(10))
    raw[6] = (raw[6] & 0x0F) | 0x70
    raw[8] = (raw[8] & 0x3F) | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def now_ms() -> int:
    return int(time.time() * 1000)


def safe_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "task"


def git(cwd: str, *args: str, check: bool = True) -> str:
    env = dict(os.environ)
    for who in ("AUTHOR", "COMMITTER"):
        env.setdefault("GIT_%s_NAME" % who, "Fake Codex")
        env.setdefault("GIT_%s_EMAIL" % who, "fake-codex@example.invalid")
    done = subprocess.run(
        ["git", *args], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if check and done.returncode != 0:
        raise RuntimeError("git %s: %s" % (" ".join(args), (done.stderr or done.stdout).strip()))
    return done.stdout.strip() if done.returncode == 0 else ""


def write_file(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)


def append_line(path: str, value: dict) -> None:
    """One line in one write, so that lines of several processes never mix."""
    handle = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    try:
        os.write(handle, (json.dumps(value) + "\n").encode())
    finally:
        os.close(handle)


class Ledger:
    """What one turn really did, written down outside the harness at once."""

    def __init__(self, settings: Settings, request: "Request", thread: str, turn: str) -> None:
        self.path = settings.text("LEDGER")
        self.frame = {
            "run": os.environ.get("HARNESS_RUN", ""),
            "task": request.task or os.environ.get("HARNESS_TASK", ""),
            "attempt": request.attempt,
            "role": request.role,
            "nonce": os.environ.get("HARNESS_NONCE", ""),
            "thread": thread,
            "turn": turn,
            "pid": os.getpid(),
        }

    def add(self, effect: str, detail: str = "") -> None:
        if self.path:
            append_line(self.path, dict(self.frame, effect=effect, detail=detail, time=time.time()))


def write_json(path: str, value: object) -> None:
    temporary = "%s.%d.tmp" % (path, os.getpid())
    write_file(temporary, json.dumps(value, indent=2, sort_keys=True) + "\n")
    os.replace(temporary, path)


# --- what the client asked for ----------------------------------------------------------


class Request:
    """Role, task, attempt and commit of one turn, read from its schema and prompt."""

    def __init__(self, prompt: str, schema: object, settings: Settings, known: str = "") -> None:
        self.prompt = prompt
        self.schema = schema if isinstance(schema, dict) else {}
        self.example = self._example(prompt)
        self.role = self._role(settings)
        self.task = str(self._value("task_id") or self._line(r"(?:Assigned task|Task(?: id)?)") or "")
        attempt = self._value("attempt") or self._line("Attempt") or 1
        self.attempt = int(attempt) if str(attempt).isdigit() else 1
        commit = self._value("commit")
        if not re.fullmatch(r"[0-9a-fA-F]{7,64}", str(commit or "")):
            commit = self._line("Trial commit") or known or self._line("Commit")
        self.commit = str(commit or "")

    def criteria(self) -> list:
        """The ids of the criteria to answer, in order."""
        rule = self.schema.get("properties", {}).get("criteria_results", {})
        ids = rule.get("items", {}).get("properties", {}).get("criterion", {}).get("enum")
        if not ids:
            ids = re.findall(r"(?m)^[\s*#>`|-]*\[?(C\d+)\b", self.prompt)
        return list(dict.fromkeys(str(ident) for ident in ids)) or ["The file is there."]

    @staticmethod
    def _example(prompt: str) -> dict:
        found: dict = {}
        decoder = json.JSONDecoder()
        for match in re.finditer(r'\{\s*"role"\s*:', prompt):
            try:
                value, _ = decoder.raw_decode(prompt, match.start())
            except ValueError:
                continue
            found = value
        return found

    def _fixed(self, member: str) -> object:
        rule = self.schema.get("properties", {}).get(member, {})
        if isinstance(rule, dict):
            if "const" in rule:
                return rule["const"]
            choices = rule.get("enum")
            if isinstance(choices, list) and len(choices) == 1:
                return choices[0]
        return None

    def _value(self, member: str) -> object:
        fixed = self._fixed(member)
        return self.example.get(member) if fixed is None else fixed

    def _line(self, label: str) -> str:
        match = re.search(r"(?mi)^[\s*#-]*%s\s*:\s*(\S+)" % label, self.prompt)
        return match.group(1) if match else ""

    def _role(self, settings: Settings) -> str:
        role = str(self._value("role") or "")
        if role in ROLES:
            return role
        match = re.search(r"(?i)you are the (planner|implementer|verifier)", self.prompt)
        return match.group(1).lower() if match else settings.text("ROLE", "implementer")

    def path(self, label: str, cwd: str, default: str) -> str:
        match = re.search(r"(?m)^\s*%s:\s*(/\S.*?)\s*$" % label, self.prompt)
        folder = os.environ.get("HARNESS_PLAN_DIR") or cwd
        return match.group(1) if match else os.path.join(folder, default)


# --- planner ------------------------------------------------------------------------


def first_plan(settings: Settings) -> list:
    plan_file = settings.text("PLAN_FILE")
    if plan_file:
        with open(plan_file, encoding="utf-8") as handle:
            plan = json.load(handle)
        return plan["tasks"] if isinstance(plan, dict) else plan
    count = int(settings.number("TASKS", 3))
    shape, _, width = settings.text("SHAPE", "independent").partition(":")
    names = ["T-%03d" % number for number in range(1, count + 1)]
    tasks = []
    for index, name in enumerate(names):
        needs: list = []
        if shape == "chain" and index:
            needs = [names[index - 1]]
        elif shape == "layers":
            size = max(int(width or 4), 1)
            layer = index // size
            needs = names[(layer - 1) * size : layer * size] if layer else []
        elif shape == "fan" and index == count - 1:
            needs = names[:-1]
        tasks.append(
            {
                "id": name,
                "title": "Write the file of " + name,
                "description": "Add one small file that belongs to %s." % name,
                "acceptance_criteria": ["The commit adds the file of %s." % name],
                "status": "pending" if needs else "ready",
                "priority": index + 1,
                "dependencies": needs,
                "attempts": 0,
            }
        )
    return tasks


def replan(tasks: list, mode: str) -> dict:
    """Change a task list that has stopped moving; returns ids by kind of change."""
    changes: dict = {"added": [], "updated": [], "closed": []}
    if mode == "noop":
        return changes
    stuck = ("blocked", "failed")
    names = {str(task.get("id")) for task in tasks}
    for task in list(tasks):  # a repair that got stuck makes room for the next one
        if task.get("status") in stuck and task.get("repair_target_task_id") in names:
            tasks.remove(task)
            changes["closed"].append(str(task.get("id")))
    targeted = {task.get("repair_target_task_id") for task in tasks}
    for task in list(tasks):
        name = str(task.get("id"))
        if task.get("status") not in stuck:
            continue
        if mode in ("auto", "repair") and task.get("integration_conflict"):
            if name in targeted:
                continue
            number = 1
            while "%s-R%d" % (name, number) in names:
                number += 1
            repair = {
                "id": "%s-R%d" % (name, number),
                "title": "Repair the integration of " + name,
                "description": "Do the work of %s again on the current main branch." % name,
                "acceptance_criteria": ["The work of %s applies to the main branch." % name],
                "status": "ready",
                "priority": task.get("priority", 100),
                "dependencies": [],
                "attempts": 0,
                "repair_target_task_id": name,
            }
            tasks.append(repair)
            names.add(repair["id"])
            changes["added"].append(repair["id"])
        elif mode in ("auto", "requeue"):
            task["status"] = "ready"
            task["attempts"] = 0
            task.pop("blocked_reason", None)
            changes["updated"].append(name)
    return changes


def spoil(tasks: list, kind: str) -> list:
    """Make a task list that a careful reader must refuse."""
    if kind == "empty":
        return []
    if kind == "cycle" and len(tasks) > 1:
        tasks[0]["dependencies"], tasks[1]["dependencies"] = [tasks[1]["id"]], [tasks[0]["id"]]
        tasks[0]["status"] = tasks[1]["status"] = "pending"
    elif kind == "dangling":
        tasks[0]["dependencies"], tasks[0]["status"] = ["T-NONE"], "pending"
    elif kind == "duplicate":
        tasks.append(dict(tasks[0]))
    elif kind == "bad_status":
        tasks[0]["status"] = "almost"
    elif kind == "bad_priority":
        tasks[0]["priority"] = "high"
    elif kind == "missing_field":
        del tasks[0]["acceptance_criteria"]
    return tasks


def plan_work(request: Request, faults: Faults, settings: Settings, cwd: str, ledger: Ledger) -> dict:
    tasks_path = request.path("Tasks", cwd, "tasks.json")
    plan_path = request.path("Plan", cwd, "plan.md")
    try:
        with open(tasks_path, encoding="utf-8") as handle:
            payload = json.load(handle)
    except (OSError, ValueError):
        payload = {"version": 1, "goal": "", "planner_revision": 0, "tasks": [], "created_at": "", "updated_at": ""}
    fresh = not payload.get("tasks")
    if fresh:
        payload["tasks"] = first_plan(settings)
        changes = {"added": [str(task.get("id")) for task in payload["tasks"]], "updated": [], "closed": []}
    else:
        changes = replan(payload["tasks"], settings.text("REPLAN", "auto"))
    if "tasks" in faults:
        payload["tasks"] = spoil(payload["tasks"], faults.get("tasks"))
    revision = int(payload.get("planner_revision") or 0) + 1
    payload["planner_revision"] = revision
    payload["updated_at"] = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    if "tasks" not in request.schema.get("properties", {}):
        if faults.get("tasks") == "not_json":
            write_file(tasks_path, "{ this is no JSON\n")
        else:
            write_json(tasks_path, payload)
        lines = ["# Plan", ""] + ["- %s: %s" % (task.get("id"), task.get("title")) for task in payload["tasks"]]
        ledger.add("file_written", tasks_path)
        write_file(plan_path, "\n".join(lines) + "\n")
        ledger.add("file_written", plan_path)
    return {
        "role": "planner",
        "revision": revision,
        "summary": "Planned %d tasks." % len(payload["tasks"]) if fresh else "Revised the plan.",
        "task_changes": changes,
        "planner_requested_reason": "initial_plan" if fresh else "replan",
        "tasks": payload["tasks"],
    }


# --- implementer ----------------------------------------------------------------------


def main_tree(cwd: str, settings: Settings) -> str:
    return settings.text("MAIN_TREE") or os.path.dirname(git(cwd, "rev-parse", "--path-format=absolute", "--git-common-dir"))


def commit_file(cwd: str, path: str, message: str) -> str:
    git(cwd, "add", "-A", "-f", "--", path)
    git(cwd, "commit", "-q", "--no-verify", "--allow-empty", "-m", message)
    return git(cwd, "rev-parse", "HEAD")


def implement_work(request: Request, faults: Faults, settings: Settings, cwd: str, ledger: Ledger) -> dict:
    task, attempt = request.task or "task", request.attempt
    size = int(settings.number("FILE_BYTES", 64))
    path = settings.text("FILE", "work/{task}.txt").replace("{task}", safe_name(task))
    body = "%s attempt %d\n" % (task, attempt)
    if "conflict" in faults:
        path = faults.get("conflict", "shared.txt")
    body += "x" * max(size - len(body), 0) + "\n"
    commit = ""
    if settings.text("COMMIT", "1") == "0" or "no_commit" in faults:
        commit = git(cwd, "rev-parse", "HEAD", check=False)
    else:
        message = "%s: write %s (attempt %d)" % (task, path, attempt)
        if "two_commits" in faults:
            write_file(os.path.join(cwd, path + ".first"), body)
            ledger.add("file_written", path + ".first")
            ledger.add("commit_made", commit_file(cwd, path + ".first", message + ", first half"))
        write_file(os.path.join(cwd, path), body)
        for extra in faults.all("write"):
            write_file(os.path.join(cwd, extra), body)
            git(cwd, "add", "--", extra)
        for gone in faults.all("delete"):
            git(cwd, "rm", "-q", "--ignore-unmatch", "--", gone)
        ledger.add("file_written", path)
        commit = commit_file(cwd, path, message)
        ledger.add("commit_made", commit)
        if "merge_commit" in faults:
            tree, base = git(cwd, "rev-parse", "HEAD^{tree}"), git(cwd, "rev-parse", "HEAD~1")
            side = git(cwd, "commit-tree", tree, "-p", base, "-m", "side")
            commit = git(cwd, "commit-tree", tree, "-p", commit, "-p", side, "-m", message + ", merged")
            git(cwd, "reset", "-q", "--hard", commit)
            ledger.add("commit_made", commit)
    if "dirty" in faults:
        write_file(os.path.join(cwd, "left-untracked.txt"), "left behind\n")
        with open(os.path.join(cwd, path), "a", encoding="utf-8") as handle:
            handle.write("left behind\n")
    if "touch_main" in faults:
        write_file(os.path.join(main_tree(cwd, settings), faults.get("touch_main")), "touched by %s\n" % task)
    if "advance_main" in faults:
        tree = main_tree(cwd, settings)
        write_file(os.path.join(tree, faults.get("advance_main")), "changed while %s ran\n" % task)
        commit_file(tree, faults.get("advance_main"), "unrelated change on the main branch")
    return {
        "role": "implementer",
        "task_id": task,
        "attempt": attempt,
        "commit": commit,
        "summary": "Wrote %s." % path,
        "files_changed": [path],
        "checks_run": ["git rev-parse HEAD"],
    }


# --- verifier -------------------------------------------------------------------------


def verify_work(request: Request, faults: Faults, settings: Settings, cwd: str, ledger: Ledger) -> dict:
    good = True
    if settings.text("VERIFY", "exists") == "exists":
        good = bool(git(cwd, "rev-parse", "-q", "--verify", request.commit + "^{commit}", check=False))
    wanted = good and "revert" not in faults and "signal" not in faults
    summary = "The commit does what the task asks." if wanted else "The commit does not do what the task asks."
    return {
        "role": "verifier",
        "task_id": request.task,
        "attempt": request.attempt,
        "commit": request.commit,
        "verdict": "accept" if wanted else "revert",
        "recovery_signal": faults.get("signal", "none"),
        "summary": summary,
        "findings": [],
        "criteria_results": [
            {
                "criterion": criterion,
                "result": "pass" if wanted else "fail",
                "evidence": "git rev-parse --verify " + request.commit,
            }
            for criterion in request.criteria()
        ],
    }


WORK = {"planner": plan_work, "implementer": implement_work, "verifier": verify_work}


# --- reports ----------------------------------------------------------------------------


def smallest(rule: object) -> object:
    """The smallest value that a schema allows."""
    if not isinstance(rule, dict):
        return None
    if "const" in rule:
        return rule["const"]
    if rule.get("enum"):
        return rule["enum"][0]
    kind = rule.get("type")
    if isinstance(kind, list):
        kind = "null" if "null" in kind else kind[0]
    if kind == "object":
        members = rule.get("properties", {})
        return {name: smallest(members.get(name)) for name in rule.get("required", [])}
    return {"string": "", "integer": 0, "number": 0, "boolean": False, "array": []}.get(kind)


def fit(report: dict, schema: dict) -> dict:
    """Give the report exactly the members that the schema has."""
    members = schema.get("properties")
    if not isinstance(members, dict):
        return report
    fitted = {}
    for name, rule in members.items():
        if name in report:
            value = report[name]
            choices = rule.get("enum") if isinstance(rule, dict) else None
            if choices and value not in choices:
                same = [choice for choice in choices if str(choice)[:3] == str(value)[:3]]
                other = [choice for choice in choices if str(choice)[:2] == "re"]
                value = (same or (other if value == "revert" else []) or choices)[0]
            fitted[name] = value
        elif name in schema.get("required", []):
            fitted[name] = smallest(rule)
    return fitted


def final_text(report: dict, request: Request, faults: Faults) -> str:
    """The report as the agent's last message, spoiled as the rules say."""
    proposals = int(faults.get("propose", "0") or 0)
    report["proposed_tasks"] = [
        {
            "title": "Follow-up %d of %s" % (number + 1, request.task),
            "reason": "Found along the way.",
            "depends_on": [request.task] if request.task else [],
            "introduced_by": request.role,
        }
        for number in range(proposals)
    ]
    if "noop_summary" in faults:
        report["summary"] = faults.get("noop_summary")
    if "control_chars" in faults:
        report["summary"] = 'one\ttab, "quotes",\nsecond line\r\nthird line\u0000end\n### L-1: not a heading'
    if "blank_summary" in faults:
        report["summary"] = " "
    if "big_report" in faults:
        report["summary"] = "y" * int(float(faults.get("big_report", "1000000")))
    report = fit(report, request.schema)
    if "claim_role" in faults:
        report["role"] = faults.get("claim_role")
    for change in faults.all("set"):
        member, _, value = change.partition(",")
        report[member] = json.loads(value)
    for member in faults.all("drop"):
        report.pop(member, None)
    if "malformed" in faults:
        return "I finished the work, here is what I did: it went well {"
    if "empty" in faults:
        return ""
    if "not_object" in faults:
        return json.dumps([report])
    text = json.dumps(report)
    return "Here is the report.\n```json\n%s\n```\n" % text if "fenced" in faults else text


# --- server -----------------------------------------------------------------------------


class Thread:
    def __init__(self, ident: str, cwd: str, sandbox: str, ephemeral: bool) -> None:
        self.id, self.cwd, self.sandbox, self.ephemeral = ident, cwd, sandbox, ephemeral
        self.roots: list = []
        self.turns = 0
        self.active = ""
        self.commit = ""  # what the thread was told before
        self.total = 0

    def configure(self, params: dict) -> None:
        """Take over what a request says about the folder and the sandbox."""
        self.cwd = params.get("cwd") or self.cwd
        self.sandbox = params.get("sandbox") or self.sandbox
        config = params.get("config") or {}
        nested = config.get("sandbox_workspace_write") or {}
        roots = config.get("sandbox_workspace_write.writable_roots") or nested.get("writable_roots")
        policy = params.get("sandboxPolicy")
        if isinstance(policy, dict):
            kinds = {"readOnly": "read-only", "workspaceWrite": "workspace-write"}
            self.sandbox = kinds.get(str(policy.get("type")), "danger-full-access")
            roots = policy.get("writableRoots") or roots
        self.roots = roots if isinstance(roots, list) else self.roots

    def policy(self) -> dict:
        """The sandbox as the real server describes it."""
        if self.sandbox == "workspace-write":
            flags = {"networkAccess": False, "excludeTmpdirEnvVar": False, "excludeSlashTmp": False}
            return {"type": "workspaceWrite", "writableRoots": self.roots, **flags}
        if self.sandbox == "read-only":
            return {"type": "readOnly", "networkAccess": False}
        return {"type": "dangerFullAccess"}

    def may_commit(self) -> bool:
        if self.sandbox != "workspace-write":
            return self.sandbox != "read-only"
        common = git(self.cwd, "rev-parse", "--path-format=absolute", "--git-common-dir")
        for needed in (git(self.cwd, "rev-parse", "--absolute-git-dir"), os.path.join(common, "objects")):
            inside = [root for root in self.roots if os.path.commonpath([needed, str(root)]) == str(root)]
            if not any(os.path.basename(str(root)) != ".git" for root in inside):
                return False
        return True

    def describe(self) -> dict:
        stamp = int(time.time())
        return {
            "id": self.id,
            "sessionId": self.id,
            "forkedFromId": None,
            "parentThreadId": None,
            "preview": "",
            "ephemeral": self.ephemeral,
            "projectId": None,
            "modelProvider": "fake",
            "model": "fake-model",
            "createdAt": stamp,
            "updatedAt": stamp,
            "status": {"type": "active", "activeFlags": []} if self.active else {"type": "idle"},
            "path": None,
            "cwd": self.cwd,
            "cliVersion": VERSION,
            "source": "appServer",
            "gitInfo": None,
            "name": None,
            "turns": [],
        }


class Interrupted(Exception):
    pass


class Failure(Exception):
    """A failed turn with a codexErrorInfo of its own."""

    def __init__(self, text: str, info: object) -> None:
        super().__init__(text)
        self.info = info


class Server:
    def __init__(self) -> None:
        self.settings = Settings()
        self.out_lock = threading.Lock()
        self.initialized = False
        self.muted: set = set()
        self.threads: dict = {}
        self.interrupts: dict = {}
        self.answers: dict = {}
        self.next_request = 0

    # output

    def write(self, data: bytes) -> None:
        with self.out_lock:
            try:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            except (BrokenPipeError, ValueError):
                os._exit(0)

    def send(self, message: dict) -> None:
        self.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def reply(self, ident: object, result: object) -> None:
        self.send({"id": ident, "result": result})

    def refuse(self, ident: object, text: str, code: int = INVALID_REQUEST) -> None:
        self.send({"id": ident, "error": {"code": code, "message": text}})

    def notify(self, method: str, params: dict) -> None:
        if method not in self.muted:
            self.send({"method": method, "params": params, "emittedAtMs": now_ms()})

    def log(self, **event: object) -> None:
        path = self.settings.text("LOG")
        if not path:
            return
        append_line(path, dict(event, pid=os.getpid(), time=time.time()))

    def die(self, argument: str) -> None:
        self.log(event="crash", argument=argument)
        if argument == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(int(argument or 1))

    # input

    def serve(self) -> None:
        faults = Faults(self.settings, "process")
        self.log(event="start", cwd=os.getcwd(), argv=sys.argv[1:])
        if "stderr" in faults:
            sys.stderr.write("e" * int(float(faults.get("stderr", "1000"))) + "\n")
            sys.stderr.flush()
        if "orphan" in faults:
            subprocess.Popen(
                ["sleep", faults.get("orphan", "60")],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        if "ignore_term" in faults:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if "exit_on_start" in faults:
            self.die(faults.get("exit_on_start"))
        for raw in sys.stdin.buffer:
            if not raw.strip():
                continue
            try:
                message = json.loads(raw)
            except ValueError:
                continue
            if isinstance(message, dict):
                self.handle(message, faults)
        usage = os.times()
        self.log(event="exit", cpu=usage.user + usage.system + usage.children_user + usage.children_system)
        while "ignore_eof" in faults:
            time.sleep(3600)
        os._exit(0)

    def handle(self, message: dict, process_faults: Faults) -> None:
        method, ident = message.get("method"), message.get("id")
        if method is None:
            waiter = self.answers.pop(ident, None)
            if waiter is not None:
                self.log(event="answer", answer=message.get("error") or message.get("result"))
                waiter.set()
            return
        if ident is None:
            return
        params = message.get("params") or {}
        if method == "initialize":
            self.initialize(ident, params, process_faults)
        elif not self.initialized:
            self.refuse(ident, "Not initialized")
        elif method == "thread/start":
            self.thread_start(ident, params)
        elif method == "thread/resume":
            self.thread_resume(ident, params)
        elif method == "turn/start":
            self.turn_start(ident, params)
        elif method == "turn/interrupt":
            self.turn_interrupt(ident, params)
        else:
            self.refuse(ident, "Invalid request: unknown variant `%s`" % method)

    def initialize(self, ident: object, params: dict, faults: Faults) -> None:
        if self.initialized:
            return self.refuse(ident, "Already initialized")
        if "hang_init" in faults:
            return None
        if "slow_init" in faults:
            time.sleep(float(faults.get("slow_init", "1")))
        if "init_error" in faults:
            return self.refuse(ident, "cannot start")
        self.initialized = True
        capabilities = params.get("capabilities") or {}
        self.muted = set(capabilities.get("optOutNotificationMethods") or [])
        client = (params.get("clientInfo") or {}).get("name", "client")
        self.reply(
            ident,
            {
                "userAgent": "%s/%s (fake)" % (client, VERSION),
                "codexHome": os.environ.get("CODEX_HOME", os.getcwd()),
                "platformFamily": "unix",
                "platformOs": sys.platform,
            },
        )
        return None

    def thread_result(self, thread: Thread) -> dict:
        return {
            "thread": thread.describe(),
            "model": "fake-model",
            "modelProvider": "fake",
            "cwd": thread.cwd,
            "approvalPolicy": "never",
            "approvalsReviewer": "user",
            "instructionSources": [],
            "sandbox": thread.policy(),
            "reasoningEffort": None,
        }

    def thread_start(self, ident: object, params: dict) -> None:
        sandbox = params.get("sandbox") or "read-only"
        if sandbox not in ("read-only", "workspace-write", "danger-full-access"):
            return self.refuse(ident, "Invalid request: unknown variant `%s`" % sandbox)
        thread = Thread(new_id(), os.getcwd(), sandbox, bool(params.get("ephemeral")))
        thread.configure(params)
        self.threads[thread.id] = thread
        self.store(thread)
        self.reply(ident, self.thread_result(thread))
        self.notify("thread/started", {"thread": thread.describe()})
        return None

    def store(self, thread: Thread) -> None:
        """Keep what another process needs to resume a persistent thread."""
        folder = self.settings.text("STATE_DIR")
        if folder and not thread.ephemeral:
            kept = {"cwd": thread.cwd, "sandbox": thread.sandbox, "total": thread.total, "commit": thread.commit}
            write_json(os.path.join(folder, "threads", thread.id + ".json"), kept)

    def use(self, thread: Thread, turn: str, tokens: int) -> None:
        """Report that a model call used so many tokens."""
        thread.total += tokens
        total, last = self.usage(thread.total), self.usage(tokens)
        usage = {"total": total, "last": last, "modelContextWindow": 258400}
        place = {"threadId": thread.id, "turnId": turn}
        self.notify("thread/tokenUsage/updated", dict(place, tokenUsage=usage))

    @staticmethod
    def usage(tokens: int) -> dict:
        output = tokens // 10
        return {
            "totalTokens": tokens,
            "inputTokens": tokens - output,
            "cachedInputTokens": 0,
            "cacheWriteInputTokens": 0,
            "outputTokens": output,
            "reasoningOutputTokens": 0,
        }

    def thread_resume(self, ident: object, params: dict) -> None:
        self.settings = Settings()
        name = str(params.get("threadId") or "")
        missing = "no rollout found for thread id %s" % name
        thread = self.threads.get(name)
        if thread is not None and thread.ephemeral and self.settings.text("EPHEMERAL_RESUME") != "live":
            thread = None
        elif thread is None and self.settings.text("STATE_DIR"):
            path = os.path.join(self.settings.text("STATE_DIR"), "threads", safe_name(name) + ".json")
            try:
                with open(path, encoding="utf-8") as handle:
                    stored = json.load(handle)
                thread = Thread(name, stored["cwd"], stored["sandbox"], False)
                thread.total = int(stored.get("total", 0))
                thread.commit = str(stored.get("commit", ""))
                self.threads[name] = thread
            except (OSError, ValueError, KeyError):
                thread = None
        self.log(event="resume", thread=name, found=thread is not None)
        if thread is None:
            return self.refuse(ident, missing)
        thread.configure(params)
        self.reply(ident, self.thread_result(thread))
        if thread.total:  # the real server replays the last numbers under the old turn's id
            self.use(thread, "old-turn", 0)
        return None

    def turn_start(self, ident: object, params: dict) -> None:
        self.settings = Settings()
        thread = self.threads.get(str(params.get("threadId") or ""))
        if thread is None:
            return self.refuse(ident, "thread not found: %s" % params.get("threadId"))
        if thread.active:
            return self.refuse(ident, "thread already has an active turn: %s" % thread.active)
        parts = params.get("input") or []
        prompt = "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
        thread.configure(params)
        request = Request(prompt, params.get("outputSchema"), self.settings, thread.commit)
        thread.commit = request.commit
        faults = Faults(self.settings, request.role, request.task, request.attempt)
        turn = new_id()
        thread.active = turn
        thread.turns += 1
        self.interrupts[turn] = threading.Event()
        if "crash_before_ack" in faults:
            self.die(faults.get("crash_before_ack"))
        if "rpc_error" in faults:
            thread.active = ""
            code, _, text = faults.get("rpc_error", "%d,Server overloaded; retry later." % OVERLOADED).partition(",")
            return self.refuse(ident, text, int(code))
        if "late_ack" not in faults:
            self.reply(ident, {"turn": self.turn_state(turn, "inProgress")})
        worker = threading.Thread(target=self.turn, args=(ident, thread, turn, request, faults), daemon=True)
        worker.start()
        return None

    def turn_interrupt(self, ident: object, params: dict) -> None:
        event = self.interrupts.get(str(params.get("turnId") or ""))
        if event is None:
            return self.refuse(ident, "no active turn to interrupt")
        event.set()
        self.reply(ident, {})
        return None

    # one turn

    @staticmethod
    def turn_state(turn: str, status: str, error: object = None) -> dict:
        return {"id": turn, "items": [], "itemsView": "notLoaded", "status": status, "error": error}

    def item(self, thread: Thread, turn: str, item: dict, started: bool = True) -> None:
        item.setdefault("id", new_id())
        place = {"threadId": thread.id, "turnId": turn}
        if started:
            self.notify("item/started", dict(place, item=item, startedAtMs=now_ms()))
        self.notify("item/completed", dict(place, item=item, completedAtMs=now_ms()))

    def pause(self, turn: str, seconds: float, deaf: bool = False) -> None:
        if deaf:
            while True:
                time.sleep(3600)
        if seconds > 0 and self.interrupts[turn].wait(seconds):
            raise Interrupted()

    def turn(self, ident: object, thread: Thread, turn: str, request: Request, faults: Faults) -> None:
        began, busy = time.time(), time.thread_time()
        status, error = "completed", None
        ledger = Ledger(self.settings, request, thread.id, turn)
        ledger.add("turn_begun")
        self.notify("turn/started", {"threadId": thread.id, "turn": self.turn_state(turn, "inProgress")})
        said = ""
        try:
            said = self.play(thread, turn, request, faults, ledger)
        except Interrupted:
            status = "interrupted"
        except Exception as problem:  # the turn fails, the server lives on
            status = "failed"
            info = getattr(problem, "info", "other")
            error = {"message": str(problem), "codexErrorInfo": info, "additionalDetails": None}
            self.notify(
                "error", {"error": error, "willRetry": False, "threadId": thread.id, "turnId": turn}
            )
        thread.active = ""
        self.interrupts.pop(turn, None)
        self.store(thread)
        ledger.add("turn_ended", status)
        self.log(
            event="turn",
            role=request.role,
            task=request.task,
            attempt=request.attempt,
            status=status,
            error=error and error["message"],
            faults=sorted(faults.active),
            thread=thread.id,
            turns=thread.turns,
            cwd=thread.cwd,
            sandbox=thread.sandbox,
            seconds=round(time.time() - began, 6),
            cpu=round(time.thread_time() - busy, 6),
            prompt_bytes=len(request.prompt),
            prompt=request.prompt if self.settings.text("LOG_PROMPTS") else None,
        )
        done = {"threadId": thread.id, "turn": self.turn_state(turn, status, error)}
        if "summary_items" in faults and said:
            done["turn"]["items"] = [{"type": "agentMessage", "id": new_id(), "text": said, "phase": None}]
            done["turn"]["itemsView"] = "summary"
        self.notify("turn/completed", done)
        if "double_completed" in faults:
            self.notify("turn/completed", done)
        if "late_ack" in faults:
            self.reply(ident, {"turn": self.turn_state(turn, status, error)})
        if "crash_after_turn" in faults:
            self.die(faults.get("crash_after_turn"))

    def play(self, thread: Thread, turn: str, request: Request, faults: Faults, ledger: Ledger) -> str:
        user = {"type": "userMessage", "content": [{"type": "text", "text": request.prompt[:200]}]}
        self.item(thread, turn, user)
        if "crash" in faults:
            self.die(faults.get("crash"))
        self.disturb(thread, turn, faults)
        self.pause(turn, self.settings.delay(request.role) + float(faults.get("delay", "0")))
        if "hang" in faults or "hang_hard" in faults:
            self.pause(turn, 10**9, deaf="hang_hard" in faults)
        if "fail" in faults:
            raise RuntimeError(faults.get("fail", "the model refused"))
        if "error_info" in faults:
            name, _, status = faults.get("error_info", "other").partition(",")
            raise Failure("the service said no", {name: {"httpStatusCode": int(status)}} if status else name)
        if "usage_limit" in faults:
            window = {"usedPercent": 100, "windowDurationMins": 300, "resetsAt": int(faults.get("usage_limit", "0"))}
            limits = {"limitId": "codex", "primary": window, "secondary": None, "rateLimitReachedType": "primary"}
            self.notify("account/rateLimits/updated", {"rateLimits": limits})
            raise Failure("You have hit your usage limit.", "usageLimitExceeded")
        if request.role == "implementer" and self.settings.text("SANDBOX") == "enforce":
            if not thread.may_commit():
                raise RuntimeError("fatal: Unable to create the index lock: Read-only file system")
        report = WORK[request.role](request, faults, self.settings, thread.cwd, ledger)
        command: dict = {
            "type": "commandExecution",
            "command": "git status --short",
            "cwd": thread.cwd,
            "processId": None,
            "source": "agent",
            "status": "completed",
            "commandActions": [],
            "aggregatedOutput": "z" * int(float(faults.get("big_items", "0"))),
            "exitCode": 0,
            "durationMs": 1,
        }
        self.item(thread, turn, command)
        if "crash_after_work" in faults:
            self.die(faults.get("crash_after_work"))
        tokens = int(self.settings.number("TOKENS", 100))
        if tokens:
            self.use(thread, turn, tokens)
            self.use(thread, turn, 0)  # the same numbers twice, as the real server does
        text = final_text(report, request, faults)
        if text and "summary_items" not in faults:
            self.say(thread, turn, text, "split" in faults)
        if "async_message" in faults:
            item = {"type": "agentMessage", "text": "I am done.", "phase": "final_answer", "delivery": "async"}
            self.item(thread, turn, item)
        if "crash_after_report" in faults:
            self.die(faults.get("crash_after_report"))
        return text

    def say(self, thread: Thread, turn: str, text: str, split: bool) -> None:
        item = {"type": "agentMessage", "id": new_id(), "text": "", "phase": "final_answer"}
        place = {"threadId": thread.id, "turnId": turn}
        self.notify("item/started", dict(place, item=dict(item), startedAtMs=now_ms()))
        self.notify("item/agentMessage/delta", dict(place, itemId=item["id"], delta=text[:4000]))
        item["text"] = text
        message = {"method": "item/completed", "params": dict(place, item=item, completedAtMs=now_ms())}
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        step = max(len(data) // 8, 1) if split else len(data)
        with self.out_lock:
            for start in range(0, len(data), step):
                sys.stdout.buffer.write(data[start : start + step])
                sys.stdout.buffer.flush()
                if split:
                    time.sleep(0.02)

    def disturb(self, thread: Thread, turn: str, faults: Faults) -> None:
        """Everything a client has to live through before the work begins."""
        place = {"threadId": thread.id, "turnId": turn}
        if "garbage" in faults:
            self.write(b"WARNING: this line is no JSON\n")
        if "scalar" in faults:
            self.write(b"42\n")
        if "nonutf8" in faults:
            self.write(b'{"method":"warning","params":{"message":"\xff\xfe\x80"}}\n')
        if "retry_error" in faults:
            error = {"message": "Reconnecting... 1/5", "codexErrorInfo": "other", "additionalDetails": None}
            self.notify("error", dict(place, error=error, willRetry=True))
        if "subagent" in faults:
            other = Thread(new_id(), thread.cwd, thread.sandbox, True)
            other_turn = new_id()
            self.item(other, other_turn, {"type": "agentMessage", "text": "not yours", "phase": None})
            self.notify("turn/completed", {"threadId": other.id, "turn": self.turn_state(other_turn, "completed")})
        for number in range(int(faults.get("notify", "0") or 0)):
            reasoning = {"type": "reasoning", "id": "r%d" % number, "summary": ["step %d" % number], "content": []}
            self.notify("item/completed", dict(place, item=reasoning, completedAtMs=now_ms()))
        if "approval" in faults:
            params = dict(place, itemId=new_id(), command="rm -r build", cwd=thread.cwd, startedAtMs=now_ms())
            self.ask("item/commandExecution/requestApproval", params)
        if "unknown_request" in faults:
            self.ask("item/tool/requestUserInput", dict(place, questions=[]))
        if "tokens" in faults:
            for _ in range(10):
                self.use(thread, turn, int(faults.get("tokens")) // 10)
                self.pause(turn, 0.02)
        while "endless" in faults:
            self.item(thread, turn, {"type": "reasoning", "summary": ["still at it"], "content": []})
            self.pause(turn, 0.05)

    def ask(self, method: str, params: dict) -> None:
        """Ask the client for something and wait for any answer."""
        self.next_request += 1
        waiter = threading.Event()
        self.answers[self.next_request] = waiter
        self.send({"id": self.next_request, "method": method, "params": params})
        waiter.wait()


def main() -> int:
    if "--version" in sys.argv[1:]:
        print("codex-cli " + VERSION)
        return 0
    if sys.argv[1:2] != ["app-server"]:
        print("usage: codex app-server", file=sys.stderr)
        return 2
    Server().serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
