//! Many short lives side by side: as many as the machine has processors, a little more for those that wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// Does `work` for each job, several at a time; returns the results in the order of the jobs. A panic is that job's error.
pub(crate) fn each<J: Sync, R: Send>(jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<Result<R, String>> {
    let workers = std::thread::available_parallelism().map_or(2, usize::from) + 2;
    let next = Mutex::new(0..jobs.len());
    let results: Mutex<Vec<Option<Result<R, String>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..workers.min(jobs.len()) {
            scope.spawn(|| {
                loop {
                    let Some(index) = next.lock().unwrap().next() else { return };
                    let done = catch_unwind(AssertUnwindSafe(|| work(&jobs[index])));
                    results.lock().unwrap()[index] = Some(done.map_err(|panic| told(&*panic)));
                }
            });
        }
    });
    results.into_inner().unwrap().into_iter().map(|result| result.expect("every job was done")).collect()
}

fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_else(|| "a panic".into())
}
