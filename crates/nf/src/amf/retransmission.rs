//! A NAS message that is retransmitted each time its timer expires, until it is answered or the
//! retry limit is reached (TS 24.501 table 10.2.2).

use super::context::{Env, UeContext};
use super::n1;
use crate::kit::document::pack_struct;
use crate::kit::{Duration, Timer};
use pith_nas::GmmMessage;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retransmission {
    plain: Vec<u8>,
    timer: Timer,
    resent: u8,
}

pack_struct!(Retransmission { plain, timer, resent });

/// In place of the number of retransmissions: the message is sent once.
const SENT_ONCE: u8 = u8::MAX;

/// The result of a timer's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// The message is to be retransmitted.
    SendAgain,
    /// The retry limit is reached.
    GiveUp,
}

impl Retransmission {
    /// Starts the timer of a message that the caller sends.
    pub fn start(ue: &mut UeContext, env: &mut Env<'_>, timer: Timer, plain: Vec<u8>) -> Self {
        ue.start(env, timer, length(env, timer));
        Self { plain, timer, resent: 0 }
    }

    /// Sends a message and starts its timer.
    pub fn send(ue: &mut UeContext, env: &mut Env<'_>, timer: Timer, message: impl Into<GmmMessage>) -> Self {
        let plain = message.into().encode();
        n1::send_plain(ue, env, &plain);
        Self::start(ue, env, timer, plain)
    }

    /// Its timer expired: restarts it, unless the retry limit is reached.
    pub fn expired(&mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Expiry {
        if self.resent >= env.config.max_retransmissions {
            return Expiry::GiveUp;
        }
        self.resent += 1;
        ue.start(env, self.timer, length(env, self.timer));
        Expiry::SendAgain
    }

    /// Its timer expired: retransmits the message; `GiveUp` if the retry limit is reached.
    pub fn send_again(&mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Expiry {
        let expiry = self.expired(ue, env);
        if expiry == Expiry::SendAgain {
            n1::send_plain(ue, env, &self.plain);
        }
        expiry
    }

    /// The message is not retransmitted: the caller acts when its timer expires.
    pub const fn send_once(&mut self) {
        self.resent = SENT_ONCE;
    }

    /// Whether the message is not retransmitted.
    pub const fn is_sent_once(&self) -> bool {
        self.resent == SENT_ONCE
    }

    /// The message is retransmitted as any other.
    pub const fn send_as_usual(&mut self) {
        if self.is_sent_once() {
            self.resent = 0;
        }
    }

    /// Sends the message once more, and restarts its timer; this is no retransmission that counts.
    pub fn repeat(&self, ue: &mut UeContext, env: &mut Env<'_>) {
        n1::send_plain(ue, env, &self.plain);
        self.restart(ue, env);
    }

    /// Restarts the timer.
    pub fn restart(&self, ue: &mut UeContext, env: &mut Env<'_>) {
        ue.start(env, self.timer, length(env, self.timer));
    }

    /// The message is answered: stops the timer.
    pub fn stop(&self, ue: &mut UeContext, env: &mut Env<'_>) {
        ue.stop(env, self.timer);
    }

    /// The encoded plain message.
    pub fn plain(&self) -> &[u8] {
        &self.plain
    }
}

/// The duration of a message's timer.
fn length(env: &Env<'_>, timer: Timer) -> Duration {
    let timers = &env.config.timers;
    match timer {
        Timer::T3513 => timers.t3513,
        Timer::T3522 => timers.t3522,
        Timer::T3555 => timers.t3555,
        Timer::T3560 => timers.t3560,
        Timer::T3570 => timers.t3570,
        _ => timers.t3550,
    }
}
