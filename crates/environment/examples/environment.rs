//! Prints what is known of this machine, as it is kept with measurements: `cargo run -p linerate-environment --example
//! environment`.

#![forbid(unsafe_code)]

use linerate_environment::Reading;

fn main() {
    for (group, facts) in linerate_environment::capture() {
        println!("{group}");
        for (fact, answer) in facts {
            match answer {
                Reading::Value(value) => println!("  {fact}: {value}"),
                Reading::NotAvailable(reason) => println!("  {fact}: not available, {reason}"),
            }
        }
    }
}
