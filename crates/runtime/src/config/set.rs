//! Changes single settings of a configuration: `amf.n2.sctp=udp:9899`.

use super::{Config, Described, Setting, check};
use serde_json::Value;

impl Config {
    /// This configuration with the assignments applied in order and checked together at the end. A value is
    /// YAML, such as `[a, b]` for a list.
    pub fn with<'a>(self, assignments: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let config = assignments.into_iter().try_fold(self, |config, assignment| config.set(assignment))?;
        match check::findings(&config).first() {
            Some(finding) => Err(format!("{}: {}", finding.path, finding.sentence)),
            None => Ok(config),
        }
    }

    fn set(&self, assignment: &str) -> Result<Self, String> {
        let (path, text) = assignment
            .split_once('=')
            .ok_or_else(|| format!("'{assignment}' is not an assignment: write it like 'amf.n2.sctp=raw'"))?;
        let mut value = serde_json::to_value(self).map_err(|error| error.to_string())?;
        let mut with = |read: Value| {
            *find(&mut value, path)? = read;
            serde_json::from_value(value.clone()).map_err(|error| format!("{path}: {error}"))
        };
        match read(text) {
            // YAML reads 'off' as false; some settings have it as a word.
            Value::Bool(bool) if text != bool.to_string() => {
                with(Value::String(text.to_owned())).or_else(|_| with(Value::Bool(bool)))
            }
            // Some lists are of words that may be numbers: slices, priorities.
            Value::Array(items) => {
                let words = items.iter().map(|item| match item {
                    Value::Number(number) => Value::String(number.to_string()),
                    other => other.clone(),
                });
                let words = Value::Array(words.collect());
                with(Value::Array(items)).or_else(|error| with(words).map_err(|_| error))
            }
            value => with(value),
        }
    }
}

/// The value at a path. Entries of lists have no path of their own.
fn find<'a>(value: &'a mut Value, path: &str) -> Result<&'a mut Value, String> {
    let mut at = value;
    let mut settings = Config::SETTINGS;
    for step in path.split('.') {
        let known: Vec<_> = settings.iter().map(|setting| setting.name).collect();
        let setting: &Setting = settings.iter().find(|setting| setting.name == step).ok_or_else(|| {
            format!("there is no setting '{path}': instead of '{step}' there are {}", known.join(", "))
        })?;
        at = &mut at[setting.name];
        settings = if at.is_object() { setting.inner } else { &[] };
    }
    Ok(at)
}

/// The text as YAML, or as a string if it only looks like a number, such as a code with leading zeros.
fn read(text: &str) -> Value {
    let plain = || Value::String(text.to_owned());
    match serde_saphyr::from_str::<Value>(text) {
        Ok(Value::Number(number)) if number.to_string() != text => plain(),
        Ok(value) => value,
        Err(_) => plain(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_every_kind_can_be_set() {
        let set = |assignment: &str| Config::default().with([assignment]).unwrap();
        assert_eq!(set("workers=2").workers, 2);
        assert_eq!(set("amf.n2.sctp=udp:9899").amf.n2.sctp.to_string(), "udp:9899");
        assert_eq!(set("amf.timers.t3512=10min").amf.timers.t3512.to_string(), "10min");
        assert!(!set("upf.nat=false").upf.nat);
        assert!(!set("upf.nat=off").upf.nat);
        assert_eq!(set("sbi.oauth2=off").sbi.oauth2, super::super::OAuth2::Off);
        assert_eq!(set("network.plmns=[001/01, 999/70]").network.plmns.len(), 2);
        assert_eq!(set("amf.n2.addresses=[10.0.0.1]").amf.n2.addresses.len(), 1);
        assert_eq!(set("sbi.record=/tmp/x").sbi.record, Some("/tmp/x".into()));
        assert_eq!(set("network.tracking_areas=['000002']").network.tracking_areas[0].value(), 2);
        assert_eq!(set("amf.paging_priorities=[3, 8]").amf.paging_priorities, [3, 8]);
        assert_eq!(set("smf.data_networks=[{name: ims, pool: 10.1.0.0/16}]").smf.data_networks.len(), 1);
    }

    #[test]
    fn dependent_settings_may_have_any_order() {
        let assignments = ["upf.datapath=xdp", "upf.interfaces=[eth1, eth2]", "upf.nat=false"];
        assert!(Config::default().with(assignments).is_ok());
        let error = Config::default().with([assignments[0], assignments[2]]).unwrap_err();
        assert!(error.contains("upf.interfaces"), "{error}");
    }

    #[test]
    fn errors_name_the_problem() {
        for (assignment, sentence) in [
            ("workers", "not an assignment"),
            ("amf.n3.port=1", "instead of 'n3' there are name, region"),
            ("amf.n2.port.x=1", "there is no setting"),
            ("amf.n2.sctp=tcp", "udp:PORT"),
            ("workers=x", "workers: invalid type"),
            ("amf.set=2000", "0 to 1023"),
        ] {
            let error = Config::default().with([assignment]).unwrap_err();
            assert!(error.contains(sentence), "{assignment}: {error}");
        }
    }
}
