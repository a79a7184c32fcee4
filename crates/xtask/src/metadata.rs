use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use serde_json::Value;

use crate::invocation::{Failure, Invocation};

/// What `cargo metadata` says about a workspace, as far as the steps need it.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
}

/// One member of a workspace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Each feature with what it turns on, as written in the manifest.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) publishable: bool,
    pub(crate) targets: Vec<Target>,
}

/// A library, binary, benchmark, … of a package.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kinds: Vec<String>,
}

impl Metadata {
    /// Asks cargo about this workspace.
    pub(crate) fn load() -> Result<Self, Failure> {
        Self::parse(&Invocation::new("cargo metadata --format-version 1 --no-deps").output()?)
    }

    /// Asks cargo about the workspace of another manifest, named from the root.
    pub(crate) fn load_other(manifest: &str) -> Result<Self, Failure> {
        let invocation = Invocation::new("cargo metadata --format-version 1 --no-deps");
        Self::parse(&invocation.arg("--manifest-path").arg(manifest).output()?)
    }

    /// Reads what `cargo metadata` printed.
    pub(crate) fn parse(json: &str) -> Result<Self, Failure> {
        let value: Value = serde_json::from_str(json)
            .map_err(|error| Failure::new(format!("`cargo metadata` printed no JSON: {error}")))?;
        let target_directory = text(&value, "target_directory")?.into();
        let mut packages = array(&value, "packages")?
            .iter()
            .map(Package::parse)
            .collect::<Result<Vec<_>, _>>()?;
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            packages,
            target_directory,
        })
    }

    /// The members that go to crates.io.
    pub(crate) fn publishable(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.publishable)
    }
}

impl Package {
    fn parse(value: &Value) -> Result<Self, Failure> {
        let Some(Value::Object(features)) = value.get("features") else {
            return Err(missing("features"));
        };
        let features = features
            .iter()
            .map(|(name, turned_on)| Ok((name.clone(), texts(turned_on, name)?)))
            .collect::<Result<_, Failure>>()?;
        let targets = array(value, "targets")?
            .iter()
            .map(|target| {
                let kinds = target.get("kind").ok_or_else(|| missing("kind"))?;
                Ok(Target {
                    name: text(target, "name")?.to_owned(),
                    kinds: texts(kinds, "kind")?,
                })
            })
            .collect::<Result<_, Failure>>()?;
        Ok(Self {
            name: text(value, "name")?.to_owned(),
            features,
            // `null` is every registry; a list is those registries only, and `publish = false` is the empty one.
            publishable: value
                .get("publish")
                .is_none_or(|list| list.as_array().is_none_or(|list| !list.is_empty())),
            targets,
        })
    }

    /// The names of the targets of this kind, such as `bench`.
    pub(crate) fn targets_of_kind(&self, kind: &str) -> impl Iterator<Item = &str> {
        let targets = self
            .targets
            .iter()
            .filter(move |target| target.kinds.iter().any(|it| it == kind));
        targets.map(|target| target.name.as_str())
    }
}

/// The root of the workspace, wherever the command was started.
pub(crate) fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        // What cargo says when it starts this program, not when it built it: checkouts that share a target directory
        // share the program as well.
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        // This crate is `crates/xtask`.
        Path::new(&manifest)
            .ancestors()
            .nth(2)
            .unwrap_or(Path::new("."))
            .to_owned()
    });
    &ROOT
}

fn text<'v>(value: &'v Value, key: &str) -> Result<&'v str, Failure> {
    value
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| missing(key))
}

fn array<'v>(value: &'v Value, key: &str) -> Result<&'v Vec<Value>, Failure> {
    value
        .get(key)
        .and_then(Value::as_array)
        .ok_or_else(|| missing(key))
}

fn texts(value: &Value, key: &str) -> Result<Vec<String>, Failure> {
    let texts = value.as_array().ok_or_else(|| missing(key))?;
    texts
        .iter()
        .map(|text| text.as_str().map(str::to_owned).ok_or_else(|| missing(key)))
        .collect()
}

fn missing(key: &str) -> Failure {
    Failure::new(format!(
        "`cargo metadata` says nothing usable about '{key}'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"{
        "packages": [
            {
                "name": "steadfast-retry",
                "publish": null,
                "features": {"default": ["hyper-util"], "hyper-util": ["dep:hyper-util"]},
                "targets": [{"kind": ["lib"], "name": "steadfast_retry"}]
            },
            {
                "name": "steadfast-bench",
                "publish": [],
                "features": {},
                "targets": [
                    {"kind": ["bench"], "name": "layers"},
                    {"kind": ["bin"], "name": "report"},
                    {"kind": ["bench"], "name": "stack"}
                ]
            }
        ],
        "target_directory": "/somewhere/target"
    }"#;

    #[test]
    fn packages_are_read_in_the_order_of_their_names() {
        let metadata = Metadata::parse(SAMPLE).expect("the sample is whole");
        let names: Vec<_> = metadata
            .packages
            .iter()
            .map(|package| &package.name)
            .collect();
        assert_eq!(names, ["steadfast-bench", "steadfast-retry"]);
        assert_eq!(metadata.target_directory, Path::new("/somewhere/target"));
    }

    #[test]
    fn only_packages_without_a_publish_list_or_with_one_of_registries_are_publishable() {
        let metadata = Metadata::parse(SAMPLE).expect("the sample is whole");
        let names: Vec<_> = metadata
            .publishable()
            .map(|package| &package.name)
            .collect();
        assert_eq!(names, ["steadfast-retry"]);

        let elsewhere = SAMPLE.replace(r#""publish": []"#, r#""publish": ["own"]"#);
        let metadata = Metadata::parse(&elsewhere).expect("the sample is whole");
        assert_eq!(metadata.publishable().count(), 2);
    }

    #[test]
    fn targets_are_found_by_their_kind() {
        let metadata = Metadata::parse(SAMPLE).expect("the sample is whole");
        let bench = &metadata.packages[0];
        assert_eq!(
            bench.targets_of_kind("bench").collect::<Vec<_>>(),
            ["layers", "stack"]
        );
        assert_eq!(bench.targets_of_kind("example").count(), 0);
    }

    #[test]
    fn what_is_not_metadata_is_a_failure() {
        for json in ["", "{}", r#"{"packages": [{}], "target_directory": "/"}"#] {
            assert!(Metadata::parse(json).is_err(), "{json:?} was accepted");
        }
    }

    #[test]
    fn the_root_is_where_the_lock_file_is() {
        assert!(root().join("Cargo.lock").is_file());
    }
}
