//! The document of a UE's context.
//!
//! ```text
//!  identity      SUPI, claimed identity, PEI, 5G-GUTIs
//!  security      K_AMF, algorithms, COUNTs, capability; the context may be outdated
//!  registration  area, location, subscription, slices, policy, subscriptions at UDM and PCF
//!  sessions      SM contexts, pending requests to SMFs
//!  procedure     the state of the 5GMM procedure; and what belongs to the request in progress, if there is anything
//!  connection    the NG connection, and PDUs queued for the gNB; absent in CM-IDLE
//!  former        requests to the gNB about sessions that the UE does not have any longer; absent if all are answered
//!  gNB           the host of the connection's gNB; absent with the connection, and in documents of earlier versions
//!  undelivered   N1 and N2 messages for a UE in CM-IDLE
//!  mobility      NH and NCC, and the state of the handover; absent in CM-IDLE, and before the first handover
//!  offered       security context of a SECURITY MODE COMMAND without an answer; absent if there is none
//!  restrictions  mobility restrictions; absent if there are none
//!  emergency     emergency registration and session, and the arrival below; absent if there are none
//!  returned      NAS messages that the gNB has returned; absent if there are none
//!                arrival: the AMF from which the UE is being handed over; none in any document that is stored
//!  trace         the subscribed trace, and what gNBs have got of it; absent if there is none
//!  re-allocation what a registration needs that is passed on to another AMF, or came from one; absent if there is nothing
//!  voice         whether the radio capabilities suffice for IMS voice; absent if that is not known
//!  ER-NSSAI      the UE takes Extended rejected NSSAI; absent if it does not
//!  configured    the UE is to get a Configured NSSAI; absent if it is not
//!  reachability  DRX and MICO mode, and the priority of paging; absent if there is nothing
//!  networks      networks of the AMF, of its registration in the UDM and of the target of a handover; absent if they are the usual ones
//!  timers        running timers with their deadlines; number of the last call
//! ```
//!
//! The retained security context of a deregistered UE ([`super::retained`]) has a document of identity, security and
//!
//! ```text
//!  retained      until when
//! ```
//!
//! Not in it: the key in the table, the id, which is the document's key, the entries of the lists of unauthenticated UEs and of connections that are being released. The
//! loader of a document adds them again. A connection to a gNB whose association has ended is left out: the UE is CM-IDLE.

use super::connection::{FormerRequests, NgConnection, RanContext};
use super::context::UeContext;
use super::emergency::Emergency;
use super::procedure::voice_match::VoiceMatch;
use super::reachability::Reachability;
use super::retained::KnownUe;
use super::security::SecurityContext;
use crate::kit::document::{
    Document, Names, Pack, PackError, Reader, Section, Sections, UnpackError, Writer, pack_enum,
};
use crate::kit::{Context, GnbHandle, Handles, Key, Nf, TnlaBinding, UNPLACED};
use pith_sbi::common::DateTime;
use pith_types::{AmfUeNgapId, ContextId, RanUeNgapId};
use std::net::IpAddr;

const IDENTITY: Section = Section { id: 1, name: "identity", version: 1 };
const SECURITY: Section = Section { id: 2, name: "security", version: 1 };
const REGISTRATION: Section = Section { id: 3, name: "registration", version: 1 };
const SESSIONS: Section = Section { id: 4, name: "sessions", version: 1 };
const PROCEDURE: Section = Section { id: 5, name: "procedure", version: 2 };
const CONNECTION: Section = Section { id: 6, name: "connection", version: 1 };
const UNDELIVERED: Section = Section { id: 7, name: "undelivered messages", version: 1 };
const TIMERS: Section = Section { id: 8, name: "timers", version: 1 };
const MOBILITY: Section = Section { id: 9, name: "mobility", version: 2 };
const GNB: Section = Section { id: 10, name: "gNB", version: 1 };

pub(super) const RETAINED: Section = Section { id: 11, name: "retained", version: 1 };
const OFFERED: Section = Section { id: 12, name: "offered security context", version: 1 };
const RESTRICTIONS: Section = Section { id: 13, name: "mobility restrictions", version: 1 };
const RETURNED: Section = Section { id: 14, name: "returned NAS messages", version: 1 };
const EMERGENCY: Section = Section { id: 15, name: "emergency services, or arrival", version: 2 };
const TRACE: Section = Section { id: 16, name: "trace", version: 1 };
const REALLOCATION: Section = Section { id: 17, name: "re-allocation", version: 2 };
const VOICE: Section = Section { id: 18, name: "IMS voice", version: 1 };
const REACHABILITY: Section = Section { id: 19, name: "reachability", version: 1 };
const FORMER: Section = Section { id: 20, name: "requests about former sessions", version: 1 };
const NETWORKS: Section = Section { id: 21, name: "networks", version: 1 };
const ER_NSSAI: Section = Section { id: 22, name: "ER-NSSAI", version: 1 };
const CONFIGURED: Section = Section { id: 23, name: "Configured NSSAI", version: 1 };

/// The sections of a retained security context.
const RETAINED_SECTIONS: &[Section] = &[IDENTITY, SECURITY, RETAINED];

/// All sections, in their order in a document.
pub(super) const SECTIONS: &[Section] = &[
    IDENTITY,
    SECURITY,
    REGISTRATION,
    SESSIONS,
    PROCEDURE,
    CONNECTION,
    FORMER,
    GNB,
    UNDELIVERED,
    MOBILITY,
    OFFERED,
    RESTRICTIONS,
    RETURNED,
    EMERGENCY,
    TRACE,
    REALLOCATION,
    VOICE,
    ER_NSSAI,
    CONFIGURED,
    REACHABILITY,
    NETWORKS,
    TIMERS,
];

/// Sections that are absent if they are empty.
const OPTIONAL: &[Section] = &[
    MOBILITY,
    OFFERED,
    RESTRICTIONS,
    RETURNED,
    EMERGENCY,
    TRACE,
    REALLOCATION,
    VOICE,
    ER_NSSAI,
    CONFIGURED,
    REACHABILITY,
    NETWORKS,
];

/// The sections of the local form. The NG connection is in its table.
const LOCAL_SECTIONS: &[Section] = &[
    IDENTITY,
    SECURITY,
    REGISTRATION,
    SESSIONS,
    PROCEDURE,
    UNDELIVERED,
    MOBILITY,
    OFFERED,
    RESTRICTIONS,
    RETURNED,
    EMERGENCY,
    TRACE,
    REALLOCATION,
    VOICE,
    ER_NSSAI,
    CONFIGURED,
    REACHABILITY,
    NETWORKS,
    TIMERS,
];

/// A context in the local form: a UE that is packed in memory.
impl Context for UeContext {
    /// Its NG connection.
    type Mark = Option<Key>;

    fn id(&self) -> ContextId {
        self.id
    }

    fn mark(&self) -> Option<Key> {
        self.connection
    }

    fn is_idle(&self) -> bool {
        matches!(self.procedure, super::procedure::Procedure::Idle)
            && self.mobility.is_idle()
            && !self.is_in_transaction()
            && self.undelivered.is_empty()
    }

    fn pack_local(&self) -> Option<Document> {
        // The list of unauthenticated UEs is limited, and so are these contexts.
        if self.half_open.is_some() {
            return None;
        }
        let mut writer = Writer::new(Nf::Amf, &Handles);
        for section in LOCAL_SECTIONS.iter().filter(|it| is_present(self, it)) {
            writer.section(section, |writer| write(self, section, writer));
        }
        writer.finish().ok()
    }

    fn unpack_local(
        octets: &[u8],
        named: (Key, ContextId),
        connection: Option<Key>,
    ) -> Result<Self, UnpackError> {
        let sections = Sections::of(octets, Nf::Amf, LOCAL_SECTIONS, &Handles)?;
        Ok(Self { connection, ..read_all(&sections, LOCAL_SECTIONS, named)? })
    }
}

pack_enum!(RanContext { 0 => Absent, 1 => Requested, 2 => Established, 3 => Releasing, 4 => Switching, 5 => Awaiting, 6 => Prepared, 7 => Left });

/// An NG connection as it is in a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoredConnection {
    pub id: AmfUeNgapId,
    pub ran_id: RanUeNgapId,
    /// Global RAN Node ID.
    pub gnb: std::sync::Arc<str>,
    /// In a document only the stream.
    pub binding: TnlaBinding,
    pub context: RanContext,
    pub queued: Vec<Vec<u8>>,
    pub former: FormerRequests,
}

impl StoredConnection {
    /// The connection of a UE at a gNB with that handle.
    pub fn into_connection(self, gnb: GnbHandle, ue: Key) -> NgConnection {
        let Self { id, ran_id, gnb: _, binding, context, queued, former } = self;
        NgConnection {
            id,
            ran_id,
            gnb,
            binding,
            keeps_stream: true,
            ue: Some(ue),
            former_ue: None,
            context,
            queued,
            left: None,
            former,
            releasing: None,
        }
    }
}

impl Pack for StoredConnection {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { id, ran_id, gnb, binding, context, queued, former: _ } = self;
        id.pack(writer);
        ran_id.pack(writer);
        gnb.pack(writer);
        binding.pack(writer);
        context.pack(writer);
        queued.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        Ok(Self {
            id: Pack::unpack(reader)?,
            ran_id: Pack::unpack(reader)?,
            gnb: Pack::unpack(reader)?,
            binding: Pack::unpack(reader)?,
            context: Pack::unpack(reader)?,
            queued: Pack::unpack(reader)?,
            // In a section of its own.
            former: FormerRequests::NONE,
        })
    }
}

/// A context that was unpacked, without the entries that it needs in the tables.
pub(super) struct Unpacked {
    pub ue: UeContext,
    pub connection: Option<StoredConnection>,
    /// The host of its gNB.
    pub host: Option<IpAddr>,
}

/// Packs a context with its connection.
pub(super) fn pack(
    ue: &UeContext,
    connection: Option<&NgConnection>,
    names: &dyn Names,
) -> Result<Document, PackError> {
    pack_sections(ue, connection, names, SECTIONS)
}

/// Packs some sections of a context. The connection is left out if there is none.
pub(super) fn pack_sections(
    ue: &UeContext,
    connection: Option<&NgConnection>,
    names: &dyn Names,
    sections: &[Section],
) -> Result<Document, PackError> {
    let mut writer = Writer::new(Nf::Amf, names);
    let connection = connection.and_then(|it| Some((it, names.gnb_name(it.gnb)?)));
    for section in sections.iter().filter(|it| is_present(ue, it)) {
        match (*section, connection) {
            (CONNECTION, None) => {}
            (CONNECTION, Some((connection, gnb))) => {
                writer.section(section, |writer| write_connection(connection, gnb, writer));
            }
            (FORMER, connection) => {
                if let Some((connection, _)) = connection.filter(|(it, _)| it.former != FormerRequests::NONE)
                {
                    writer.section(section, |writer| connection.former.pack(writer));
                }
            }
            (GNB, connection) => {
                if let Some(host) = connection.and_then(|(connection, _)| names.gnb_host(connection.gnb)) {
                    writer.section(section, |writer| host.pack(writer));
                }
            }
            _ => writer.section(section, |writer| write(ue, section, writer)),
        }
    }
    writer.finish()
}

/// Whether a section is not empty, of those that are left out if they are.
fn is_present(ue: &UeContext, section: &Section) -> bool {
    match *section {
        MOBILITY => !(ue.mobility.is_idle() && ue.access_keys.is_initial() && ue.withdrawn.is_none()),
        OFFERED => ue.offered.is_some(),
        RESTRICTIONS => ue.restrictions.is_some(),
        TRACE => ue.trace.is_some(),
        REALLOCATION => ue.reallocation.is_some(),
        VOICE => ue.voice != VoiceMatch::Unknown,
        ER_NSSAI => ue.takes_extended_rejection,
        CONFIGURED => ue.owes_configured_nssai,
        REACHABILITY => ue.reachability != Reachability::default(),
        NETWORKS => ue.udm_plmn.is_some() || ue.target_plmn.is_some(),
        RETURNED => !ue.returned.is_empty(),
        EMERGENCY => ue.emergency != Emergency::default() || ue.arrival.is_some(),
        _ => true,
    }
}

/// Packs the retained security context of a deregistered UE.
pub(super) fn pack_retained(known: KnownUe, until: DateTime, id: ContextId) -> Result<Document, PackError> {
    let KnownUe { supi, pei, guti, security } = known;
    let mut ue = UeContext::new((UNPLACED, id), until);
    ue.capability = Some(security.capability);
    (ue.supi, ue.pei, ue.guti, ue.security) = (Some(supi), pei, Some(guti), Some(security));
    let mut writer = Writer::new(Nf::Amf, &());
    for section in [IDENTITY, SECURITY] {
        writer.section(&section, |writer| write(&ue, &section, writer));
    }
    writer.section(&RETAINED, |writer| until.pack(writer));
    writer.finish()
}

/// Whether a document is that of a retained security context.
pub(super) fn is_retained(octets: &[u8]) -> bool {
    Sections::of(octets, Nf::Amf, RETAINED_SECTIONS, &()).is_ok_and(|sections| sections.has(&RETAINED))
}

/// Unpacks the document of a retained security context: a context with identity and security only, and until when it is retained.
pub(super) fn unpack_retained(
    octets: &[u8],
    named: (Key, ContextId),
) -> Result<(UeContext, DateTime), UnpackError> {
    let sections = Sections::of(octets, Nf::Amf, RETAINED_SECTIONS, &())?;
    let until = sections.unpack(&RETAINED)?;
    Ok((read_all(&sections, &[IDENTITY, SECURITY], named)?, until))
}

/// Writes a section's body: each field belongs to one section.
fn write(ue: &UeContext, section: &Section, writer: &mut Writer<'_>) {
    let UeContext {
        key: _,
        id: _,
        supi,
        claimed,
        pei,
        guti,
        old_guti,
        rm,
        security,
        outdated,
        offered,
        capability,
        k_gnb_count,
        connection: _,
        initial,
        reallocation,
        location,
        registration_area,
        radio_capability,
        voice,
        reachability,
        restrictions,
        trace,
        emergency,
        subscription,
        sdm_subscription,
        registered_in_udm,
        udm_plmn,
        slices,
        takes_extended_rejection,
        owes_configured_nssai,
        policy,
        transferred_policy,
        sessions,
        undelivered,
        returned,
        procedure,
        in_progress,
        mobility,
        withdrawn,
        access_keys,
        arrival,
        since,
        reauthenticated,
        transferred_to,
        discards_security,
        half_open: _,
        sdm_call,
        refresh_call,
        timers,
        calls,
        released: _,
        released_sessions: _,
        counts_end: _,
        must_store: _,
        must_store_at_once: _,
        modifies_target,
        target_plmn,
    } = ue;
    match *section {
        IDENTITY => {
            supi.pack(writer);
            claimed.pack(writer);
            pei.pack(writer);
            guti.pack(writer);
            old_guti.pack(writer);
        }
        SECURITY => {
            match (security, outdated) {
                (None, Some(outdated)) => {
                    true.pack(writer);
                    outdated.pack(writer);
                }
                (security, _) => security.pack(writer),
            }
            capability.pack(writer);
            k_gnb_count.pack(writer);
            discards_security.pack(writer);
            reauthenticated.pack(writer);
        }
        REGISTRATION => {
            rm.pack(writer);
            since.pack(writer);
            initial.pack(writer);
            location.pack(writer);
            registration_area.pack(writer);
            radio_capability.pack(writer);
            subscription.pack(writer);
            sdm_subscription.pack(writer);
            registered_in_udm.pack(writer);
            slices.pack(writer);
            policy.pack(writer);
            transferred_to.pack(writer);
            // Earlier versions read contexts without it.
            if let Some(policy) = transferred_policy {
                policy.pack(writer);
            }
        }
        SESSIONS => sessions.pack(writer),
        PROCEDURE => {
            procedure.pack(writer);
            if let Some(in_progress) = in_progress {
                in_progress.pack(writer);
            }
        }
        OFFERED => offered.pack(writer),
        RESTRICTIONS => restrictions.pack(writer),
        TRACE => trace.pack(writer),
        REALLOCATION => {
            reallocation.pack(writer);
            if let Some(origin) = reallocation.as_ref().and_then(|it| it.origin.as_ref()) {
                origin.sessions.pack(writer);
            }
        }
        VOICE => voice.pack(writer),
        ER_NSSAI => takes_extended_rejection.pack(writer),
        CONFIGURED => owes_configured_nssai.pack(writer),
        REACHABILITY => reachability.pack(writer),
        NETWORKS => {
            udm_plmn.pack(writer);
            target_plmn.pack(writer);
        }
        RETURNED => returned.pack(writer),
        EMERGENCY => {
            emergency.pack(writer);
            arrival.pack(writer);
            if let Some(arrival) = arrival {
                arrival.derived_with.pack(writer);
            }
        }
        UNDELIVERED => undelivered.pack(writer),
        MOBILITY => {
            access_keys.pack(writer);
            mobility.pack(writer);
            withdrawn.pack(writer);
            // Earlier versions read contexts without it.
            if *modifies_target {
                true.pack(writer);
            }
        }
        _ => {
            timers.pack(writer);
            calls.pack(writer);
            sdm_call.pack(writer);
            refresh_call.pack(writer);
        }
    }
}

fn write_connection(connection: &NgConnection, gnb: &str, writer: &mut Writer<'_>) {
    let NgConnection {
        id,
        ran_id,
        gnb: _,
        binding,
        keeps_stream: _,
        ue: _,
        former_ue: _,
        context,
        queued,
        left: _,
        former: _,
        releasing: _,
    } = connection;
    id.pack(writer);
    ran_id.pack(writer);
    writer.counted(gnb.as_bytes());
    binding.pack(writer);
    context.pack(writer);
    queued.pack(writer);
}

/// Unpacks a context; `named` is its key in the table, and its id, which is the key of the document.
pub(super) fn unpack(
    octets: &[u8],
    named: (Key, ContextId),
    names: &dyn Names,
) -> Result<Unpacked, UnpackError> {
    let sections = Sections::of(octets, Nf::Amf, SECTIONS, names)?;
    let ue = read_all(&sections, SECTIONS, named)?;
    let mut connection: Option<StoredConnection> =
        if sections.has(&CONNECTION) { Some(sections.unpack(&CONNECTION)?) } else { None };
    if let Some(connection) = connection.as_mut().filter(|_| sections.has(&FORMER)) {
        connection.former = sections.unpack(&FORMER)?;
    }
    let host = if sections.has(&GNB) { Some(sections.unpack(&GNB)?) } else { None };
    Ok(Unpacked { ue, connection, host })
}

/// Packs a context in the local form, for another shard of the process.
pub(super) fn pack_local(ue: &UeContext) -> Result<Document, PackError> {
    pack_sections(ue, None, &Handles, LOCAL_SECTIONS)
}

/// Unpacks a context in the local form.
pub(super) fn unpack_local(octets: &[u8], named: (Key, ContextId)) -> Result<UeContext, UnpackError> {
    read_all(&Sections::of(octets, Nf::Amf, LOCAL_SECTIONS, &Handles)?, LOCAL_SECTIONS, named)
}

/// Reads the context in these sections; those of its connection are left out.
fn read_all(
    sections: &Sections<'_>,
    kinds: &[Section],
    named: (Key, ContextId),
) -> Result<UeContext, UnpackError> {
    let mut ue = UeContext::new(named, pith_sbi::common::DateTime::from_unix_ms(0));
    let is_there = |kind: &&Section| {
        ![CONNECTION, FORMER, GNB].contains(kind) && (!OPTIONAL.contains(kind) || sections.has(kind))
    };
    for kind in kinds.iter().filter(is_there) {
        sections.read(kind, |version, reader| read(&mut ue, (kind, version), reader))?;
    }
    Ok(ue)
}

/// Reads a section's body, the mirror image of [`write`].
fn read(
    ue: &mut UeContext,
    (section, version): (&Section, u8),
    reader: &mut Reader<'_>,
) -> Result<(), UnpackError> {
    match *section {
        IDENTITY => {
            ue.supi = Pack::unpack(reader)?;
            ue.claimed = Pack::unpack(reader)?;
            ue.pei = Pack::unpack(reader)?;
            ue.guti = Pack::unpack(reader)?;
            ue.old_guti = Pack::unpack(reader)?;
        }
        SECURITY => {
            let security: Option<SecurityContext> = Pack::unpack(reader)?;
            if security.as_ref().is_some_and(SecurityContext::is_outdated) {
                ue.outdated = security.map(Box::new);
            } else {
                ue.security = security;
            }
            ue.capability = Pack::unpack(reader)?;
            ue.k_gnb_count = Pack::unpack(reader)?;
            ue.discards_security = Pack::unpack(reader)?;
            ue.reauthenticated = Pack::unpack(reader)?;
        }
        REGISTRATION => {
            ue.rm = Pack::unpack(reader)?;
            ue.since = Pack::unpack(reader)?;
            ue.initial = Pack::unpack(reader)?;
            ue.location = Pack::unpack(reader)?;
            ue.registration_area = Pack::unpack(reader)?;
            ue.radio_capability = Pack::unpack(reader)?;
            ue.subscription = Pack::unpack(reader)?;
            ue.sdm_subscription = Pack::unpack(reader)?;
            ue.registered_in_udm = Pack::unpack(reader)?;
            ue.slices = Pack::unpack(reader)?;
            ue.policy = Pack::unpack(reader)?;
            ue.transferred_to = Pack::unpack(reader)?;
            if !reader.is_at_end() {
                ue.transferred_policy = Some(Pack::unpack(reader)?);
            }
        }
        SESSIONS => ue.sessions = Pack::unpack(reader)?,
        PROCEDURE => {
            ue.procedure = Pack::unpack(reader)?;
            // Documents of version 1 do not have it, apart from some that were written before there was a second version.
            if !reader.is_at_end() {
                ue.in_progress = Some(Pack::unpack(reader)?);
            }
        }
        OFFERED => ue.offered = Pack::unpack(reader)?,
        RESTRICTIONS => ue.restrictions = Pack::unpack(reader)?,
        TRACE => ue.trace = Pack::unpack(reader)?,
        REALLOCATION => {
            ue.reallocation = Pack::unpack(reader)?;
            let origin = ue.reallocation.as_mut().and_then(|it| it.origin.as_mut());
            if let Some(origin) = origin.filter(|_| version > 1) {
                origin.sessions = Pack::unpack(reader)?;
            }
        }
        VOICE => ue.voice = Pack::unpack(reader)?,
        ER_NSSAI => ue.takes_extended_rejection = Pack::unpack(reader)?,
        CONFIGURED => ue.owes_configured_nssai = Pack::unpack(reader)?,
        REACHABILITY => ue.reachability = Pack::unpack(reader)?,
        NETWORKS => {
            ue.udm_plmn = Pack::unpack(reader)?;
            ue.target_plmn = Pack::unpack(reader)?;
        }
        RETURNED => ue.returned = Pack::unpack(reader)?,
        EMERGENCY => {
            ue.emergency = Pack::unpack(reader)?;
            ue.arrival = Pack::unpack(reader)?;
            if let Some(arrival) = ue.arrival.as_mut().filter(|_| version > 1) {
                arrival.derived_with = Pack::unpack(reader)?;
            }
        }
        UNDELIVERED => ue.undelivered = Pack::unpack(reader)?,
        MOBILITY => {
            ue.access_keys = Pack::unpack(reader)?;
            ue.mobility = Pack::unpack(reader)?;
            if version > 1 {
                ue.withdrawn = Pack::unpack(reader)?;
            }
            if !reader.is_at_end() {
                ue.modifies_target = Pack::unpack(reader)?;
            }
        }
        _ => {
            ue.timers = Pack::unpack(reader)?;
            ue.calls = Pack::unpack(reader)?;
            ue.sdm_call = Pack::unpack(reader)?;
            ue.refresh_call = Pack::unpack(reader)?;
        }
    }
    Ok(())
}

impl super::Amf {
    /// Whether a document is the retained security context of a deregistered UE.
    pub fn is_retained(octets: &[u8]) -> bool {
        is_retained(octets)
    }

    /// Replaces a UE's context by what its document yields, and panics if a document made of that differs: for simulations.
    pub(super) fn reload(&mut self, key: Key) {
        let Some(ue) = self.ues.get_mut(key) else { return };
        let gnbs = &self.shared.gnbs;
        let connection = ue.connection.and_then(|key| self.shared.connections.get_mut(key));
        let document = pack(ue, connection.as_deref(), gnbs).expect("an AMF's context can be packed");
        let unpacked = unpack(document.octets(), (key, ue.id), gnbs);
        let Unpacked { ue: mut loaded, connection: stored, .. } = match unpacked {
            Ok(unpacked) => unpacked,
            Err(error) => panic!("{} in {}: {error}", ue.name(), ue.procedure.name()),
        };
        (loaded.connection, loaded.half_open) = (ue.connection, ue.half_open.take());
        (loaded.must_store, loaded.must_store_at_once) = (ue.must_store, ue.must_store_at_once);
        if let (Some(connection), Some(stored)) = (connection, stored) {
            let StoredConnection { id, ran_id, gnb, binding, context, queued, former } = stored;
            assert_eq!(gnbs.gnb(&gnb), Some(connection.gnb), "the gNB of {}", ue.name());
            (connection.id, connection.ran_id, connection.binding.stream) = (id, ran_id, binding.stream);
            (connection.context, connection.queued, connection.former) = (context, queued, former);
        }
        *ue = loaded;
        let connection = ue.connection.and_then(|key| self.shared.connections.get(key));
        let again = pack(ue, connection, gnbs);
        assert!(again.as_ref() == Ok(&document), "the context of {} changes in its document", ue.name());
    }
}

/// Names of a context that is in no table.
#[cfg(any(test, feature = "testing"))]
const UNNAMED: (Key, ContextId) = (Key::from_u64(0), ContextId::from_u64(0).expect("of block 0"));

#[cfg(any(test, feature = "testing"))]
impl super::Amf {
    /// The documents of all contexts.
    pub fn documents(&self) -> Vec<Document> {
        let connection = |ue: &UeContext| ue.connection.and_then(|key| self.shared.connections.get(key));
        let packed = self.ues.iter().map(|(_, ue)| pack(&ue, connection(&ue), &self.shared.gnbs));
        packed.map(|document| document.expect("an AMF's context can be packed")).collect()
    }

    /// Unpacks a document.
    pub fn check_document(octets: &[u8], names: &dyn Names) -> Result<(), UnpackError> {
        if is_retained(octets) {
            return unpack_retained(octets, UNNAMED).map(drop);
        }
        unpack(octets, UNNAMED, names).map(drop)
    }

    /// Unpacks a document, and packs it again.
    pub fn repack(octets: &[u8], names: &dyn Names) -> Result<Document, UnpackError> {
        if is_retained(octets) {
            let (UeContext { supi, pei, guti, security, .. }, until) = unpack_retained(octets, UNNAMED)?;
            let known = supi.zip(guti).zip(security).map(|((supi, guti), security)| KnownUe {
                supi,
                pei,
                guti,
                security,
            });
            let known = known.ok_or(UnpackError::SectionCount("security"))?;
            return Ok(pack_retained(known, until, UNNAMED.1).expect("a retained context can be packed"));
        }
        let Unpacked { ue, connection, .. } = unpack(octets, UNNAMED, names)?;
        let connection = connection.and_then(|it| {
            let StoredConnection { id, ran_id, gnb, binding, context, queued, former } = it;
            let gnb = names.gnb(&gnb)?;
            Some(NgConnection {
                keeps_stream: false,
                id,
                ran_id,
                gnb,
                binding,
                ue: None,
                former_ue: None,
                context,
                queued,
                left: None,
                former,
                releasing: None,
            })
        });
        Ok(pack(&ue, connection.as_ref(), names).expect("an AMF's context can be packed"))
    }
}
