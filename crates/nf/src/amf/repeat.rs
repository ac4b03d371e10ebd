//! A NAS message that is sent anew each time its timer runs out, until it is answered or given up
//! (TS 24.501 table 10.2.2).

use super::context::{Env, UeContext};
use super::n1;
use crate::kit::{Duration, Timer};
use pith_nas::GmmMessage;

/// A message under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repeated {
    plain: Vec<u8>,
    timer: Timer,
    resent: u8,
}

/// What the end of a timer means for the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// It is sent once more.
    SendAgain,
    /// It has been sent often enough.
    GiveUp,
}

impl Repeated {
    /// Starts the timer of a message that is sent by other means.
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

    /// Its timer ran out: starts it anew, unless the message was repeated often enough.
    pub fn expired(&mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Expiry {
        if self.resent >= env.config.max_retransmissions {
            return Expiry::GiveUp;
        }
        self.resent += 1;
        ue.start(env, self.timer, length(env, self.timer));
        Expiry::SendAgain
    }

    /// Its timer ran out: sends it again; `GiveUp` if it was sent often enough.
    pub fn send_again(&mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Expiry {
        let expiry = self.expired(ue, env);
        if expiry == Expiry::SendAgain {
            n1::send_plain(ue, env, &self.plain);
        }
        expiry
    }

    /// It is answered.
    pub fn stop(&self, ue: &mut UeContext, env: &mut Env<'_>) {
        ue.stop(env, self.timer);
    }

    /// The octets of the plain message.
    pub fn plain(&self) -> &[u8] {
        &self.plain
    }
}

/// How long the timer of a message is.
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
