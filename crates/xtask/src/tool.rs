use crate::{
    invocation::{Failure, Invocation, succeeds},
    step::Stopwatch,
};

pub(crate) static CXX: Tool = Tool {
    name: "C++ compiler",
    probe: "c++ --version",
    source: Source::Debian("g++"),
};

pub(crate) static CLIPPY: Tool = Tool {
    name: "clippy",
    probe: "cargo clippy --version",
    source: Source::Component("clippy"),
};

pub(crate) static DENY: Tool = Tool {
    name: "cargo-deny",
    probe: "cargo deny --version",
    source: Source::Crate {
        name: "cargo-deny",
        version: "0.20.2",
        options: "",
    },
};

pub(crate) static NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    probe: "cargo nextest --version",
    source: Source::Crate {
        name: "cargo-nextest",
        version: "0.9.151",
        // Without the self-update and its HTTP client.
        options: "--no-default-features --features default-no-update",
    },
};

pub(crate) static NODE: Tool = Tool {
    name: "Node.js",
    probe: "node --version",
    source: Source::Debian("nodejs"),
};

pub(crate) static NPM: Tool = Tool {
    name: "npm",
    probe: "npm --version",
    source: Source::Debian("npm"),
};

pub(crate) static PYTHON: Tool = Tool {
    name: "Python with venv",
    // Debian has Python without it.
    probe: "python3 -m ensurepip --version",
    source: Source::Debian("python3 python3-venv"),
};

pub(crate) static RUSTFMT: Tool = Tool {
    name: "rustfmt",
    probe: "cargo fmt --version",
    source: Source::Component("rustfmt"),
};

/// Every tool that some step needs, in the order to install them in. The C compiler that links Rust programs is not
/// among them: without it this one would not run.
pub(crate) static ALL: &[&Tool] = &[
    &CXX, &RUSTFMT, &CLIPPY, &NODE, &NPM, &PYTHON, &NEXTEST, &DENY,
];

/// A program that must be there before a step can run.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// A command that succeeds when the tool is there.
    pub(crate) probe: &'static str,
    pub(crate) source: Source,
}

/// Where a tool comes from when it is missing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// A component of the Rust toolchain in use.
    Component(&'static str),
    /// A program on crates.io, at this version.
    Crate {
        name: &'static str,
        version: &'static str,
        /// Further options of `cargo install`, separated by spaces.
        options: &'static str,
    },
    /// Debian packages, separated by spaces.
    Debian(&'static str),
}

/// Installs those of the tools that are missing.
pub(crate) fn ensure(tools: &[&Tool]) -> Result<(), Failure> {
    let stopwatch = Stopwatch::start();
    let missing: Vec<&Tool> = tools
        .iter()
        .copied()
        .filter(|tool| !succeeds(tool.probe))
        .collect();
    let mut refreshed = false;
    for tool in &missing {
        println!("{} is missing (`{}` fails)", tool.name, tool.probe);
        match tool.source {
            Source::Debian(_) if !may_use_apt() => return Err(ask_for(tool)),
            Source::Debian(_) if !refreshed => {
                Invocation::new("apt-get update --quiet").run()?;
                refreshed = true;
            }
            _ => {}
        }
        tool.source.installation().run()?;
        if !succeeds(tool.probe) {
            return Err(Failure::new(format!(
                "{} was installed but `{}` still fails; is its folder on PATH?",
                tool.name, tool.probe
            )));
        }
    }
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    println!(
        "tools there: {}, in {:.1} s",
        names.join(", "),
        stopwatch.elapsed().as_secs_f64()
    );
    Ok(())
}

impl Source {
    /// The command that installs it.
    fn installation(self) -> Invocation {
        match self {
            Self::Component(name) => Invocation::new("rustup component add").arg(name),
            // A package's release profile may ask for all the optimisation there is, which takes many minutes and
            // buys a tool that runs for seconds nothing. Its build belongs into no target directory of ours.
            Self::Crate {
                name,
                version,
                options,
            } => options
                .split_whitespace()
                .fold(Invocation::new("cargo install --locked"), Invocation::arg)
                .arg(format!("{name}@{version}"))
                .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
                .env("CARGO_PROFILE_RELEASE_LTO", "off")
                .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
                .unset("CARGO_TARGET_DIR"),
            Self::Debian(packages) => {
                let invocation =
                    Invocation::new("apt-get install --quiet --yes --no-install-recommends");
                packages
                    .split_whitespace()
                    .fold(invocation, Invocation::arg)
                    .env("DEBIAN_FRONTEND", "noninteractive")
            }
        }
    }
}

/// Says how to install by hand what only an administrator may install.
fn ask_for(tool: &Tool) -> Failure {
    Failure::new(format!(
        "{} is missing; on Debian and its kin run\n  sudo {}\nand elsewhere install it so that `{}` works",
        tool.name,
        tool.source.installation(),
        tool.probe
    ))
}

fn may_use_apt() -> bool {
    let root = Invocation::new("id -u")
        .output()
        .is_ok_and(|id| id.trim() == "0");
    root && succeeds("apt-get --version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_its_own_way_to_install() {
        for (source, expected) in [
            (Source::Component("clippy"), "rustup component add clippy"),
            (
                Source::Crate {
                    name: "cargo-deny",
                    version: "1.2.3",
                    options: "--features a",
                },
                "env -u CARGO_TARGET_DIR CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_LTO=off \
                 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo install --locked --features a cargo-deny@1.2.3",
            ),
            (
                Source::Debian("gcc libc6-dev"),
                "DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends gcc libc6-dev",
            ),
        ] {
            assert_eq!(source.installation().to_string(), expected);
        }
    }

    #[test]
    fn who_may_not_install_is_told_what_to_run() {
        let told = ask_for(&CXX).to_string();
        let command = "sudo DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends g++";
        assert!(told.contains(command), "{told}");
    }

    #[test]
    fn tools_that_are_there_are_left_alone() {
        static CARGO: Tool = Tool {
            name: "cargo",
            probe: "cargo --version",
            source: Source::Crate {
                name: "no-such-crate",
                version: "0.0.0",
                options: "",
            },
        };
        assert!(ensure(&[&CARGO]).is_ok());
    }
}
