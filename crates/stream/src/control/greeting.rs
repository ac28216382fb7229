//! The listener's side of a greeting: a client may ask for a run once it has proved to know the secret, if there is one.
//! Without I/O: messages in, messages out.

use super::{
    message::{Hexadecimal, Message, PROTOCOL_VERSION},
    secret::{Bond, Prover, Secret},
};

/// What a message of the client comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Say this, and wait for the next.
    Say(Message),
    /// Say this: the client may ask for a run.
    Welcome(Message),
    /// Say this and close.
    Refuse(Message),
}

/// A greeting under way.
#[derive(Debug)]
pub struct Greeting<'a> {
    secret: Option<&'a Secret>,
    certificate: &'a str,
    nonce: [u8; 32],
    client_nonce: Option<[u8; 32]>,
}

impl<'a> Greeting<'a> {
    /// By a listener that shows this certificate. `nonce` is used once.
    #[must_use]
    pub fn new(secret: Option<&'a Secret>, certificate: &'a str, nonce: [u8; 32]) -> Self {
        Self { secret, certificate, nonce, client_nonce: None }
    }

    /// Takes the client's next message.
    pub fn take(&mut self, message: &Message) -> Step {
        match (message, self.client_nonce) {
            (Message::Hello { version, nonce }, None) => {
                if *version != PROTOCOL_VERSION {
                    return refuse(&format!(
                        "the listener speaks version {PROTOCOL_VERSION} of this protocol, and the client {version}: use the \
                         same linerate at both ends"
                    ));
                }
                self.client_nonce = Some(nonce.0);
                Step::Say(Message::Challenge {
                    version: PROTOCOL_VERSION,
                    nonce: Hexadecimal(self.nonce),
                    needs_secret: self.secret.is_some(),
                })
            }
            (Message::Proof { proof }, Some(client_nonce)) => self.judge(*proof, client_nonce),
            _ => refuse("that is not what comes next in a greeting"),
        }
    }

    fn judge(&self, proof: Option<Hexadecimal<32>>, client_nonce: [u8; 32]) -> Step {
        let bond =
            Bond { client_nonce: &client_nonce, listener_nonce: &self.nonce, certificate: self.certificate };
        let Some(secret) = self.secret else { return Step::Welcome(Message::Welcome { proof: None }) };
        match proof {
            Some(Hexadecimal(proof)) if secret.is_proved(Prover::Client, bond, &proof) => {
                let proof = Some(Hexadecimal(secret.prove(Prover::Listener, bond)));
                Step::Welcome(Message::Welcome { proof })
            }
            Some(_) => refuse("the secret is another one than the listener's"),
            None => refuse("the listener has a secret: give the same to the client, by --secret FILE"),
        }
    }
}

fn refuse(reason: &str) -> Step {
    Step::Refuse(Message::Refused { reason: reason.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: Message = Message::Hello { version: PROTOCOL_VERSION, nonce: Hexadecimal([1; 32]) };

    fn bond(certificate: &str) -> Bond<'_> {
        Bond { client_nonce: &[1; 32], listener_nonce: &[2; 32], certificate }
    }

    fn proof(secret: &Secret, certificate: &str) -> Message {
        Message::Proof { proof: Some(Hexadecimal(secret.prove(Prover::Client, bond(certificate)))) }
    }

    #[test]
    fn whoever_knows_the_secret_is_welcome_and_learns_that_the_listener_does_too() {
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        let mut greeting = Greeting::new(Some(&secret), "AA", [2; 32]);
        assert!(matches!(greeting.take(&HELLO), Step::Say(Message::Challenge { needs_secret: true, .. })));
        let Step::Welcome(Message::Welcome { proof: Some(answer) }) = greeting.take(&proof(&secret, "AA"))
        else {
            panic!("it is not welcome")
        };
        assert!(secret.is_proved(Prover::Listener, bond("AA"), &answer.0));
    }

    #[test]
    fn nobody_else_is_welcome() {
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        let other = Secret::new(b"0123456789abcdeF").unwrap();
        let replayed = proof(&secret, "AA");
        for (nonce, message) in [
            ([2; 32], Message::Proof { proof: None }),
            ([2; 32], proof(&other, "AA")),
            // Shown another certificate by somebody in between.
            ([2; 32], proof(&secret, "BB")),
            // Said on another connection.
            ([3; 32], replayed),
            ([2; 32], HELLO),
            ([2; 32], Message::Start {}),
        ] {
            let mut greeting = Greeting::new(Some(&secret), "AA", nonce);
            assert!(matches!(greeting.take(&HELLO), Step::Say(_)));
            assert!(matches!(greeting.take(&message), Step::Refuse(_)), "{message:?}");
        }
        let mut greeting = Greeting::new(Some(&secret), "AA", [2; 32]);
        assert!(matches!(greeting.take(&proof(&secret, "AA")), Step::Refuse(_)), "without a hello");
    }

    #[test]
    fn another_version_is_told() {
        let hello = Message::Hello { version: PROTOCOL_VERSION + 1, nonce: Hexadecimal([1; 32]) };
        let step = Greeting::new(None, "", [2; 32]).take(&hello);
        assert!(
            matches!(step, Step::Refuse(Message::Refused { reason }) if reason.contains("speaks version 2 of"))
        );
    }
}
