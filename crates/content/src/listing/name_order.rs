//! Names in the order a person expects: `file2` before `file10`, capitals beside small letters.

use std::cmp::Ordering;

/// Compares two names: runs of digits by their value, ASCII letters without their case, all else by its bytes. Names
/// that are equal so far are told apart by their bytes, so that the order is total.
pub(crate) fn compare_names(left: &[u8], right: &[u8]) -> Ordering {
    let (mut rest_left, mut rest_right) = (left, right);
    loop {
        match (rest_left.first(), rest_right.first()) {
            (None, None) => return left.cmp(right),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) if a.is_ascii_digit() && b.is_ascii_digit() => {
                let (number_left, after_left) = split_number(rest_left);
                let (number_right, after_right) = split_number(rest_right);
                // Without leading zeros the longer number is the greater one.
                let ordering =
                    number_left.len().cmp(&number_right.len()).then_with(|| number_left.cmp(number_right));
                if ordering != Ordering::Equal {
                    return ordering;
                }
                (rest_left, rest_right) = (after_left, after_right);
            }
            (Some(a), Some(b)) => {
                let ordering = a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase());
                if ordering != Ordering::Equal {
                    return ordering;
                }
                (rest_left, rest_right) = (&rest_left[1..], &rest_right[1..]);
            }
        }
    }
}

/// The digits `name` begins with, without leading zeros, and what follows them.
fn split_number(name: &[u8]) -> (&[u8], &[u8]) {
    let end = name.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(name.len());
    let (digits, rest) = name.split_at(end);
    let start = digits.iter().position(|&byte| byte != b'0').unwrap_or(digits.len());
    (&digits[start..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_count() {
        let expected = [
            "",
            "1",
            "2",
            "010",
            "10",
            "11",
            "a",
            "file2.txt",
            "File10.txt",
            "file10.txt",
            "file10a",
            "file100",
            "ä",
        ];
        let mut names = expected;
        names.reverse();
        names.sort_by(|left, right| compare_names(left.as_bytes(), right.as_bytes()));
        assert_eq!(names, expected);
    }

    #[test]
    fn numbers_longer_than_any_integer() {
        let (short, long) = ("9".repeat(40), format!("1{}", "0".repeat(40)));
        assert_eq!(compare_names(short.as_bytes(), long.as_bytes()), Ordering::Less);
    }

    #[test]
    fn the_order_is_total() {
        let names: [&[u8]; 11] =
            [b"", b"0", b"00", b"a0", b"a00", b"A0", b"a1", b"a01b", b"a1B", b"\xff", b"\xff0"];
        for left in names {
            for right in names {
                let ordering = compare_names(left, right);
                assert_eq!(ordering, compare_names(right, left).reverse());
                assert_eq!(ordering == Ordering::Equal, left == right);
                for third in names {
                    if ordering == Ordering::Less && compare_names(right, third) == Ordering::Less {
                        assert_eq!(compare_names(left, third), Ordering::Less);
                    }
                }
            }
        }
    }
}
