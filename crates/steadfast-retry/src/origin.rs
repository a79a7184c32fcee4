use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::{BuildHasher as _, Hash as _, Hasher as _},
    str::FromStr as _,
};

use http::{
    Request, header,
    uri::{Authority, Scheme},
};

/// Whom a call goes to: what the budget and the give-up events are kept by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    authority: Option<Authority>,
    secure: bool,
}

impl Origin {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let uri = request.uri();
        let authority = uri.authority().cloned().or_else(|| {
            let host = request.headers().get(header::HOST)?.to_str().ok()?;
            Authority::from_str(host).ok()
        });
        Self {
            authority,
            secure: uri.scheme() == Some(&Scheme::HTTPS),
        }
    }

    /// The host alone: neither port nor user.
    pub(crate) fn host(&self) -> &str {
        self.authority.as_ref().map_or("", Authority::host)
    }

    fn port(&self) -> u16 {
        let explicit = self.authority.as_ref().and_then(Authority::port_u16);
        explicit.unwrap_or(if self.secure { 443 } else { 80 })
    }
}

/// Values kept by origin, in bounded memory.
///
/// Beyond `CAPACITY` origins the further ones share one value, [`OriginMap::rest`]. Origins are kept as keyed hashes:
/// two that collide share a value as well.
#[derive(Debug)]
pub(crate) struct OriginMap<V> {
    values: HashMap<u64, V>,
    rest: V,
    hasher: RandomState,
}

impl<V: Default> OriginMap<V> {
    /// How many origins have a value of their own.
    const CAPACITY: usize = 1_024;

    /// The value of this origin, made if it has none.
    ///
    /// `is_idle` says which values may make room for it: those that are as good as a new one.
    pub(crate) fn entry(&mut self, origin: &Origin, is_idle: impl Fn(&V) -> bool) -> &mut V {
        let key = self.key(origin);
        if self.values.len() >= Self::CAPACITY && !self.values.contains_key(&key) {
            self.values.retain(|_, value| !is_idle(value));
            if self.values.len() >= Self::CAPACITY {
                return &mut self.rest;
            }
        }
        self.values.entry(key).or_default()
    }

    /// The value that counts for this origin at present.
    pub(crate) fn get_mut(&mut self, origin: &Origin) -> &mut V {
        let key = self.key(origin);
        self.values.get_mut(&key).unwrap_or(&mut self.rest)
    }

    pub(crate) fn remove(&mut self, origin: &Origin) {
        let key = self.key(origin);
        self.values.remove(&key);
    }

    /// The value of the origins that found no room.
    pub(crate) const fn rest(&self) -> &V {
        &self.rest
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    fn key(&self, origin: &Origin) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        for byte in origin.host().bytes() {
            hasher.write_u8(byte.to_ascii_lowercase());
        }
        (origin.port(), origin.secure).hash(&mut hasher);
        hasher.finish()
    }
}

impl<V: Default> Default for OriginMap<V> {
    fn default() -> Self {
        Self {
            values: HashMap::new(),
            rest: V::default(),
            hasher: RandomState::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(uri: &str) -> Origin {
        Origin::of(&Request::get(uri).body(()).unwrap())
    }

    #[test]
    fn r09_a_host_carries_neither_port_nor_user() {
        assert_eq!(
            origin("https://user:pw@API.example:8443/a?key=1").host(),
            "API.example"
        );
        assert_eq!(origin("https://[::1]:8443/").host(), "[::1]");
        assert_eq!(origin("/relative").host(), "");
    }

    #[test]
    fn a_relative_uri_takes_its_host_from_the_header() {
        let request = Request::get("/a")
            .header("host", "api.example:81")
            .body(())
            .unwrap();
        assert_eq!(Origin::of(&request).host(), "api.example");
    }

    #[test]
    fn r13_an_origin_is_scheme_host_and_port() {
        let map = OriginMap::<u32>::default();
        let key = |uri| map.key(&origin(uri));
        assert_eq!(
            key("https://api.example/a"),
            key("https://user@API.example:443/b?c")
        );
        assert_ne!(key("https://api.example/"), key("http://api.example/"));
        assert_ne!(key("https://api.example/"), key("https://api.example:444/"));
        assert_ne!(key("https://api.example/"), key("https://api.example.org/"));
    }

    #[test]
    fn origins_beyond_the_capacity_share_one_value() {
        let mut map = OriginMap::<u32>::default();
        for n in 0..OriginMap::<u32>::CAPACITY {
            *map.entry(&origin(&format!("https://h{n}.example/")), |_| false) = 1;
        }
        for n in 0..3 {
            *map.entry(&origin(&format!("https://more{n}.example/")), |_| false) += 1;
        }
        assert_eq!(map.len(), OriginMap::<u32>::CAPACITY);
        assert_eq!(*map.rest(), 3);
        assert_eq!(*map.get_mut(&origin("https://more1.example/")), 3);
        assert_eq!(*map.get_mut(&origin("https://h1.example/")), 1);
    }

    #[test]
    fn idle_values_make_room() {
        let mut map = OriginMap::<u32>::default();
        for n in 0..OriginMap::<u32>::CAPACITY {
            map.entry(&origin(&format!("https://h{n}.example/")), |_| false);
        }
        *map.entry(&origin("https://more.example/"), |value| *value == 0) = 7;
        assert_eq!(map.len(), 1);
        assert_eq!(*map.rest(), 0);
    }
}
