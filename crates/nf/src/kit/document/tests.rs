//! The frame: what is refused, and how the error names it.

use super::{Document, Pack, Section, Sections, UnpackError, Writer};
use crate::kit::Nf;
use pith_sbi::common::DateTime;
use pith_sbi::nsmf_pdusession::SmContextUpdateData;
use std::sync::Arc;

const NAMES: Section = Section { id: 1, name: "names", version: 3 };
const NUMBERS: Section = Section { id: 2, name: "numbers", version: 1 };
const KINDS: &[Section] = &[NAMES, NUMBERS];

/// A document with one name and one number; each section in a version of its own.
fn document(names: u8, numbers: u8) -> Document {
    let mut writer = Writer::new(Nf::Amf, &());
    writer.section(&Section { version: names, ..NAMES }, |writer| Arc::<str>::from("a name").pack(writer));
    writer.section(&Section { version: numbers, ..NUMBERS }, |writer| 70_000_u32.pack(writer));
    writer.finish().unwrap()
}

fn sections(octets: &[u8]) -> Result<Sections<'_>, UnpackError> {
    Sections::of(octets, Nf::Amf, KINDS, &())
}

fn numbers(octets: &[u8]) -> Result<u32, UnpackError> {
    sections(octets)?.unpack(&NUMBERS)
}

#[test]
fn the_version_of_a_section_and_the_two_before_are_read_and_others_refused_by_name() {
    for version in 1..=3 {
        let document = document(version, 1);
        let read = sections(document.octets()).unwrap();
        let name = read.read(&NAMES, |found, reader| Ok((found, Arc::<str>::unpack(reader)?)));
        assert_eq!(name.unwrap(), (version, Arc::from("a name")));
    }
    let (newer, error) = (document(4, 1), |found| UnpackError::SectionVersion {
        section: "names",
        found,
        oldest: 1,
        newest: 3,
    });
    assert_eq!(sections(newer.octets()).err(), Some(error(4)));
    assert_eq!(sections(document(0, 1).octets()).err(), Some(error(0)));
    let later = Section { version: 5, ..NAMES };
    assert_eq!((later.oldest(), NUMBERS.oldest()), (3, 1));
    let text = error(4).to_string();
    assert!(text.contains("names section has version 4") && text.contains("reads 1 to 3"), "{text}");
}

#[test]
fn a_foreign_frame_is_refused_by_name() {
    let whole = document(3, 1);
    let with = |at: usize, octet: u8| {
        let mut octets = whole.octets().to_vec();
        octets[at] = octet;
        sections(&octets).err()
    };
    assert_eq!(with(0, b'{'), Some(UnpackError::NoDocument));
    assert_eq!(with(2, 9), Some(UnpackError::Format(9)));
    assert_eq!(with(3, 2), Some(UnpackError::OtherNf { found: 2, expected: Nf::Amf }));
    assert_eq!(with(4, 77), Some(UnpackError::UnknownSection(77)));
    assert_eq!(
        with(4, 2),
        Some(UnpackError::SectionVersion { section: "numbers", found: 3, oldest: 1, newest: 1 })
    );
}

#[test]
fn a_section_that_is_missing_or_twice_there_is_refused() {
    let mut writer = Writer::new(Nf::Amf, &());
    writer.section(&NAMES, |writer| Arc::<str>::from("").pack(writer));
    let without = writer.finish().unwrap();
    assert_eq!(numbers(without.octets()), Err(UnpackError::SectionCount("numbers")));
    let mut twice = without.octets().to_vec();
    twice.extend_from_slice(&without.octets()[4..]);
    assert_eq!(sections(&twice).err(), Some(UnpackError::SectionCount("names")));
}

#[test]
fn every_cut_and_every_octet_more_is_refused() {
    let whole = document(3, 1);
    assert_eq!(numbers(whole.octets()), Ok(70_000));
    for length in 0..whole.octets().len() {
        assert!(numbers(&whole.octets()[..length]).is_err(), "{length} octets");
    }
    let mut longer = Writer::new(Nf::Amf, &());
    longer.section(&NUMBERS, |writer| (70_000_u32, 1_u8).pack(writer));
    let longer = longer.finish().unwrap();
    let error = numbers(longer.octets()).unwrap_err();
    assert_eq!(error, UnpackError::Malformed { section: "numbers", offset: 3, expected: "end" });
}

#[test]
fn numbers_have_one_form() {
    let of = |body: &[u8]| {
        let mut writer = Writer::new(Nf::Amf, &());
        writer.section(&NUMBERS, |writer| writer.put(body));
        let document = writer.finish().unwrap();
        sections(document.octets()).unwrap().unpack::<u64>(&NUMBERS)
    };
    for number in [0, 1, 127, 128, 70_000, u64::from(u32::MAX), u64::MAX] {
        let mut writer = Writer::new(Nf::Amf, &());
        writer.section(&NUMBERS, |writer| number.pack(writer));
        let document = writer.finish().unwrap();
        assert_eq!(sections(document.octets()).unwrap().unpack(&NUMBERS), Ok(number));
        let time = DateTime::from_unix_ms(number.cast_signed());
        let mut writer = Writer::new(Nf::Amf, &());
        writer.section(&NUMBERS, |writer| time.pack(writer));
        let document = writer.finish().unwrap();
        assert_eq!(sections(document.octets()).unwrap().unpack(&NUMBERS), Ok(time));
    }
    assert!(of(&[0x80, 0]).is_err(), "a longer form");
    assert!(of(&[0xff; 10]).is_err() && of(&[0xff; 11]).is_err(), "more than 64 bits");
}

#[test]
fn a_long_document_is_whole_and_its_debug_text_shows_no_octets() {
    let mut writer = Writer::new(Nf::Amf, &());
    let text = Arc::<str>::from("x".repeat(5000));
    writer.section(&NAMES, |writer| text.pack(writer));
    let document = writer.finish().unwrap();
    assert_eq!(sections(document.octets()).unwrap().unpack(&NAMES), Ok(text));
    assert_eq!(format!("{document:?}"), "Document(5012 octets)");
}

#[test]
fn binary_parts_of_a_body_keep_their_octets() {
    let mut body = SmContextUpdateData::default();
    body.n2_sm_info = Some(b"n2 information".to_vec().into());
    body.n1_sm_msg = Some(b"n1".to_vec().into());
    let mut writer = Writer::new(Nf::Amf, &());
    writer.section(&NAMES, |writer| body.pack(writer));
    let document = writer.finish().unwrap();
    let read: SmContextUpdateData = sections(document.octets()).unwrap().unpack(&NAMES).unwrap();
    assert_eq!(&*read.n2_sm_info.unwrap().content, b"n2 information");
    assert_eq!(&*read.n1_sm_msg.unwrap().content, b"n1");
}

#[test]
fn an_update_is_the_sections_that_changed() {
    let (before, after) = (document(3, 1), {
        let mut writer = Writer::new(Nf::Amf, &());
        writer.section(&NAMES, |writer| Arc::<str>::from("a name").pack(writer));
        writer.section(&NUMBERS, |writer| 70_001_u32.pack(writer));
        writer.finish().unwrap()
    });
    assert_eq!(before.changes_since(&before).count(), 0);
    let changes: Vec<_> = after.changes_since(&before).collect();
    let [(2, Some(section))] = changes[..] else { panic!("{changes:?}") };
    let stored = before.sections().map(|(id, old)| if id == 2 { section } else { old });
    assert_eq!(Document::of_sections(Nf::Amf, stored), after);
    let one = Document::of_sections(Nf::Amf, before.sections().take(1).map(|(_, section)| section));
    assert_eq!(one.changes_since(&before).collect::<Vec<_>>(), [(2, None)]);
}
