//! Paging of a UE's user: a packet of the data network reaches the UE in idle (TS 23.502 4.2.3.3).

use super::{Journey, JourneyContext, Progress, Step, UserAction};
use crate::clock::Instant;
use std::time::Duration;

/// Time for the packet to be delivered: paging is repeated after T3513, 6 s in many networks.
const PATIENCE: Duration = Duration::from_secs(15);

impl Journey {
    /// Has the data network send a packet.
    pub(super) fn send_page(&mut self, scene: &mut JourneyContext<'_>) {
        self.pages += 1;
        self.deadline = Some(scene.now + PATIENCE);
        scene.actions.push(UserAction::Page(self.pages));
    }

    /// The UE is connected, and a packet reaches it without paging.
    pub fn on_not_idle(&mut self, scene: &mut JourneyContext<'_>) {
        if self.progress == Progress::Under(Step::Page) {
            self.fail("paging: the UE is not idle".to_owned(), scene);
        }
    }

    /// A packet of the data network was delivered.
    pub fn on_paged(&mut self, number: u64, sent: Instant, scene: &mut JourneyContext<'_>) {
        if self.progress == Progress::Under(Step::Page) && number == self.pages {
            self.deadline = None;
            scene.statistics.paging.add(scene.now - sent);
            self.end_step(scene);
        }
    }
}
