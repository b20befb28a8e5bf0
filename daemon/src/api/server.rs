//! The socket: made with care, answered with limits.

use std::fs::{DirBuilder, Permissions, symlink_metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse as _;
use harness_proto::error::Problem;
use harness_proto::place::{SocketOrigin, SocketPlace};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::peer::{self, Ancestry};
use super::reject::Refused;
use super::router::{App, router};

/// Why the socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Its folder cannot be made or looked at.
    #[error("the folder of the socket, {path}, cannot be used")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its folder belongs to somebody else, is a link, or others may write there.
    #[error("the folder of the socket, {path}, is not a private folder of this user")]
    Unsafe {
        /// The folder.
        path: PathBuf,
    },
    /// Something else stands at its path.
    #[error("{path} is not a socket")]
    Occupied {
        /// The path.
        path: PathBuf,
    },
    /// Another daemon answers there.
    #[error("another daemon listens on {path}")]
    Answered {
        /// The path.
        path: PathBuf,
    },
    /// It cannot be bound.
    #[error("{path} cannot be listened on")]
    Bind {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Limits of the server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// How long the head of a request may take, and how long an idle connection is kept.
    pub head: Duration,
    /// How long open answers may take to end once the daemon goes down.
    pub drain: Duration,
}

impl Limits {
    /// 256 connections, 10 s, 5 s.
    #[must_use]
    pub const fn standard() -> Self {
        Self { connections: 256, head: Duration::from_secs(10), drain: Duration::from_secs(5) }
    }
}

/// Makes the socket, mode 0600, in a private folder. A dead socket is replaced, a living one never.
///
/// The caller holds the lock of the state directory, so a socket of ours that nobody answers is a leftover.
///
/// # Errors
/// [`ApiError`] names the path and what is wrong with it.
pub fn bind(place: &SocketPlace) -> Result<UnixListener, ApiError> {
    let path = &place.path;
    if let Some(folder) = path.parent() {
        private_folder(folder, place.origin)?;
    }
    match symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(ApiError::Bind { path: path.clone(), source }),
        Ok(found) if !found.file_type().is_socket() => return Err(ApiError::Occupied { path: path.clone() }),
        Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
            return Err(ApiError::Answered { path: path.clone() });
        }
        Ok(_) => std::fs::remove_file(path).map_err(|source| ApiError::Bind { path: path.clone(), source })?,
    }
    let bound = UnixListener::bind(path).and_then(|listener| {
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(listener)
    });
    bound.map_err(|source| ApiError::Bind { path: path.clone(), source })
}

/// A folder of our own that only we can use; for an explicit path the user chose the folder, so only its absence is repaired.
fn private_folder(folder: &Path, origin: SocketOrigin) -> Result<(), ApiError> {
    let failed = |source| ApiError::Folder { path: folder.to_path_buf(), source };
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound && origin == SocketOrigin::Explicit => {
            DirBuilder::new().mode(0o700).recursive(true).create(folder).map_err(failed)?;
        }
        other => other.map_err(failed)?,
    }
    if origin == SocketOrigin::Explicit {
        return Ok(());
    }
    let found = symlink_metadata(folder).map_err(failed)?;
    let own = found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw() && found.mode() & 0o077 == 0;
    if own { Ok(()) } else { Err(ApiError::Unsafe { path: folder.to_path_buf() }) }
}

/// Answers until the app's stop token is cancelled; then open streams end, running answers get [`Limits::drain`], and it returns.
///
/// Cancel safety: dropping it closes the listener; connections end with their tasks in `app.tasks`.
pub async fn serve(listener: UnixListener, app: App, ancestry: Ancestry, limits: Limits) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let refusals = Arc::new(Semaphore::new(32));
    let stop = app.stop.clone();
    let service = router(app.clone());
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors or memory: the backlog keeps callers while some are given back.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (answer, permit) = match peer::check(&stream, &ancestry) {
            Err(refusal) => {
                tracing::warn!(%refusal, "a peer was refused");
                (refusing(refusal.problem()), Arc::clone(&refusals).try_acquire_owned())
            }
            Ok(()) => match Arc::clone(&places).try_acquire_owned() {
                Ok(permit) => (service.clone(), Ok(permit)),
                Err(_) => (refusing(busy(limits.connections)), Arc::clone(&refusals).try_acquire_owned()),
            },
        };
        // Without a place even for a refusal the connection is dropped.
        if let Ok(permit) = permit {
            app.tasks.spawn(connection(stream, answer, permit, limits, stop.clone()));
        }
    }
}

fn busy(connections: usize) -> Problem {
    Problem::new("BUSY", format!("{connections} connections are open"))
        .why("that is the most the daemon keeps")
        .next("try again")
}

fn refusing(problem: Problem) -> Router {
    Router::new().fallback(move || std::future::ready(Refused(problem.clone()).into_response()))
}

async fn connection(
    stream: UnixStream,
    service: Router,
    permit: OwnedSemaphorePermit,
    limits: Limits,
    stop: CancellationToken,
) {
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut serving = std::pin::pin!(serving);
    let result = tokio::select! {
        result = serving.as_mut() => Some(result),
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            tokio::time::timeout(limits.drain, serving).await.ok()
        }
    };
    // Peers go away whenever they like; that is worth a line for whoever looks, not more.
    if let Some(Err(error)) = result {
        tracing::debug!(%error, "a connection ended early");
    }
    drop(permit);
}
