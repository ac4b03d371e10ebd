//! Tests of the private CA and its directory.

use super::*;
use pith_nf::kit::Nf;
use pith_sbi::NfType;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

/// A directory that is removed when dropped.
pub(crate) struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pith-pki-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_application_gets_a_certificate_of_its_type() {
    let scratch = Scratch::new("af");
    let directory = Directory::open(&scratch.0).unwrap();
    let af = Member::client("af", "127.0.0.9:9000".parse().unwrap()).unwrap();
    let issued = directory.issue(&af, false).unwrap();
    assert_eq!(issued.identity.nf_types, [NfType::Af]);
    assert_eq!((issued.identity.instances.len(), &issued.names[..]), (1, &["127.0.0.9".to_owned()][..]));
    assert_eq!(directory.issue(&af, false).unwrap().serial, issued.serial, "the same one again");
}

fn member(nf: Nf) -> Member {
    Member::new(&[nf], "127.0.0.5:7777".parse().unwrap())
}

#[test]
fn processes_that_start_in_parallel_share_one_ca() {
    let scratch = Scratch::new("race");
    let path = scratch.0.join("a/pki");
    let start = |nf| {
        let path = path.clone();
        std::thread::spawn(move || Directory::open(&path).unwrap().issue(&member(nf), false).unwrap())
    };
    let started: Vec<_> =
        [Nf::Nrf, Nf::Udr, Nf::Udm, Nf::Ausf, Nf::Pcf, Nf::Nssf, Nf::Smf, Nf::Amf].map(start).into();
    let issued: Vec<_> = started.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(issued.iter().all(|certificate| certificate.issuer == issued[0].issuer));
    let mode = |name: &str| fs::metadata(path.join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("ca.key"), mode("amf-127.0.0.5-7777.pem"), mode("ca.crt")), (0o600, 0o600, 0o644));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    assert_eq!(Directory::open(&path).unwrap().list().unwrap().len(), 8);
}

#[test]
fn a_certificate_names_instances_types_and_addresses_and_renewal_keeps_them() {
    let scratch = Scratch::new("ids");
    let directory = Directory::open(&scratch.0).unwrap();
    let member = Member::new(&[Nf::Udm, Nf::Ausf], "[::1]:7777".parse().unwrap());
    let first = directory.issue(&member, false).unwrap();
    assert_eq!(first.identity.nf_types, [NfType::Udm, NfType::Ausf]);
    assert_eq!(first.identity.instances.len(), 2);
    assert_eq!(first.names, ["::1"]);
    let assigned = directory.assigned(&member).unwrap();
    assert_eq!(assigned[&Nf::Udm], first.identity.instances[0]);
    assert_eq!(assigned[&Nf::Ausf], first.identity.instances[1]);
    assert_eq!(directory.issue(&member, false).unwrap(), first, "a valid certificate is kept");

    let renewed = directory.issue(&member, true).unwrap();
    assert_ne!(renewed.serial, first.serial);
    assert_eq!(renewed.identity, first.identity);
    let again = directory.renew(&directory.list().unwrap()[0]).unwrap();
    assert_eq!((again.identity, again.names), (first.identity, first.names));

    let wider = Member { nfs: vec![Nf::Pcf, Nf::Udm, Nf::Ausf], ..member.clone() };
    let more = directory.issue(&wider, false).unwrap();
    assert_eq!(more.identity.instances.len(), 3);
    assert_eq!(directory.assigned(&wider).unwrap()[&Nf::Udm], assigned[&Nf::Udm]);
}

#[test]
fn a_certificate_in_the_last_third_of_its_validity_is_renewed() {
    let scratch = Scratch::new("due");
    let directory = Directory::open(&scratch.0).unwrap();
    let member = member(Nf::Amf);
    // Validity of 400 s, of which 100 s are left: from 300 s ago to 100 s from now.
    let old = directory.issue_for(&member, false, Duration::from_secs(100)).unwrap();
    let source = Source::Directory(directory.clone(), member.clone());
    assert!(source.is_due(&old));
    let new = source.load().unwrap().certificate;
    assert!(new.not_after > old.not_after && !source.is_due(&new));
}

#[test]
fn exposed_keys_are_refused_and_a_missing_ca_key_is_reported() {
    let scratch = Scratch::new("keys");
    let directory = Directory::open(&scratch.0).unwrap();
    let source = Source::Directory(directory.clone(), member(Nf::Amf));
    source.load().unwrap();
    let key = directory.file("ca.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(source.load().unwrap_err().0.contains("chmod 600"));
    fs::remove_file(&key).unwrap();
    source.load().expect("an issued certificate can be used");
    let error = directory.issue(&member(Nf::Smf), false).unwrap_err();
    assert!(error.0.contains("'pith pki issue'"), "{error}");
}

#[test]
fn a_certificate_of_files_must_name_all_instances() {
    let scratch = Scratch::new("files");
    let directory = Directory::open(&scratch.0).unwrap();
    let issued = member(Nf::Amf);
    directory.issue(&issued, false).unwrap();
    let both = directory.role_file(&issued.role);
    let files = crate::config::TlsFiles { ca: directory.ca_file(), certificate: both.clone(), key: both };
    let ids = Source::Files(files.clone(), issued.clone()).instances().unwrap();
    assert_eq!(ids, directory.assigned(&issued).unwrap());
    let wider = Member { nfs: vec![Nf::Amf, Nf::Smf], ..issued };
    let error = wider.assign(&ids.into_values().collect::<Vec<_>>()).unwrap_err();
    assert!(error.0.contains("names 1 NF instances") && error.0.contains("with 2 ids"), "{error}");
    assert!(Source::Files(files, wider).instances().is_err());
}

/// Cross-check with OpenSSL, if installed.
#[test]
fn openssl_verifies_what_the_ca_issues() {
    let scratch = Scratch::new("openssl");
    let directory = Directory::open(&scratch.0).unwrap();
    let member = member(Nf::Amf);
    let certificate = directory.issue(&member, false).unwrap();
    let openssl = |purpose: &str| {
        let mut command = std::process::Command::new("openssl");
        command.args(["verify", "-x509_strict", "-purpose", purpose, "-CAfile"]);
        command.arg(directory.ca_file()).arg(directory.role_file(&member.role)).output()
    };
    let Ok(first) = openssl("sslserver") else { return crate::skipped::skipped("openssl is not installed") };
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    assert!(openssl("sslclient").unwrap().status.success());
    let text = std::process::Command::new("openssl")
        .args(["x509", "-noout", "-text", "-in"])
        .arg(directory.role_file(&member.role))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(&format!("URI:urn:uuid:{}", certificate.identity.instances[0])), "{text}");
    assert!(text.contains("1.3.6.1.5.5.7.1.34") && text.contains("IP Address:127.0.0.5"), "{text}");
}
