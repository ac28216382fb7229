//! What one engine costs: the cost model.

/// What one engine costs a processor, in nanoseconds of CPU time. What all engines pay alike (TCP, HTTP, the handshake)
/// may be in it or not, as long as it is so for all that are compared.
///
/// It is the cost model of docs/ARCHITECTURE.md ("Placement"):
///
/// ```text
/// t(connection) = set_up + responses · per_response + bytes · per_byte
///               + records · per_record + calls · per_call
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineCosts {
    /// CPU time to move a connection there, once. For an adapter: what the processor does.
    pub set_up_ns: f64,
    /// Time in which the set-up waits without computing (an adapter's firmware). The connection is held up by it, and nobody
    /// else: another thread waits.
    pub set_up_wait_ns: f64,
    /// Each byte: where it comes from, the cipher, where it goes.
    pub per_byte_ns: f64,
    /// Each record beside its bytes.
    pub per_record_ns: f64,
    /// Each system call beside its bytes.
    pub per_call_ns: f64,
    /// Each response beside its bytes, records and calls.
    pub per_response_ns: f64,
    /// Bytes of a full record; at least 1.
    pub record_bytes: u64,
    /// Bytes that one system call moves of a long response; at least 1.
    pub call_bytes: u64,
}

impl EngineCosts {
    /// Nothing costs anything: what others are added to.
    pub const FREE: Self = Self {
        set_up_ns: 0.0,
        set_up_wait_ns: 0.0,
        per_byte_ns: 0.0,
        per_record_ns: 0.0,
        per_call_ns: 0.0,
        per_response_ns: 0.0,
        record_bytes: 1 << 14,
        call_bytes: 1 << 18,
    };

    /// A response of so many bytes, on a connection that is there already.
    #[must_use]
    pub fn cost_ns(&self, bytes: u64) -> f64 {
        self.per_response_ns
            + bytes as f64 * self.per_byte_ns
            + bytes.div_ceil(self.record_bytes.max(1)) as f64 * self.per_record_ns
            + bytes.div_ceil(self.call_bytes.max(1)) as f64 * self.per_call_ns
    }

    /// Each byte of a long response, records and calls shared out. What decisions are made with: it differs from
    /// [`EngineCosts::cost_ns`] by less than a record and a call.
    #[must_use]
    pub fn slope_ns_per_byte(&self) -> f64 {
        self.per_byte_ns
            + self.per_record_ns / self.record_bytes.max(1) as f64
            + self.per_call_ns / self.call_bytes.max(1) as f64
    }

    /// Moving a connection there, for a worker that has `cpu_left` (0 to 1) of its time to spare. Where CPU time is short,
    /// CPU time is what counts, and a wait takes none. Where it is not, there is less to be saved, and a fiftieth of the time
    /// by which the client has its response later is held against it. (A tenth kept connections of 10 and 100 kB
    /// responses off an adapter of 850 set-ups a second for so long that they cost 1.1 times the best.)
    #[must_use]
    pub fn move_ns(&self, cpu_left: f64) -> f64 {
        const MOST_SHARE: f64 = 0.02;
        self.set_up_ns + self.set_up_wait_ns * MOST_SHARE * cpu_left.clamp(0.0, 1.0)
    }

    /// Whether all of it are numbers that a calculation can stand on.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let times = [
            self.set_up_ns,
            self.set_up_wait_ns,
            self.per_byte_ns,
            self.per_record_ns,
            self.per_call_ns,
            self.per_response_ns,
        ];
        times.iter().all(|time| time.is_finite() && (0.0..=1e12).contains(time))
            && self.record_bytes > 0
            && self.call_bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: EngineCosts = EngineCosts {
        set_up_ns: 1000.0,
        set_up_wait_ns: 10_000.0,
        per_byte_ns: 0.5,
        per_record_ns: 100.0,
        per_call_ns: 200.0,
        per_response_ns: 50.0,
        record_bytes: 1000,
        call_bytes: 10_000,
    };

    #[test]
    fn records_and_calls_are_counted_whole() {
        assert_eq!(COSTS.cost_ns(0), 50.0);
        assert_eq!(COSTS.cost_ns(1), 50.0 + 0.5 + 100.0 + 200.0);
        assert_eq!(COSTS.cost_ns(1000), 50.0 + 500.0 + 100.0 + 200.0);
        assert_eq!(COSTS.cost_ns(10_001), 50.0 + 5000.5 + 1100.0 + 400.0);
    }

    #[test]
    fn the_slope_is_what_a_long_response_costs_a_byte() {
        assert_eq!(COSTS.slope_ns_per_byte(), 0.5 + 0.1 + 0.02);
        for bytes in [1u64, 999, 12_345, 1 << 30, 1 << 40] {
            let straight = COSTS.per_response_ns + bytes as f64 * COSTS.slope_ns_per_byte();
            let off = COSTS.cost_ns(bytes) - straight;
            assert!((0.0..=COSTS.per_record_ns + COSTS.per_call_ns + 1e-3).contains(&off), "{bytes}: {off}");
        }
    }

    #[test]
    fn a_wait_counts_where_there_is_time_to_spare() {
        assert_eq!(COSTS.move_ns(0.0), 1000.0);
        assert_eq!(COSTS.move_ns(0.5), 1100.0);
        assert_eq!(COSTS.move_ns(1.0), 1200.0);
        assert_eq!(COSTS.move_ns(-3.0), COSTS.move_ns(0.0));
    }

    #[test]
    fn what_cannot_be_calculated_with_is_told() {
        assert!(COSTS.is_sound() && EngineCosts::FREE.is_sound());
        for unsound in [
            EngineCosts { per_byte_ns: f64::NAN, ..COSTS },
            EngineCosts { set_up_ns: -1.0, ..COSTS },
            EngineCosts { per_call_ns: f64::INFINITY, ..COSTS },
            EngineCosts { record_bytes: 0, ..COSTS },
            EngineCosts { call_bytes: 0, ..COSTS },
        ] {
            assert!(!unsound.is_sound(), "{unsound:?}");
        }
    }
}
