//! How a UE in CM-IDLE can be reached: UE-specific DRX, extended DRX and MICO mode (TS 23.501 5.4.5, 5.31.7.2, 5.4.1.3).
//!
//! REGISTRATION ACCEPT grants what the UE has requested in that registration, and the UE uses nothing else: each registration replaces what
//! the former one has granted. Only UE-specific DRX stays as it is in a periodic update, in which the UE does not request it
//! (TS 24.501 5.5.1.3.2).
//!
//! A UE in MICO mode is not reachable in CM-IDLE, except in the active time (T3324) after its connection. Until when that lasts is kept as a
//! time: no timer has to run, because nothing happens when it ends.

use super::config::AmfConfig;
use super::context::{Env, UeContext};
use crate::kit::document::{pack_enum, pack_struct};
use crate::kit::{Duration, Timer};
use pith_nas::gmm::{RegistrationAccept, RegistrationRequest};
use pith_nas::ie::{DrxParameters, ExtendedDrxParameters, GprsTimer3, MicoIndication, RegistrationKind};
use pith_ngap::{NrPagingEdrx, NrPagingEdrxCycle, NrPagingTimeWindow, PagingDrx, PagingPriority};
use pith_sbi::common::DateTime;
use pith_sbi::namf_communication as namf;

/// What the last REGISTRATION ACCEPT has granted, and the paging in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reachability {
    /// UE-specific DRX.
    pub drx: Option<Drx>,
    /// Extended DRX.
    pub extended_drx: Option<ExtendedDrx>,
    /// MICO mode.
    pub mico: Option<Mico>,
    /// T3512 that the UE got with MICO mode, in seconds. It stays when an emergency session ends MICO mode.
    pub t3512: Option<u32>,
    /// Place of the highest ARP of the queued messages among the ARPs of priority services ([`AmfConfig::paging_priorities`]).
    pub paging_priority: Option<u8>,
    /// Until when a UE with extended DRX is paged, before the retransmissions of PAGING count.
    pub paged_until: Option<DateTime>,
}

/// DRX cycle, in radio frames (TS 24.501 9.11.3.2A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drx {
    T32,
    T64,
    T128,
    T256,
}

/// Extended DRX: the codes of TS 24.008 10.5.5.32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExtendedDrx {
    /// eDRX value: one of [`CYCLES`].
    pub value: u8,
    /// Paging time window, 0 to 15.
    pub window: u8,
}

/// MICO mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mico {
    /// The registration area is the whole network.
    pub all_plmn_area: bool,
    /// T3324 in seconds.
    pub active_time: Option<u32>,
    /// End of the active time that began when the UE entered CM-IDLE.
    pub active_until: Option<DateTime>,
}

pack_enum!(Drx { 0 => T32, 1 => T64, 2 => T128, 3 => T256 });
pack_struct!(ExtendedDrx { value, window });
pack_struct!(Mico { all_plmn_area, active_time, active_until });
pack_struct!(Reachability { drx, extended_drx, mico, t3512, paging_priority, paged_until });

impl Drx {
    /// Reserved values mean that the UE has no preference (TS 24.501 table 9.11.3.2A.1).
    const fn of(parameters: DrxParameters) -> Option<Self> {
        match parameters {
            DrxParameters::T32 => Some(Self::T32),
            DrxParameters::T64 => Some(Self::T64),
            DrxParameters::T128 => Some(Self::T128),
            DrxParameters::T256 => Some(Self::T256),
            DrxParameters::NotSpecified | DrxParameters::Other(_) => None,
        }
    }

    const fn parameters(self) -> DrxParameters {
        match self {
            Self::T32 => DrxParameters::T32,
            Self::T64 => DrxParameters::T64,
            Self::T128 => DrxParameters::T128,
            Self::T256 => DrxParameters::T256,
        }
    }

    /// The cycle in radio frames.
    pub const fn frames(self) -> u16 {
        match self {
            Self::T32 => 32,
            Self::T64 => 64,
            Self::T128 => 128,
            Self::T256 => 256,
        }
    }

    /// As gNBs get it.
    pub const fn paging_drx(self) -> PagingDrx {
        match self {
            Self::T32 => PagingDrx::v32,
            Self::T64 => PagingDrx::v64,
            Self::T128 => PagingDrx::v128,
            Self::T256 => PagingDrx::v256,
        }
    }
}

/// The cycles that NR has, shortest first: eDRX value, milliseconds, and the cycle in PAGING. The code 0 also means 2.56 s in NR: a UE with
/// that cycle is awake at each PAGING of 5.12 s.
const CYCLES: [(u8, u64, NrPagingEdrxCycle); 12] = [
    (0, 5_120, NrPagingEdrxCycle::hfhalf),
    (1, 10_240, NrPagingEdrxCycle::hf1),
    (2, 20_480, NrPagingEdrxCycle::hf2),
    (3, 40_960, NrPagingEdrxCycle::hf4),
    (5, 81_920, NrPagingEdrxCycle::hf8),
    (9, 163_840, NrPagingEdrxCycle::hf16),
    (10, 327_680, NrPagingEdrxCycle::hf32),
    (11, 655_360, NrPagingEdrxCycle::hf64),
    (12, 1_310_720, NrPagingEdrxCycle::hf128),
    (13, 2_621_440, NrPagingEdrxCycle::hf256),
    (14, 5_242_880, NrPagingEdrxCycle::hf512),
    (15, 10_485_760, NrPagingEdrxCycle::hf1024),
];

/// The longest cycle without a paging time window (TS 38.304 7.4).
const LONGEST_WITHOUT_WINDOW: Duration = Duration::from_millis(10_240);

/// The unit of the paging time window, in milliseconds.
const WINDOW_UNIT: u64 = 1_280;

/// The longest paging time window, in units.
const LONGEST_WINDOW: u64 = 16;

/// PAGINGs of a cycle that has a long enough window.
const MOST_PAGINGS: u64 = 64;

/// The code of the shortest paging time window with which a cycle has at most [`MOST_PAGINGS`]. For a cycle of more than 1310.72 s there is
/// none: it gets the longest window.
fn shortest_window(cycle: u64) -> u8 {
    let units = cycle.div_ceil(MOST_PAGINGS * WINDOW_UNIT);
    (units.clamp(1, LONGEST_WINDOW) - 1) as u8
}

impl ExtendedDrx {
    /// The requested cycle, or the longest one of NR that is not longer than that and than the operator's longest. Cycles of E-UTRA only
    /// become the next shorter one of NR. The window is the requested one, or longer: PAGING is sent in each window of a cycle.
    fn granted(requested: &ExtendedDrxParameters, longest: Duration) -> Option<Self> {
        let is_short = |(value, ms, _): &&(u8, u64, _)| {
            *value <= requested.value && Duration::from_millis(*ms).as_secs() <= longest.as_secs()
        };
        let (value, ms, _) = CYCLES.iter().rfind(is_short)?;
        let window = (requested.paging_time_window & 0xf).max(shortest_window(*ms));
        Some(Self { value: *value, window })
    }

    fn parameters(self) -> ExtendedDrxParameters {
        ExtendedDrxParameters { paging_time_window: self.window, value: self.value, further: Vec::new() }
    }

    /// The cycle in milliseconds.
    pub fn cycle_ms(self) -> u64 {
        CYCLES.iter().find(|(value, ..)| *value == self.value).unwrap_or(&CYCLES[0]).1
    }

    fn entry(self) -> (Duration, NrPagingEdrxCycle) {
        let entry = CYCLES.iter().find(|(value, ..)| *value == self.value);
        let (_, ms, cycle) = entry.unwrap_or(&CYCLES[0]);
        (Duration::from_millis(*ms), *cycle)
    }

    /// The paging time window; `None` if the cycle has none.
    fn window(self) -> Option<Duration> {
        let length = Duration::from_millis(WINDOW_UNIT * (u64::from(self.window) + 1));
        (self.entry().0 > LONGEST_WITHOUT_WINDOW).then_some(length)
    }

    /// As gNBs get it (TS 38.413 9.3.1.227).
    fn paging(self) -> NrPagingEdrx {
        let window = self.window().map(|_| WINDOWS[usize::from(self.window & 0xf)]);
        NrPagingEdrx { cycle: self.entry().1, window }
    }
}

const WINDOWS: [NrPagingTimeWindow; 16] = {
    use NrPagingTimeWindow as W;
    [
        W::s1,
        W::s2,
        W::s3,
        W::s4,
        W::s5,
        W::s6,
        W::s7,
        W::s8,
        W::s9,
        W::s10,
        W::s11,
        W::s12,
        W::s13,
        W::s14,
        W::s15,
        W::s16,
    ]
};

/// The priorities of PAGING, highest first.
const PRIORITIES: [PagingPriority; 8] = [
    PagingPriority::priolevel1,
    PagingPriority::priolevel2,
    PagingPriority::priolevel3,
    PagingPriority::priolevel4,
    PagingPriority::priolevel5,
    PagingPriority::priolevel6,
    PagingPriority::priolevel7,
    PagingPriority::priolevel8,
];

impl Reachability {
    /// Paging Priority (TS 23.501 5.4.3.2).
    pub fn priority(&self) -> Option<PagingPriority> {
        PRIORITIES.get(usize::from(self.paging_priority?)).copied()
    }
}

/// Decides what the registration grants.
pub(crate) fn negotiate(ue: &mut UeContext, config: &AmfConfig, request: &RegistrationRequest) {
    let is_periodic = request.registration_type.kind == RegistrationKind::PeriodicUpdating;
    let drx = match request.requested_drx_parameters {
        None if is_periodic => ue.reachability.drx,
        requested => requested.and_then(Drx::of),
    };
    let mico = mico(ue, config, request);
    let t3512 = mico.and(config.mico).map(|mico| {
        let requested = request.requested_t3512.and_then(GprsTimer3::duration).filter(|it| !it.is_zero());
        // A UE does not choose to update more often than one without MICO mode.
        let limited = |it: Duration| it.max(config.timers.t3512).min(mico.t3512);
        let granted = GprsTimer3::at_least(requested.map_or(mico.t3512, limited));
        granted.duration().unwrap_or(mico.t3512).as_secs() as u32
    });
    // Without active time there is no paging in which the cycle could have a meaning.
    let is_paged = mico.is_none_or(|mico| mico.active_time.is_some());
    let requested = request.requested_extended_drx_parameters.as_ref();
    let requested = requested.filter(|_| is_paged && !ue.is_emergency_registered());
    let extended_drx = requested.and_then(|it| ExtendedDrx::granted(it, config.longest_edrx_cycle));
    ue.reachability = Reachability { drx, extended_drx, mico, t3512, ..Reachability::default() };
}

/// MICO mode, if the UE requests it, and has no emergency services (TS 23.501 5.4.1.3).
fn mico(ue: &UeContext, config: &AmfConfig, request: &RegistrationRequest) -> Option<Mico> {
    let granted = config.mico?;
    request.mico_indication?;
    if ue.is_emergency_registered() || ue.emergency_session().is_some() {
        return None;
    }
    let active_time = request.t3324.and_then(GprsTimer3::duration).map(|time| time.as_secs() as u32);
    // In a part of the network the UE has no service, which it is to learn when it moves there.
    let all_plmn_area = granted.all_plmn_area && ue.restrictions.is_none();
    Some(Mico { all_plmn_area, active_time, active_until: None })
}

/// Adds what the registration grants. A parameter that the UE has not requested is absent.
pub(crate) fn describe(ue: &UeContext, request: &RegistrationRequest, accept: &mut RegistrationAccept) {
    let Reachability { drx, extended_drx, mico, t3512, .. } = ue.reachability;
    if request.requested_drx_parameters.is_some() {
        accept.negotiated_drx_parameters = Some(drx.map_or(DrxParameters::NotSpecified, Drx::parameters));
    }
    accept.negotiated_extended_drx_parameters = extended_drx.map(ExtendedDrx::parameters);
    let Some(mico) = mico else { return };
    accept.mico_indication =
        Some(MicoIndication { all_plmn_area: mico.all_plmn_area, strictly_periodic: false });
    let timer = |seconds: u32| GprsTimer3::at_least(Duration::from_secs(seconds.into()));
    accept.t3324 = mico.active_time.map(timer);
    if let Some(t3512) = t3512 {
        accept.t3512 = Some(timer(t3512));
    }
    if mico.all_plmn_area {
        accept.tai_list = None;
    }
}

/// The UE enters CM-IDLE. Starts the timer that supervises its periodic updates: the mobile reachable timer, which is T3512 for an emergency
/// registered UE, or the implicit de-registration timer in MICO mode (TS 24.501 5.3.7). A UE with active time is reachable from now on.
pub(crate) fn on_idle(ue: &mut UeContext, env: &mut Env<'_>) {
    let timers = env.config.timers;
    let is_emergency = ue.knows_emergency_registration();
    let own = ue.reachability.t3512.map(|seconds| Duration::from_secs(seconds.into()));
    let t3512 = own.unwrap_or_else(|| env.config.t3512(is_emergency));
    let now = env.now;
    let Some(mico) = &mut ue.reachability.mico else {
        let margin = if is_emergency { Duration::ZERO } else { timers.mobile_reachable_margin };
        return ue.start(env, Timer::MobileReachable, t3512 + margin);
    };
    let active_time = mico.active_time.map(|seconds| Duration::from_secs(seconds.into()));
    mico.active_until = active_time.map(|time| env.config.identity.date_time(now + time));
    ue.start(env, Timer::ImplicitDeregistration, t3512 + timers.mobile_reachable_margin);
}

/// Whether the UE is in CM-IDLE and can't be paged (TS 23.501 5.4.1.3).
pub(crate) fn is_unreachable(ue: &UeContext, env: &Env<'_>) -> bool {
    let Some(mico) = ue.reachability.mico.filter(|_| ue.connection.is_none()) else { return false };
    let now = env.config.identity.date_time(env.now);
    mico.active_until.is_none_or(|until| until <= now)
}

impl UeContext {
    /// Extended DRX is not used during an emergency session (TS 24.501 5.3.16).
    fn extended_drx(&self) -> Option<ExtendedDrx> {
        self.reachability.extended_drx.filter(|_| self.emergency_session().is_none())
    }

    /// Extended DRX for PAGING.
    pub fn paging_edrx(&self) -> Option<NrPagingEdrx> {
        self.extended_drx().map(ExtendedDrx::paging)
    }

    /// The UE has an emergency session: UE and AMF leave MICO mode until the next registration (TS 23.501 5.4.1.3).
    pub fn leave_mico_mode(&mut self) {
        self.reachability.mico = None;
    }
}

/// The first PAGING was sent. A UE with extended DRX listens once a cycle: it is paged so often that a PAGING is sent in each paging time
/// window, also for a gNB that does not keep it until then, for one cycle.
pub(crate) fn begin_paging(ue: &mut UeContext, env: &mut Env<'_>) {
    ue.reachability.paged_until = None;
    let Some(extended) = ue.extended_drx() else { return };
    let cycle = extended.entry().0;
    ue.reachability.paged_until = Some(env.config.identity.date_time(env.now + cycle));
    ue.start(env, Timer::T3513, interval(extended, env));
}

/// T3513 expired: whether the cycle has not passed, so that PAGING is sent again and does not count.
pub(crate) fn continues_paging(ue: &mut UeContext, env: &mut Env<'_>) -> bool {
    let now = env.config.identity.date_time(env.now);
    let is_early = ue.reachability.paged_until.is_some_and(|until| now < until);
    let Some(extended) = ue.extended_drx().filter(|_| is_early) else { return false };
    ue.start(env, Timer::T3513, interval(extended, env));
    true
}

/// The time between two PAGING of one cycle: not longer than the window, but for a window shorter than T3513.
fn interval(extended: ExtendedDrx, env: &Env<'_>) -> Duration {
    extended.window().unwrap_or_default().max(env.config.timers.t3513)
}

/// Notes the ARP priority level of a message that is queued for the UE: the highest of the queued ones counts. Levels that are not those of
/// priority services have no priority in paging (TS 23.501 5.4.3.2).
pub(crate) fn note_priority(ue: &mut UeContext, config: &AmfConfig, arp: Option<u8>) {
    let place = arp.and_then(|arp| config.paging_priorities.iter().position(|level| *level == arp));
    let place = place.and_then(|place| u8::try_from(place).ok());
    ue.reachability.paging_priority = place.into_iter().chain(ue.reachability.paging_priority).min();
}

/// Messages have left the queue. With the last one its priority ends: messages that are queued later have their own.
pub(crate) fn note_dequeued(ue: &mut UeContext) {
    if ue.undelivered.is_empty() {
        ue.reachability.paging_priority = None;
    }
}

/// UE-specific DRX for another AMF (TS 29.518 6.1.6.2.25): the information element with its identifier and length.
pub(crate) fn describe_drx(ue: &UeContext, context: &mut namf::UeContext) {
    let drx = ue.reachability.drx.map(|drx| vec![DRX_IEI, 1, drx.parameters().code()]);
    context.drx_parameter = drx.map(Into::into);
}

/// UE-specific DRX from another AMF, which may have left identifier and length out.
pub(crate) fn take_drx(ue: &mut UeContext, context: &namf::UeContext) {
    let octets = context.drx_parameter.as_ref().map(|octets| &octets.0[..]);
    ue.reachability.drx = match octets {
        Some([DRX_IEI, 1, code] | [code]) => Drx::of(DrxParameters::from_code(*code)),
        _ => None,
    };
}

/// Information element identifier of the requested DRX parameters (TS 24.501 table 8.2.6.1.1).
const DRX_IEI: u8 = 0x51;
