-- The first schema (DESIGN 5). Times are milliseconds since 1970 UTC; `body` columns hold the JSON form of a core type, the other
-- columns repeat what is searched for. Merged files never change: a new need is a new file.

CREATE TABLE repos (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    path BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- A run and its place in the queue. `queue`: idle (nobody has to drive it), waiting (behind another run of its repository),
-- ready (the one run of its repository that may be claimed), leased (driven by `lease_owner` under `fence`).
CREATE TABLE runs (
    ord INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    repo INTEGER NOT NULL REFERENCES repos (id),
    lifecycle TEXT NOT NULL,
    hold TEXT NOT NULL,
    queue TEXT NOT NULL CHECK (queue IN ('idle', 'waiting', 'ready', 'leased')),
    priority INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    queued_at INTEGER NOT NULL,
    wanted_at INTEGER,
    fence INTEGER NOT NULL,
    lease_owner TEXT NOT NULL,
    seq INTEGER NOT NULL,
    inputs INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    launch TEXT NOT NULL,
    policy TEXT NOT NULL,
    origin TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;

CREATE INDEX runs_claim ON runs (priority DESC, queued_at, ord, not_before) WHERE queue = 'ready';
CREATE INDEX runs_due ON runs (not_before) WHERE queue = 'ready';
CREATE INDEX runs_waiting ON runs (repo, priority DESC, queued_at, ord, not_before) WHERE queue = 'waiting';
CREATE INDEX runs_later ON runs (repo, not_before, priority DESC, queued_at, ord) WHERE queue = 'waiting';
CREATE INDEX runs_leased ON runs (ord) WHERE queue = 'leased';
-- At most one run of a repository is offered or driven at a time.
CREATE UNIQUE INDEX runs_front ON runs (repo) WHERE queue IN ('ready', 'leased');
CREATE INDEX runs_repo ON runs (repo, ord);
CREATE INDEX runs_lifecycle ON runs (lifecycle, ord);

CREATE TABLE plan_revisions (
    run TEXT NOT NULL REFERENCES runs (id),
    revision INTEGER NOT NULL,
    source TEXT NOT NULL,
    text TEXT NOT NULL,
    prose TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (run, revision)
) STRICT;

CREATE TABLE tasks (
    run TEXT NOT NULL REFERENCES runs (id),
    task TEXT NOT NULL,
    status TEXT NOT NULL,
    priority INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, task)
) STRICT;

CREATE TABLE attempts (
    run TEXT NOT NULL REFERENCES runs (id),
    task TEXT NOT NULL,
    number INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, task, number)
) STRICT;
CREATE UNIQUE INDEX attempts_open ON attempts (run, task) WHERE outcome = '';

CREATE TABLE turns (
    run TEXT NOT NULL REFERENCES runs (id),
    turn INTEGER NOT NULL,
    effect INTEGER NOT NULL,
    role TEXT NOT NULL,
    task TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    begun TEXT NOT NULL,
    ended TEXT,
    PRIMARY KEY (run, turn)
) STRICT;
CREATE INDEX turns_task ON turns (run, task, turn);

CREATE TABLE reports (
    run TEXT NOT NULL,
    turn INTEGER NOT NULL,
    file TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, turn),
    FOREIGN KEY (run, turn) REFERENCES turns (run, turn)
) STRICT;

CREATE TABLE usage (
    run TEXT NOT NULL,
    turn INTEGER NOT NULL,
    role TEXT NOT NULL,
    agent TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    total_tokens INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (run, turn),
    FOREIGN KEY (run, turn) REFERENCES turns (run, turn)
) STRICT;

CREATE TABLE evidence (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (id),
    task TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    tree TEXT NOT NULL,
    result TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX evidence_task ON evidence (run, task, attempt, id);

CREATE TABLE inputs (
    run TEXT NOT NULL REFERENCES runs (id),
    ord INTEGER NOT NULL,
    payload_version INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, ord)
) STRICT;

CREATE TABLE events (
    run TEXT NOT NULL REFERENCES runs (id),
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;

-- A finished effect keeps its name and id; its payload (prompts are large) is cleared.
CREATE TABLE effects (
    run TEXT NOT NULL REFERENCES runs (id),
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'done')),
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, id)
) STRICT;
CREATE INDEX effects_pending ON effects (run, id) WHERE state = 'pending';

CREATE TABLE landings (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (id),
    seq INTEGER NOT NULL,
    commit_id TEXT NOT NULL,
    outcome TEXT NOT NULL,
    at INTEGER NOT NULL,
    data TEXT NOT NULL
) STRICT;
CREATE INDEX landings_run ON landings (run, id);

CREATE TABLE checkpoints (
    run TEXT NOT NULL REFERENCES runs (id),
    name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, name)
) STRICT;

CREATE TABLE incidents (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (id),
    owner TEXT NOT NULL,
    reason TEXT NOT NULL,
    task TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    closed_at INTEGER,
    body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX incidents_open ON incidents (run, reason, task, attempt) WHERE closed_at IS NULL;
CREATE INDEX incidents_run ON incidents (run, id);

CREATE TABLE questions (
    run TEXT NOT NULL REFERENCES runs (id),
    id TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    answered_at INTEGER,
    body TEXT NOT NULL,
    answer TEXT,
    PRIMARY KEY (run, id)
) STRICT;

-- Idempotency keys: the same key with the same body gets the same answer.
CREATE TABLE requests (
    key TEXT NOT NULL PRIMARY KEY,
    verb TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    run TEXT,
    applied INTEGER NOT NULL,
    answer TEXT,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX requests_at ON requests (at);

CREATE TABLE processes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT REFERENCES runs (id),
    at INTEGER NOT NULL,
    identity TEXT NOT NULL
) STRICT;
CREATE INDEX processes_run ON processes (run, id);

CREATE TABLE lessons (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (id),
    at INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX lessons_run ON lessons (run, id);
