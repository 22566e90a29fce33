//! A peer that lies: with the keys that the hosts log, what they tell each other inside ESP is changed on the way.

use clock::Rng;
use hip::esp::{EspKeys, EspSuite, InboundSa, OutboundSa};
use hip::feedback::NEXT_HEADER;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;
use wedge::{Protocol, Transmit};
use wire::Spi;

/// The first byte of a report.
const REPORT: u8 = 1;
/// Where a report's first record begins, and the words of a record.
const RECORD: usize = 4;
/// Words of a record.
pub mod word {
    pub const SPI: usize = 0;
    pub const HIGHEST: usize = 1;
    pub const DELAY: usize = 2;
    pub const PACKETS: usize = 4;
    pub const CE: usize = 6;
}

/// A word of a report's first record.
pub fn get(report: &[u8], word: usize) -> u32 {
    let at = RECORD + 4 * word;
    u32::from_be_bytes(report[at..at + 4].try_into().unwrap())
}

/// Changes a word of a report's first record.
pub fn set(report: &mut [u8], word: usize, value: u32) {
    let at = RECORD + 4 * word;
    report[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

type Lie = Box<dyn FnMut(&mut Vec<u8>) -> bool>;

/// Opens what a host sends, changes its reports, and seals it again with numbers of its own.
pub struct Liar {
    sas: BTreeMap<Spi, (InboundSa, OutboundSa)>,
    rng: ChaCha20Rng,
    /// Whose reports are changed.
    pub side: usize,
    /// Changes a report; whether it did.
    pub lie: Option<Lie>,
    /// Reports that were changed.
    pub lies: u64,
}

impl Liar {
    pub fn new(side: usize) -> Self {
        let rng = ChaCha20Rng::seed_from_u64(Rng::from_seed(3).next_u64());
        Self { sas: BTreeMap::new(), rng, side, lie: None, lies: 0 }
    }

    /// A line of Wireshark's `esp_sa`.
    pub fn learn(&mut self, line: &str) {
        let fields: Vec<&str> = line.split(',').map(|field| field.trim_matches('"')).collect();
        let hex = |text: &str| -> Vec<u8> {
            let digits = text.trim_start_matches("0x");
            (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect()
        };
        let spi = Spi(u32::from_str_radix(fields[3].trim_start_matches("0x"), 16).unwrap());
        let (encryption, authentication) = (hex(fields[5]), hex(fields[7]));
        let suite = EspSuite::ALL.into_iter().find(|suite| {
            suite.encryption_key_len() == encryption.len() && suite.authentication_key_len() == authentication.len()
        });
        let keys = EspKeys { encryption: encryption.into(), authentication: authentication.into() };
        let suite = suite.unwrap();
        self.sas.entry(spi).or_insert_with(|| (InboundSa::new(suite, spi, &keys), OutboundSa::new(suite, spi, &keys)));
    }

    /// Seals as the host with the SPI of a datagram of its, under numbers that it has not used yet.
    pub fn seal(&mut self, like: &Transmit, next_header: u8, payload: &[u8]) -> Transmit {
        let spi = Spi(u32::from_be_bytes(*like.bytes.first_chunk().unwrap()));
        let (_, outbound) = self.sas.get_mut(&spi).unwrap();
        let mut bytes = Vec::new();
        outbound.seal(next_header, payload, &mut self.rng, &mut bytes).unwrap();
        Transmit { bytes, ..like.clone() }
    }

    /// What becomes of a datagram of the host.
    pub fn pass(&mut self, from: usize, transmit: &mut Transmit) {
        let Some(head) = transmit.bytes.first_chunk::<4>().filter(|_| transmit.protocol != Protocol::Hip) else {
            return;
        };
        let Some((inbound, outbound)) = self.sas.get_mut(&Spi(u32::from_be_bytes(*head))) else { return };
        if from != self.side {
            return;
        }
        // The numbers stay what they are, those that are skipped included.
        let number = u32::from_be_bytes(*transmit.bytes[4..].first_chunk().unwrap());
        while outbound.sequence() + 1 < number {
            outbound.skip().unwrap();
        }
        let mut payload = Vec::new();
        let Ok(next_header) = inbound.open(&transmit.bytes, &mut payload) else { return };
        if next_header == NEXT_HEADER
            && payload.first() == Some(&REPORT)
            && let Some(lie) = &mut self.lie
        {
            self.lies += u64::from(lie(&mut payload));
        }
        transmit.bytes.clear();
        outbound.seal(next_header, &payload, &mut self.rng, &mut transmit.bytes).unwrap();
    }
}
