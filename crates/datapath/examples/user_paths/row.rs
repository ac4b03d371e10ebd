//! Rows of results: the table, and their form in `user.json`.

use std::fmt::Write;

/// The measurement of one path.
#[derive(Debug, Clone)]
pub struct Row {
    /// The path's name in the table.
    pub name: &'static str,
    /// Sessions that packets are spread over, or connections; installed ones in `xdp-installed`. 0 where there are none.
    pub sessions: u32,
    /// CPUs whose time counts.
    pub cores: u32,
    /// Octets of a user packet.
    pub octets: usize,
    /// Nanoseconds of CPU a packet with the generator.
    pub gross: Spread,
    /// The same without the generator.
    pub net: Spread,
}

impl Row {
    /// Of runs in which a packet of the generator alone takes `generator` nanoseconds.
    pub fn of(
        name: &'static str,
        (sessions, cores, octets): (u32, u32, usize),
        gross: Spread,
        generator: f64,
    ) -> Self {
        Self { name, sessions, cores, octets, gross, net: gross.less(generator) }
    }
}

/// What repeated runs of one case measured.
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Spread {
    /// Of at least one run.
    pub fn of(mut runs: Vec<f64>) -> Self {
        runs.sort_by(f64::total_cmp);
        let [.., most] = runs[..] else { panic!("no run") };
        Self { least: runs[0], median: runs[runs.len() / 2], most }
    }

    /// Without a constant part.
    fn less(self, part: f64) -> Self {
        Self { least: self.least - part, median: self.median - part, most: self.most - part }
    }

    fn json(&self) -> String {
        let Self { least, median, most } = self;
        format!("{{\"least\":{least:.1},\"median\":{median:.1},\"most\":{most:.1}}}")
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { least, median, most } = self;
        f.pad(&format!("{median:.0} ({least:.0} to {most:.0})"))
    }
}

/// Prints the rows as a table.
pub fn print(rows: &[Row]) {
    println!(
        "\n{:<28} {:>8} {:>5} {:>6} {:>9} {:>22} {:>22}",
        "path", "sessions", "cores", "octets", "kpps", "gross ns: median", "net ns: median"
    );
    for row in rows {
        let Row { name, sessions, cores, octets, gross, net } = row;
        println!("{name:<28} {sessions:>8} {cores:>5} {octets:>6} {:>9.0} {gross:>22} {net:>22}", kpps(row));
    }
}

/// Thousands of packets a second, if all these CPUs have nothing else to do.
fn kpps(row: &Row) -> f64 {
    1e6 * f64::from(row.cores) / row.gross.median
}

/// The rows and the other measurements by name, in the format of `user.json`.
pub fn json(rows: &[Row], others: &[(&str, String)]) -> String {
    let mut text = String::from("{\"paths\":[");
    for (at, row) in rows.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let Row { name, sessions, cores, octets, gross, net } = row;
        let numbers = format!(
            "\"sessions\":{sessions},\"cores\":{cores},\"octets\":{octets},\"kpps\":{:.1},\"ns_gross\":{:.1},\
             \"ns_per_packet\":{:.1},\"gross\":{},\"net\":{}",
            kpps(row),
            gross.median,
            net.median,
            gross.json(),
            net.json()
        );
        write!(text, "{comma}\n{{\"name\":\"{name}\",{numbers}}}").expect("a String takes all");
    }
    text += "\n]";
    for (name, value) in others {
        write!(text, ",\n\"{name}\":{value}").expect("a String takes all");
    }
    text + "}\n"
}
