use std::{path::Path, time::Duration};

use crate::{
    invocation::{Failure, Invocation},
    metadata::{Metadata, Package, root},
};

const MANIFEST: &str = "fuzz/Cargo.toml";

/// What cargo-fuzz passes to rustc for coverage, without its sanitizers: those need a nightly compiler, and code that
/// forbids `unsafe` has little for them to find. With these flags alone the stable compiler builds guided fuzzers.
const RUSTFLAGS: &str = "-Dwarnings --cfg fuzzing \
    -Ccodegen-units=1 -Cdebug-assertions -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0";

/// How long each target is fuzzed.
const SMOKE: Duration = Duration::from_secs(10);

/// Reading a large corpus comes on top of [`SMOKE`].
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Builds the fuzz targets and fuzzes each for a few seconds.
pub(crate) fn smoke(_: &Metadata) -> Result<Vec<Invocation>, Failure> {
    let metadata = Metadata::load_other(MANIFEST)?;
    let host = host()?;
    let scratch = metadata.target_directory.join("smoke");
    Ok(smoke_plan(&metadata.packages, &host, &scratch))
}

fn smoke_plan(packages: &[Package], host: &str, scratch: &Path) -> Vec<Invocation> {
    let scratch_arg = scratch.display().to_string();
    // Without an explicit target the flags would reach build scripts and derive macros too, and those do not link.
    let build = Invocation::new("cargo build --release --bins --manifest-path")
        .arg(MANIFEST)
        .arg("--target")
        .arg(host)
        .arg("--target-dir")
        .arg(&scratch_arg)
        .env("RUSTFLAGS", RUSTFLAGS);
    let targets = packages
        .iter()
        .flat_map(|package| package.targets_of_kind("bin"));
    let runs = targets.map(|target| {
        // Findings go beside the build, so that a smoke run never touches the committed corpus.
        let own = |kind: &str| scratch.join(kind).join(target).display().to_string();
        let run = Invocation::of(format!("{scratch_arg}/{host}/release/{target}"))
            .arg(format!("-max_total_time={}", SMOKE.as_secs()))
            .arg("-verbosity=0")
            .arg("-print_final_stats=1")
            .arg("-create_missing_dirs=1")
            .arg(format!("-artifact_prefix={}/", own("artifacts")))
            .arg(own("corpus"))
            .limit(LIMIT);
        let committed = format!("fuzz/corpus/{target}");
        if root().join(&committed).is_dir() {
            run.arg(committed)
        } else {
            run
        }
    });
    std::iter::once(build).chain(runs).collect()
}

/// The target triple that rustc builds for by itself.
fn host() -> Result<String, Failure> {
    let told = Invocation::new("rustc -vV").output()?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| Failure::new("`rustc -vV` names no host"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_built_once_and_each_is_run() {
        let json = r#"{
            "packages": [{
                "name": "steadfast-fuzz",
                "publish": [],
                "features": {},
                "targets": [{"kind": ["bin"], "name": "one"}, {"kind": ["bin"], "name": "two"}]
            }],
            "target_directory": "/a b"
        }"#;
        let metadata = Metadata::parse(json).expect("the sample is whole");
        let plan = smoke_plan(
            &metadata.packages,
            "host-triple",
            &metadata.target_directory,
        );
        let lines: Vec<String> = plan.iter().map(Invocation::to_string).collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[0].contains(" --target host-triple --target-dir '/a b'"),
            "{}",
            lines[0]
        );
        for (line, target) in lines[1..].iter().zip(["one", "two"]) {
            assert!(
                line.starts_with(&format!("'/a b/host-triple/release/{target}' ")),
                "{line}"
            );
            assert!(
                line.ends_with(&format!(" '/a b/corpus/{target}'")),
                "{line}"
            );
        }
    }
}
