//! Reads files of subscribers: a JSON array, one JSON object per line, or CSV with a heading. Errors name
//! file and line and show a sample.

use anyhow::{Context, Result, anyhow, bail};
use pith_crypto::milenage;
use pith_nf::kit::{AuthenticationMethod, Secret, SubscribedDnn, SubscribedSlice, Subscriber};
use pith_types::{Ambr, BitRate, Dnn, Snssai, Supi};
use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

/// Largest number of mistakes reported at once.
const MAX_MISTAKES: usize = 20;

const SAMPLE_JSON: &str = r#"{"supi":"imsi-999700000000001","authentication":{"k":"465B5CE8B199B49FAA5F0A2EE238A6BC","opc":"E8ED289DEBA952E4283B54E88E6183CA"}}"#;
const SAMPLE_CSV: &str = "supi,k,opc,dnns,slices,uplink,downlink
999700000000001,465B5CE8B199B49FAA5F0A2EE238A6BC,E8ED289DEBA952E4283B54E88E6183CA,internet,1,1 Gbps,1 Gbps";

/// Columns of CSV, each with alternative names.
const COLUMNS: [(&str, &[&str]); 13] = [
    ("supi", &["imsi"]),
    ("k", &["ki", "key"]),
    ("opc", &[]),
    ("op", &[]),
    ("amf", &[]),
    ("sqn", &[]),
    ("method", &[]),
    ("gpsi", &["msisdn"]),
    ("slices", &["slice", "snssai"]),
    ("dnns", &["dnn", "apn"]),
    ("uplink", &["ul"]),
    ("downlink", &["dl"]),
    ("5qi", &["five_qi"]),
];

/// The subscribers of a file; `-` reads standard input.
pub fn read(path: &Path) -> Result<Vec<Subscriber>> {
    let (name, text) = if path == Path::new("-") {
        let mut text = String::new();
        ("standard input".to_owned(), io::stdin().read_to_string(&mut text).map(|_| text))
    } else {
        (path.display().to_string(), fs::read_to_string(path))
    };
    let text = text.with_context(|| format!("can't read {name}"))?;
    parse(&name, &text)
}

fn parse(name: &str, text: &str) -> Result<Vec<Subscriber>> {
    let text = text.trim_start_matches('\u{feff}');
    let subscribers = match text.trim_start().chars().next() {
        Some('[') => array(name, text)?,
        Some('{') => lines(name, text)?,
        Some(_) => csv(name, text)?,
        None => bail!("{name} is empty; write one line per subscriber, for example:\n{SAMPLE_CSV}"),
    };
    Ok(subscribers.into_iter().map(|(_, subscriber)| subscriber).collect())
}

/// A subscriber with its line number.
type Numbered = (usize, Subscriber);

fn array(name: &str, text: &str) -> Result<Vec<Numbered>> {
    let list: Vec<Subscriber> = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let what = without_keys(text.split(" at line ").next().unwrap_or(&text));
        anyhow!("{name}:{line}:{column}: {what}; example of a subscriber:\n{SAMPLE_JSON}")
    })?;
    let wrong = |(at, subscriber): (usize, &Subscriber)| {
        let error = subscriber.check().err()?;
        Some(format!("{name}: subscriber {} ({}): {error}", at + 1, subscriber.supi))
    };
    report_mistakes(list.iter().enumerate().filter_map(wrong).take(MAX_MISTAKES).collect(), "")?;
    Ok(list.into_iter().map(|subscriber| (0, subscriber)).collect())
}

fn lines(name: &str, text: &str) -> Result<Vec<Numbered>> {
    let read = |line: &str| -> Result<Subscriber> {
        let subscriber: Subscriber = serde_json::from_str(line).map_err(|error| {
            let text = error.to_string();
            anyhow!("{}", text.split(" at line ").next().unwrap_or(&text).to_owned())
        })?;
        subscriber.check().map_err(|error| anyhow!(error))?;
        Ok(subscriber)
    };
    each_line(name, text.lines().enumerate(), SAMPLE_JSON, read)
}

fn csv(name: &str, text: &str) -> Result<Vec<Numbered>> {
    let mut rows = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
    let (_, heading) = rows.next().unwrap_or_default();
    let separator = if heading.contains(';') { ';' } else { ',' };
    let columns = columns(heading, separator).map_err(|error| {
        let error = without_keys(&error.to_string());
        anyhow!("{name}:1: {error}; example of a file:\n{SAMPLE_CSV}")
    })?;
    each_line(name, rows, SAMPLE_CSV, |line| Row::new(&columns, line, separator)?.subscriber())
}

/// Parses each line, and reports all mistakes.
fn each_line<'a>(
    name: &str,
    lines: impl Iterator<Item = (usize, &'a str)>,
    sample: &str,
    read: impl Fn(&str) -> Result<Subscriber>,
) -> Result<Vec<Numbered>> {
    let (mut subscribers, mut mistakes) = (Vec::new(), Vec::new());
    for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        match read(line) {
            Ok(subscriber) => subscribers.push((at + 1, subscriber)),
            Err(error) => mistakes.push(format!("{name}:{}: {}", at + 1, without_keys(&error.to_string()))),
        }
        if mistakes.len() == MAX_MISTAKES {
            break;
        }
    }
    report_mistakes(mistakes, sample)?;
    Ok(subscribers)
}

fn report_mistakes(mistakes: Vec<String>, sample: &str) -> Result<()> {
    match (mistakes.is_empty(), sample) {
        (true, _) => Ok(()),
        (false, "") => bail!("{}", mistakes.join("\n")),
        (false, sample) => bail!("{}\nexample:\n{sample}", mistakes.join("\n")),
    }
}

/// The columns by the heading.
fn columns(heading: &str, separator: char) -> Result<Vec<&'static str>> {
    let known = |title: &str| {
        let title = title.to_ascii_lowercase();
        COLUMNS.into_iter().find(|(name, others)| *name == title || others.contains(&title.as_str()))
    };
    let mut columns = Vec::new();
    for title in cells(heading, separator) {
        let names = COLUMNS.map(|(name, _)| name).join(", ");
        let (name, _) = known(&title)
            .ok_or_else(|| anyhow!("there is no column {}: the columns are {names}", shown("", &title)))?;
        if columns.contains(&name) {
            bail!("the column '{title}' occurs twice");
        }
        columns.push(name);
    }
    for needed in ["supi", "k"] {
        if !columns.contains(&needed) {
            bail!("the column '{needed}' is missing");
        }
    }
    if !columns.contains(&"opc") && !columns.contains(&"op") {
        bail!("a column 'opc' or 'op' is missing");
    }
    Ok(columns)
}

/// Hexadecimal digits in a row from which on a value may be a key, or part of one; an IMSI has 15.
const DIGITS_OF_A_KEY: usize = 16;

/// A cell as error messages show it: not if its column has keys.
fn shown(column: &str, text: &str) -> String {
    if ["k", "opc", "op"].contains(&column) {
        return format!("a value of {} characters", text.chars().count());
    }
    format!("'{text}'")
}

/// An error message without values that may be keys, such as those of keys in a wrong column.
fn without_keys(message: &str) -> String {
    let (mut text, mut digits) = (String::new(), String::new());
    for letter in message.chars().map(Some).chain([None]) {
        if let Some(digit) = letter.filter(char::is_ascii_hexdigit) {
            digits.push(digit);
            continue;
        }
        text.push_str(if digits.len() < DIGITS_OF_A_KEY { &digits } else { "…" });
        digits.clear();
        text.extend(letter);
    }
    text
}

/// The cells of a line, without surrounding blanks and quotation marks.
fn cells(line: &str, separator: char) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            letter if letter == separator && !quoted => cells.push(std::mem::take(&mut cell)),
            letter => cell.push(letter),
        }
    }
    cells.push(cell);
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

/// A line of CSV.
struct Row<'a> {
    columns: &'a [&'static str],
    cells: Vec<String>,
}

impl<'a> Row<'a> {
    fn new(columns: &'a [&'static str], line: &str, separator: char) -> Result<Self> {
        let cells = cells(line, separator);
        if cells.len() != columns.len() {
            bail!("the heading has {} columns, this line {}", columns.len(), cells.len());
        }
        Ok(Self { columns, cells })
    }

    fn text(&self, column: &str) -> Option<&str> {
        let at = self.columns.iter().position(|name| *name == column)?;
        self.cells.get(at).map(String::as_str).filter(|cell| !cell.is_empty())
    }

    fn value<T: FromStr<Err: Display>>(&self, column: &str) -> Result<Option<T>> {
        let read = |text: &str| {
            text.parse().map_err(|error| anyhow!("'{column}' is {}: {error}", shown(column, text)))
        };
        self.text(column).map(read).transpose()
    }

    fn needed<T: FromStr<Err: Display>>(&self, column: &str) -> Result<T> {
        self.value(column)?.ok_or_else(|| anyhow!("'{column}' is empty"))
    }

    /// A list: entries separated by blanks, `|`, or the separator that is not used between columns.
    fn list<T: FromStr<Err: Display>>(&self, column: &str) -> Result<Option<Vec<T>>> {
        let Some(text) = self.text(column) else { return Ok(None) };
        let parts = text.split([' ', '|', ';', ',']).filter(|part| !part.is_empty());
        let read = |part: &str| {
            part.parse().map_err(|error| anyhow!("'{column}' has {}: {error}", shown(column, part)))
        };
        parts.map(read).collect::<Result<Vec<T>>>().map(Some)
    }

    fn subscriber(&self) -> Result<Subscriber> {
        let supi = self.text("supi").ok_or_else(|| anyhow!("'supi' is empty"))?;
        let supi: Supi = Supi::from_imsi(supi.trim_start_matches("imsi-"))?;
        let k: Secret<16> = self.needed("k")?;
        let opc = match (self.value::<Secret<16>>("opc")?, self.value::<Secret<16>>("op")?) {
            (Some(opc), _) => opc.0,
            (None, Some(op)) => *milenage::opc_from_op(&k.0.into(), &op.0.into()).as_bytes(),
            (None, None) => bail!("'opc' is empty, and there is no 'op'"),
        };
        let mut subscriber = Subscriber::with_defaults(supi, k.0, opc);
        let authentication = &mut subscriber.authentication;
        if let Some(amf) = self.text("amf") {
            let value = u16::from_str_radix(amf, 16).ok().filter(|_| amf.len() == 4);
            let value = value
                .ok_or_else(|| anyhow!("'amf' is {}: write four hexadecimal digits", shown("amf", amf)))?;
            authentication.amf = value.to_be_bytes();
        }
        authentication.sqn = self.value("sqn")?.unwrap_or(authentication.sqn);
        if let Some(method) = self.text("method") {
            authentication.method = match method.to_ascii_lowercase().as_str() {
                "5g-aka" | "5gaka" => AuthenticationMethod::FiveGAka,
                "eap-aka-prime" | "eap-aka'" => AuthenticationMethod::EapAkaPrime,
                _ => bail!("'method' is {}: write 5g-aka or eap-aka-prime", shown("method", method)),
            };
        }
        let is_number = |gpsi: &str| gpsi.bytes().all(|byte| byte.is_ascii_digit());
        subscriber.gpsi = self
            .text("gpsi")
            .map(|gpsi| if is_number(gpsi) { format!("msisdn-{gpsi}") } else { gpsi.to_owned() });
        self.sessions(&mut subscriber)?;
        subscriber.check().map_err(|error| anyhow!(error))?;
        Ok(subscriber)
    }

    fn sessions(&self, subscriber: &mut Subscriber) -> Result<()> {
        let rate =
            |column, default: BitRate| -> Result<BitRate> { Ok(self.value(column)?.unwrap_or(default)) };
        let ambr = Ambr {
            uplink: rate("uplink", subscriber.ambr.uplink)?,
            downlink: rate("downlink", subscriber.ambr.downlink)?,
        };
        let slices = self.list::<Snssai>("slices")?.unwrap_or_else(|| vec![Snssai::of_sst(1)]);
        let dnns = match self.list::<Dnn>("dnns")? {
            Some(dnns) => dnns,
            None => {
                subscriber.slices.iter().flat_map(|slice| &slice.dnns).map(|dnn| dnn.dnn.clone()).collect()
            }
        };
        let five_qi = self.value("5qi")?.unwrap_or(9);
        let like = |dnn: &Dnn| SubscribedDnn { five_qi, ..SubscribedDnn::new(dnn.clone(), Some(ambr)) };
        let slice = |(at, snssai): (usize, &Snssai)| SubscribedSlice {
            snssai: *snssai,
            default: at == 0,
            dnns: dnns.iter().map(like).collect(),
        };
        subscriber.slices = slices.iter().enumerate().map(slice).collect();
        subscriber.ambr = ambr;
        Ok(())
    }
}

/// Warnings, one sentence each, for DNNs, slices and PLMNs of the subscribers that the configured network does not have.
pub fn unknown_references(subscribers: &[Subscriber], config: &pith_runtime::config::Config) -> Vec<String> {
    let network = &config.network;
    let list = |items: Vec<String>| items.join(", ");
    let plmns = || list(network.plmns.iter().map(ToString::to_string).collect());
    let slices = || list(network.slices.iter().map(ToString::to_string).collect());
    let networks = || list(config.smf.data_networks.iter().map(|network| network.name.to_string()).collect());
    let mut reported = HashSet::new();
    let mut sentences = Vec::new();
    let mut report = |sentence: String| {
        if reported.insert(sentence.clone()) {
            sentences.push(sentence);
        }
    };
    for subscriber in subscribers {
        let imsi = subscriber.supi.imsi();
        let is_home = |plmn: &pith_types::Plmn| imsi.starts_with(&format!("{}{}", plmn.mcc(), plmn.mnc()));
        if !network.plmns.iter().any(is_home) {
            let begin = imsi.get(..5).unwrap_or(imsi);
            report(format!(
                "IMSIs beginning with {begin} belong to no PLMN of this network, which has {}",
                plmns()
            ));
        }
        for slice in &subscriber.slices {
            if !network.slices.contains(&slice.snssai) {
                report(format!("slice {} is not in this network, which has {}", slice.snssai, slices()));
            }
            for dnn in &slice.dnns {
                if !config.smf.data_networks.iter().any(|network| network.name == dnn.dnn) {
                    report(format!(
                        "data network '{}' is not in this network, which has {}",
                        dnn.dnn,
                        networks()
                    ));
                }
            }
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: &str = "465B5CE8B199B49FAA5F0A2EE238A6BC";

    #[test]
    fn csv_is_read_with_defaults_and_lists() {
        let text = format!(
            "imsi;Ki;OPc;dnn;slices;dl;5qi\n999700000000001;{K};{K};internet|ims;1 1-010203;5 Mbps;8\n\n"
        );
        let subscribers = parse("f.csv", &text).unwrap();
        let subscriber = &subscribers[0];
        assert_eq!(subscriber.supi.as_str(), "imsi-999700000000001");
        assert_eq!((subscriber.slices.len(), subscriber.slices[1].dnns.len()), (2, 2));
        assert_eq!(subscriber.slices[0].dnns[0].five_qi, 8);
        assert_eq!(subscriber.ambr.downlink, BitRate::mbps(5));
        assert!(subscriber.slices[0].default && !subscriber.slices[1].default);
    }

    #[test]
    fn the_samples_are_valid() {
        assert_eq!(parse("f", SAMPLE_CSV).unwrap(), parse("f", SAMPLE_CSV).unwrap());
        let json = serde_json::to_string(&parse("f", SAMPLE_CSV).unwrap()[0]).unwrap();
        assert_eq!(parse("f", &json).unwrap(), parse("f", &format!("[{json}]")).unwrap());
    }

    #[test]
    fn mistakes_are_reported_with_file_line_and_a_sample() {
        let text =
            format!("supi,k,opc\n99970000000000x,{K},{K}\n999700000000002,{K}\n999700000000003,{K},{K}\n");
        let error = parse("f.csv", &text).unwrap_err().to_string();
        assert!(
            error.contains("f.csv:2: ") && error.contains("f.csv:3: the heading has 3 columns"),
            "{error}"
        );
        assert!(error.contains("example:\nsupi,k,opc"), "{error}");
        let error = parse("f.csv", "supi,k,opcc\n").unwrap_err().to_string();
        assert!(error.starts_with("f.csv:1: there is no column 'opcc': the columns are supi"), "{error}");
        let error = parse("f.json", "[\n{\"supi\": 5}\n]").unwrap_err().to_string();
        assert!(error.starts_with("f.json:2:"), "{error}");
        assert!(parse("f", " \n").unwrap_err().to_string().contains("is empty"));
    }

    #[test]
    fn no_mistake_repeats_a_key() {
        const PART: &str = "465B5CE8B199B49F";
        let malformed = &K[1..];
        for text in [
            format!("supi,k,opc\n999700000000001,{malformed},{K}\n"),
            format!("supi,k,opc\n999700000000001,{K},{malformed}\n"),
            format!("supi,k,op\n999700000000001,{K},{K}0\n"),
            format!("supi,k,opc,5qi\n999700000000001,{K},{K},{K}\n"),
            format!("supi,k,opc,dnns\n999700000000001,{K},{K},{K}{K}{K}\n"),
            format!("supi,k,opc,amf,method\n999700000000001,{K},{K},{K},{K}\n"),
            format!("supi,k,opc,method\n999700000000001,{K},{K},{K}\n"),
            format!("supi,k,opc\n{K},{K},{K}\n"),
            format!("{K},999700000000001\n"),
            format!("{{\"supi\":\"imsi-999700000000001\",\"authentication\":{{\"k\":\"{malformed}\"}}}}"),
        ] {
            let error =
                parse("f", &text).unwrap_err().to_string().replace(SAMPLE_CSV, "").replace(SAMPLE_JSON, "");
            assert!(!error.contains(&PART[1..]), "{error}");
        }
        let digits = "4655888199849950";
        for list in ["", "["] {
            let text =
                format!("{list}{{\"supi\":\"imsi-999700000000001\",\"authentication\":{{\"k\":{digits}}}}}");
            let error = parse("f", &text).unwrap_err().to_string();
            assert!(!error.contains(digits) && error.contains("32 hexadecimal digits"), "{error}");
        }
    }

    #[test]
    fn unknown_plmns_slices_and_data_networks_are_reported_once() {
        let text =
            format!("supi,k,opc,dnns,slices\n001010000000001,{K},{K},ims,2\n001010000000002,{K},{K},ims,2\n");
        let config = pith_runtime::config::Config::default();
        let reported = unknown_references(&parse("f", &text).unwrap(), &config);
        assert_eq!(reported.len(), 3, "{reported:?}");
        assert!(reported.iter().any(|sentence| sentence.contains("'ims'") && sentence.contains("internet")));
        assert!(unknown_references(&parse("f", SAMPLE_CSV).unwrap(), &config).is_empty());
    }

    #[test]
    fn a_default_5qi_with_a_guaranteed_rate_is_refused() {
        let text = format!("supi,k,opc,5qi\n999700000000001,{K},{K},1\n");
        assert!(parse("f", &text).unwrap_err().to_string().contains("5.7.2.7"));
    }
}
