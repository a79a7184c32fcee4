use std::time::Duration;

use crate::{
    features, fuzz,
    invocation::{Failure, Invocation},
    metadata::{Metadata, Package},
    peers,
    step::{self, Step},
    tool::{self, CLIPPY, CXX, DENY, NEXTEST, NODE, NPM, PYTHON, RUSTFMT, Tool},
};

/// The quickstart is built by then and takes seconds; one that hangs is a finding.
const QUICKSTART_LIMIT: Duration = Duration::from_secs(3 * 60);

/// The steps, the quick ones and those that most often fail first.
pub(crate) static STEPS: &[Step] = &[
    Step {
        name: "fmt",
        about: "every file is formatted",
        tools: &[&RUSTFMT],
        // The fuzz targets are a workspace of their own.
        plan: |_| {
            plain(&[
                "cargo fmt --all --check",
                "cargo fmt --manifest-path fuzz/Cargo.toml --check",
            ])
        },
    },
    Step {
        name: "clippy",
        about: "no lint speaks, `rust-version` is kept (`clippy::incompatible_msrv`)",
        tools: &[&CLIPPY],
        plan: |_| plain(&["cargo clippy --workspace --all-targets --all-features -- -D warnings"]),
    },
    Step {
        name: "test",
        about: "unit and integration tests, some of them with the senders' own libraries",
        tools: &[&NEXTEST, &NODE, &NPM, &PYTHON],
        plan: |metadata| {
            // The tests install nothing themselves.
            let mut plan = peers::install(metadata);
            plan.push(Invocation::new(
                "cargo nextest run --workspace --all-features",
            ));
            Ok(plan)
        },
    },
    Step {
        name: "doctest",
        about: "examples in the documentation",
        tools: &[],
        plan: |_| plain(&["cargo test --doc --workspace --all-features"]),
    },
    Step {
        name: "doc",
        about: "the documentation builds, its links lead somewhere",
        tools: &[],
        plan: |_| {
            let doc = Invocation::new("cargo doc --workspace --no-deps --all-features");
            Ok(vec![doc.env("RUSTDOCFLAGS", "-Dwarnings")])
        },
    },
    Step {
        name: "deny",
        about: "directions between crates, licences and sources of dependencies",
        tools: &[&DENY],
        plan: |_| plain(&["cargo deny check bans licenses sources"]),
    },
    Step {
        name: "features",
        about: "each published crate alone, with no feature, each one, and all",
        tools: &[&CLIPPY],
        plan: |metadata| Ok(metadata.publishable().flat_map(each_feature).collect()),
    },
    Step {
        name: "examples",
        about: "the examples build, the quickstart runs",
        tools: &[],
        plan: |_| {
            let quickstart = Invocation::new("cargo run --example quickstart");
            Ok(vec![
                Invocation::new("cargo build --examples"),
                quickstart.limit(QUICKSTART_LIMIT),
            ])
        },
    },
    Step {
        name: "benches",
        about: "each benchmark runs once, unmeasured",
        tools: &[],
        // Criterion runs each benchmark once when cargo starts it as a test. The whole workspace is named, since its
        // dependencies are built by then; the benchmarks of one package alone would need them built anew.
        plan: |_| plain(&["cargo test --workspace --all-features --bench *"]),
    },
    Step {
        name: "package",
        about: "what would go to crates.io is whole",
        tools: &[],
        plan: package,
    },
    Step {
        name: "fuzz",
        about: "the fuzz targets build, each runs for ten seconds",
        tools: &[&CXX],
        plan: fuzz::smoke,
    },
];

/// Installs what the steps need and runs those named in `only`, or all.
pub(crate) fn run(only: &[&str]) -> Result<(), Failure> {
    let chosen = |step: &&Step| only.is_empty() || only.contains(&step.name);
    let steps: Vec<&Step> = STEPS.iter().filter(chosen).collect();
    let needed = |tool: &&Tool| {
        steps
            .iter()
            .any(|step| step.tools.iter().any(|it| it.name == tool.name))
    };
    let tools: Vec<&Tool> = tool::ALL.iter().copied().filter(needed).collect();
    if !tools.is_empty() {
        tool::ensure(&tools)?;
    }
    step::run_all(steps, &Metadata::load()?)
}

/// Installs all that any step needs.
pub(crate) fn set_up() -> Result<(), Failure> {
    tool::ensure(tool::ALL)?;
    peers::install(&Metadata::load()?)
        .iter()
        .try_for_each(Invocation::run)
}

/// A step of fixed command lines.
fn plain(lines: &[&str]) -> Result<Vec<Invocation>, Failure> {
    Ok(lines.iter().map(|line| Invocation::new(line)).collect())
}

/// The crate as its users build it: nothing else in the workspace turns its features on.
fn each_feature(package: &Package) -> impl Iterator<Item = Invocation> {
    features::matrix(package).into_iter().map(|set| {
        // Lints too, since code left unused without some feature only warns.
        let clippy = Invocation::new("cargo clippy --lib --no-default-features --package")
            .arg(&package.name);
        let clippy = if set.is_empty() {
            clippy
        } else {
            clippy.arg("--features").arg(set.join(","))
        };
        clippy.arg("--").arg("-D").arg("warnings")
    })
}

fn package(metadata: &Metadata) -> Result<Vec<Invocation>, Failure> {
    let package = Invocation::new("cargo package --no-verify --allow-dirty");
    let add = |package: Invocation, member: &Package| package.arg("--package").arg(&member.name);
    Ok(vec![metadata.publishable().fold(package, add)])
}

/// Prints the steps.
pub(crate) fn list() {
    let width = STEPS.iter().map(|step| step.name.len()).max().unwrap_or(0);
    for step in STEPS {
        println!("{:<width$}  {}", step.name, step.about);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn steps_are_told_apart_by_their_names() {
        let names: BTreeSet<_> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
    }

    #[test]
    fn every_tool_that_a_step_needs_can_be_installed() {
        for tool in STEPS.iter().flat_map(|step| step.tools) {
            assert!(
                tool::ALL.iter().any(|it| it.name == tool.name),
                "{} is not in the table",
                tool.name
            );
        }
    }

    #[test]
    fn each_published_crate_is_built_alone_with_each_feature() {
        let json = r#"{
            "packages": [
                {"name": "alone", "publish": null, "features": {"a": [], "b": []}, "targets": []},
                {"name": "private", "publish": [], "features": {"c": []}, "targets": []}
            ],
            "target_directory": "/target"
        }"#;
        let metadata = Metadata::parse(json).expect("the sample is whole");
        let lines: Vec<_> = metadata
            .publishable()
            .flat_map(each_feature)
            .map(|it| it.to_string())
            .collect();
        assert_eq!(
            lines,
            [
                "cargo clippy --lib --no-default-features --package alone -- -D warnings",
                "cargo clippy --lib --no-default-features --package alone --features a -- -D warnings",
                "cargo clippy --lib --no-default-features --package alone --features b -- -D warnings",
                "cargo clippy --lib --no-default-features --package alone --features a,b -- -D warnings",
            ]
        );
    }
}
