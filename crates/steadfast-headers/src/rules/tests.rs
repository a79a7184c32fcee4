use http::HeaderValue;
use proptest::prelude::*;

use super::*;
use crate::IDEMPOTENCY_KEY;

fn parsed<'a>(rules: &KeyRules, value: &'a [u8], key: &'a str) -> bool {
    rules.parse(value).is_ok_and(|got| got.as_str() == key)
}

#[test]
fn i07_the_default_rules_admit_exactly_64_of_the_token_bytes() {
    for byte in 0..=u8::MAX {
        let admitted = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let key = IdempotencyKey::new([byte], &KeyRules::DEFAULT);
        assert_eq!(key.is_ok(), admitted, "{byte:#x}");
    }
    assert!(KeyRules::DEFAULT.parse(&[b'a'; 64]).is_ok());
    assert_eq!(KeyRules::DEFAULT.parse(&[b'a'; 65]), Err(KeyError::TooLong));
}

#[test]
fn i07_the_loose_rules_admit_255_bytes_of_visible_ascii_but_three() {
    for byte in 0..=u8::MAX {
        let admitted = matches!(byte, b'!'..=b'~') && !b"\"\\,".contains(&byte);
        let key = IdempotencyKey::new([byte], &KeyRules::LOOSE);
        assert_eq!(key.is_ok(), admitted, "{byte:#x}");
    }
    assert!(KeyRules::LOOSE.parse(&[b'~'; 255]).is_ok());
    assert_eq!(KeyRules::LOOSE.parse(&[b'~'; 256]), Err(KeyError::TooLong));
}

#[test]
fn i07_length_is_counted_without_the_quotes() {
    let fits = [&b"\""[..], &[b'a'; 64], b"\""].concat();
    let too_long = [&b"\""[..], &[b'a'; 65], b"\""].concat();

    assert!(KeyRules::DEFAULT.parse(&fits).is_ok());
    assert_eq!(KeyRules::DEFAULT.parse(&too_long), Err(KeyError::TooLong));
}

#[test]
fn i07_good_values_are_read() {
    let rules = KeyRules::DEFAULT;
    let uuid = "9b2f7c1e-4d1a-4c60-9f0e-0d6c1a2b3c4d";
    assert!(parsed(&rules, uuid.as_bytes(), uuid));
    assert!(parsed(
        &rules,
        b"01D39ZY06FGSCTVN4T2V9PKHFZ",
        "01D39ZY06FGSCTVN4T2V9PKHFZ"
    ));
    assert!(parsed(&rules, b" \tabc\t ", "abc"));
    assert!(parsed(&rules, b"\"abc\"", "abc"));
    assert!(parsed(&rules, b"\t\"abc\" ", "abc"));
    assert!(parsed(
        &KeyRules::LOOSE,
        b"invoice:inv_4192",
        "invoice:inv_4192"
    ));
}

#[test]
fn i07_bad_values_are_refused_under_every_rules() {
    let table: [(&[u8], KeyError); 22] = [
        (b"", KeyError::Empty),
        (b" \t ", KeyError::Empty),
        (b"\"\"", KeyError::Empty),
        (b"\"", KeyError::Malformed),
        (b"\"abc", KeyError::Malformed),
        (b"\"abc\"x", KeyError::Malformed),
        (b"\"abc\";v=1", KeyError::Malformed),
        (b"\"abc\";v=\"1\"", KeyError::Malformed),
        (b"\"a\", \"b\"", KeyError::Malformed),
        (b"\"a\" \"b\"", KeyError::Malformed),
        (b"\"a\\\"", KeyError::Malformed),
        (b"\"a\\n\"", KeyError::Malformed),
        (b"\"a\tb\"", KeyError::Malformed),
        (b"\"a\x7fb\"", KeyError::Malformed),
        ("\"\u{e9}\"".as_bytes(), KeyError::Malformed),
        (b"\"a\\\"b\"", KeyError::BadByte),
        (b"\"a\\\\b\"", KeyError::BadByte),
        (b"\"a b\"", KeyError::BadByte),
        (b"a b", KeyError::BadByte),
        (b"a,b", KeyError::BadByte),
        (b"a\"b\"", KeyError::BadByte),
        (b"%\"a\"", KeyError::BadByte),
    ];
    for (value, error) in table {
        assert_eq!(KeyRules::DEFAULT.parse(value), Err(error), "{value:?}");
        assert_eq!(KeyRules::LOOSE.parse(value), Err(error), "{value:?}");
    }
}

#[test]
fn i07_other_structured_types_are_refused_by_the_default_rules() {
    for value in [
        ":YWJj:",
        "@1768478430",
        "?1",
        "%\"abc\"",
        "a;v=1",
        "(a b)",
        "1.5",
        "inv:1",
    ] {
        assert_eq!(
            KeyRules::DEFAULT.parse(value.as_bytes()),
            Err(KeyError::BadByte),
            "{value}"
        );
    }
}

#[test]
fn i07_bytes_outside_ascii_are_refused() {
    for value in [
        &b"\x00"[..],
        b"a\x00",
        b"\xff",
        "ключ".as_bytes(),
        b"a\r\nb",
        b"\x0ba",
    ] {
        assert_eq!(
            KeyRules::LOOSE.parse(value),
            Err(KeyError::BadByte),
            "{value:?}"
        );
    }
}

#[test]
fn i07_a_strict_form_refuses_the_other_one() {
    let raw = KeyRules::DEFAULT.form(KeyForm::Raw);
    let quoted = KeyRules::DEFAULT.form(KeyForm::Quoted);

    assert!(parsed(&raw, b"abc", "abc"));
    assert_eq!(raw.parse(b"\"abc\""), Err(KeyError::WrongForm));
    assert!(parsed(&quoted, b"\"abc\"", "abc"));
    assert_eq!(quoted.parse(b"abc"), Err(KeyError::WrongForm));
    assert_eq!(quoted.parse(b":YWJj:"), Err(KeyError::WrongForm));
}

#[test]
fn i07_the_field_is_read_only_when_it_has_one_line() {
    let rules = KeyRules::DEFAULT;
    let mut headers = HeaderMap::new();
    assert_eq!(rules.from_headers(&headers, &IDEMPOTENCY_KEY), Ok(None));

    headers.append("Idempotency-KEY", HeaderValue::from_static("abc"));
    let key = rules.from_headers(&headers, &IDEMPOTENCY_KEY).unwrap();
    assert_eq!(key.unwrap().as_str(), "abc");

    headers.append("idempotency-key", HeaderValue::from_static("abc"));
    assert_eq!(
        rules.from_headers(&headers, &IDEMPOTENCY_KEY),
        Err(KeyError::Repeated)
    );
}

#[test]
fn i07_two_lines_are_refused_even_when_one_or_both_are_empty() {
    for (first, second) in [("", "abc"), ("abc", ""), ("", ""), ("abc", "def")] {
        let mut headers = HeaderMap::new();
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static(first));
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static(second));
        assert_eq!(
            KeyRules::DEFAULT.from_headers(&headers, &IDEMPOTENCY_KEY),
            Err(KeyError::Repeated)
        );
    }
}

#[test]
fn i07_the_field_may_have_another_name() {
    let name = HeaderName::from_static("x-request-key");
    let mut headers = HeaderMap::new();
    headers.append(&name, HeaderValue::from_static("abc"));
    headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("other"));

    let key = KeyRules::DEFAULT.from_headers(&headers, &name).unwrap();
    assert_eq!(key.unwrap().as_str(), "abc");
}

#[test]
fn i07_rules_can_be_widened_but_never_to_an_unsendable_byte() {
    let rules = KeyRules::DEFAULT.also_allow(b":.").unwrap();
    assert!(parsed(&rules, b"inv:1.2", "inv:1.2"));
    assert_eq!(rules.parse(b"inv/1"), Err(KeyError::BadByte));

    for byte in 0..=u8::MAX {
        let sendable = matches!(byte, b'!'..=b'~') && !b"\"\\,".contains(&byte);
        let widened = KeyRules::DEFAULT.also_allow(&[b':', byte]);
        assert_eq!(widened.is_ok(), sendable, "{byte:#x}");
    }
    assert_eq!(
        KeyRules::DEFAULT.also_allow(b",").unwrap_err().to_string(),
        "byte 0x2c cannot be allowed in an idempotency key"
    );
}

#[test]
fn i07_the_length_can_be_narrowed() {
    let rules = KeyRules::DEFAULT.max_len(NonZeroU8::new(3).unwrap());
    assert!(rules.parse(b"abc").is_ok());
    assert_eq!(rules.parse(b"abcd"), Err(KeyError::TooLong));
    assert_eq!(KeyRules::default(), KeyRules::DEFAULT);
}

#[test]
fn i07_bytes_judged_at_once_are_judged_as_one_by_one() {
    for (allowed, named) in [
        (TOKEN_BYTES, KeyRules::DEFAULT),
        (SENDABLE_BYTES, KeyRules::LOOSE),
    ] {
        let rules = named.max_len(NonZeroU8::MAX);
        for len in (1..=40).chain([64, 129, 255]) {
            for place in [0, len / 2, len - 1] {
                let mut key = vec![b'a'; len];
                for byte in 0..=255 {
                    key[place] = byte;
                    let each = key.iter().all(|&byte| contains(allowed, byte));
                    assert_eq!(rules.admit(&key), each, "byte {byte} at {place} of {len}");
                }
            }
        }
    }
}

fn rules() -> impl Strategy<Value = KeyRules> {
    prop_oneof![
        Just(KeyRules::DEFAULT),
        Just(KeyRules::LOOSE),
        Just(KeyRules::DEFAULT.also_allow(b":/").unwrap()),
    ]
}

/// Bytes that are near enough to a key to get past the first check.
fn near_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        r#"[ \t]*"?[a-z"\\,;=: ]{0,12}"?[ \t]*"#.prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn i07_no_value_panics_and_each_parsed_key_passes_its_own_rules(
        rules in rules(),
        value in near_key(),
    ) {
        if let Ok(key) = rules.parse(&value) {
            prop_assert_eq!(IdempotencyKey::new(key.as_bytes(), &rules), Ok(key));
        }
    }

    #[test]
    fn i03_both_spellings_of_a_key_are_read_back_to_it(key in "[!#-+\\--\\[\\]-~]{1,255}") {
        let key = IdempotencyKey::new(key, &KeyRules::LOOSE).unwrap();

        let raw = KeyRules::LOOSE.parse(key.to_header_value().as_bytes());
        let quoted = KeyRules::LOOSE.parse(key.to_quoted_header_value().as_bytes());
        prop_assert_eq!(raw.as_ref(), Ok(&key));
        prop_assert_eq!(quoted.as_ref(), Ok(&key));
    }

    #[test]
    fn i07_errors_never_show_the_key(key in "[a-z]{5}:[a-z]{5}") {
        let error = KeyRules::DEFAULT.parse(key.as_bytes()).unwrap_err();
        let shown = format!("{error} {error:?}");
        prop_assert!(!shown.contains(&key));
    }
}
