//! What workers count without locked instructions: right with one writer, and with one only.

#[path = "../../../crates/server/src/metrics/counter.rs"]
#[allow(dead_code, reason = "only what the models need is called")]
mod single_writer;

#[cfg(test)]
mod tests {
    use super::single_writer::Counter;
    use loom::{sync::Arc, thread};

    #[test]
    fn a_scrape_sees_a_workers_count_grow_and_misses_nothing() {
        loom::model(|| {
            let counters = Arc::new([Counter::default(), Counter::default()]);
            let workers: Vec<_> = [0, 1]
                .map(|index| {
                    let counters = Arc::clone(&counters);
                    thread::spawn(move || {
                        counters[index].increment();
                        counters[index].add(2);
                    })
                })
                .into();
            let (first, second) = (counters[0].value(), counters[0].value());
            assert!([0, 1, 3].contains(&first) && first <= second && second <= 3, "{first}, then {second}");
            for worker in workers {
                worker.join().unwrap();
            }
            assert_eq!(counters.iter().map(Counter::value).sum::<u64>(), 6);
        });
    }

    /// Why each worker has counters of its own; and that the model would notice.
    #[test]
    #[should_panic(expected = "lost")]
    fn two_writers_would_lose_counts() {
        loom::model(|| {
            let counter = Arc::new(Counter::default());
            let other = {
                let counter = Arc::clone(&counter);
                thread::spawn(move || counter.increment())
            };
            counter.increment();
            other.join().unwrap();
            assert_eq!(counter.value(), 2, "a count was lost");
        });
    }
}
