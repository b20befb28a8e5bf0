//! The lifeline: one socket between daemon and launcher. Its end means that the daemon is gone.
//!
//! It is the launcher's standard error, because three descriptors are all that a child can be given without unsafe code.
//!
//! ```text
//! daemon  ── "term <grace_ms>" | "kill" ──▶  launcher
//! daemon  ◀── "started" | "failed"  ───────  launcher
//! ```

use std::os::fd::AsFd as _;
use std::time::Duration;

/// What the daemon asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// TERM to the whole tree, KILL after the grace.
    Terminate(Duration),
    /// KILL at once.
    Kill,
    /// The daemon is gone.
    LifelineLost,
}

/// The launcher's end of the lifeline.
#[derive(Default)]
pub(super) struct Control {
    pending: Vec<u8>,
}

/// No order is longer than this; more without a line break is not ours.
const LINE_MAX: usize = 256;

impl Control {
    /// Reads what is there; blocks unless poll said that something is.
    pub(super) fn read(&mut self) -> Vec<Order> {
        let mut buffer = [0_u8; LINE_MAX];
        match rustix::io::read(std::io::stderr().as_fd(), &mut buffer) {
            Ok(0) => return vec![Order::LifelineLost],
            Ok(n) => self.pending.extend_from_slice(&buffer[..n]),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Vec::new(),
            Err(_) => return vec![Order::LifelineLost],
        }
        let mut orders = Vec::new();
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            orders.extend(parse(&line));
        }
        if self.pending.len() > LINE_MAX {
            orders.push(Order::LifelineLost);
        }
        orders
    }

    /// Tells the daemon one word; a daemon that is gone shows as the lifeline's end, so a failure here says nothing new.
    pub(super) fn say(word: &str) {
        let line = format!("{word}\n");
        if rustix::io::write(std::io::stderr().as_fd(), line.as_bytes()).is_err() {
            // Poll reports the lost lifeline; there is nobody to tell here.
        }
    }
}

fn parse(line: &[u8]) -> Option<Order> {
    let text = std::str::from_utf8(line).ok()?.trim_end();
    if text == "kill" {
        return Some(Order::Kill);
    }
    let millis = text.strip_prefix("term ")?.parse().ok()?;
    Some(Order::Terminate(Duration::from_millis(millis)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read() {
        assert_eq!(parse(b"kill\n"), Some(Order::Kill));
        assert_eq!(parse(b"term 1500\n"), Some(Order::Terminate(Duration::from_millis(1500))));
        assert_eq!(parse(b"term -1\n"), None);
        assert_eq!(parse(b"\xff\n"), None);
    }
}
