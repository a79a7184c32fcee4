//! Reads arbitrary bytes as an `Idempotency-Key`, under several rules.
//!
//! No value may panic, a key that was read has to pass its own rules, and both of
//! its spellings have to be read back to the same key. Each line of the input is
//! also a field line, so that repeated fields are covered.
#![no_main]

use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use steadfast_headers::{IDEMPOTENCY_KEY, IdempotencyKey, KeyError, KeyForm, KeyRules};

fuzz_target!(|input: &[u8]| {
    let widened = KeyRules::DEFAULT.also_allow(b":/");
    for rules in [
        KeyRules::DEFAULT,
        KeyRules::LOOSE,
        widened.expect("both are visible ASCII"),
    ] {
        read_value(&rules, input);
        read_fields(&rules, input);
    }
});

fn read_value(rules: &KeyRules, value: &[u8]) {
    let Ok(key) = rules.parse(value) else {
        return;
    };
    let raw = key.to_header_value();
    let quoted = key.to_quoted_header_value();

    assert_eq!(
        IdempotencyKey::new(key.as_bytes(), rules).as_ref(),
        Ok(&key)
    );
    assert_eq!(rules.parse(raw.as_bytes()).as_ref(), Ok(&key));
    assert_eq!(rules.parse(quoted.as_bytes()).as_ref(), Ok(&key));
    // Whatever any rules admit, the loosest do, in each form in its own spelling.
    for (form, admitted, refused) in [
        (KeyForm::Raw, &raw, &quoted),
        (KeyForm::Quoted, &quoted, &raw),
    ] {
        let strict = KeyRules::LOOSE.form(form);
        assert_eq!(strict.parse(admitted.as_bytes()).as_ref(), Ok(&key));
        assert_eq!(strict.parse(refused.as_bytes()), Err(KeyError::WrongForm));
    }
}

fn read_fields(rules: &KeyRules, input: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in input.split(|&byte| byte == b'\n') {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(IDEMPOTENCY_KEY, value);
        }
    }
    let read = rules.from_headers(&headers, &IDEMPOTENCY_KEY);
    match headers.len() {
        0 => assert_eq!(read, Ok(None)),
        1 => assert_ne!(read, Ok(None)),
        _ => assert_eq!(read, Err(KeyError::Repeated)),
    }
}
