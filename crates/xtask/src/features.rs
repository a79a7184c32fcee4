use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::Package;

/// The ways to build a package that differ: without features, with each one alone, with all.
///
/// Each set is what to turn on besides `--no-default-features`. Sets that come to the same after following what a
/// feature turns on in its own package are built once. Smaller sets come first, so that each reuses what the one before
/// it has built.
pub(crate) fn matrix(package: &Package) -> Vec<Vec<&str>> {
    let each = package.features.keys().map(|name| vec![name.as_str()]);
    let all = package.features.keys().map(String::as_str).collect();
    let mut known = BTreeSet::new();
    let mut matrix: Vec<_> = std::iter::once(vec![])
        .chain(each)
        .chain(std::iter::once(all))
        .map(|set: Vec<&str>| (closure(&package.features, &set), set))
        .filter(|(closure, _)| known.insert(closure.clone()))
        .collect();
    matrix.sort_by_key(|(closure, _)| closure.len());
    matrix.into_iter().map(|(_, set)| set).collect()
}

/// The features that end up on. `default` only stands for others, so it is not counted itself.
fn closure<'p>(features: &'p BTreeMap<String, Vec<String>>, set: &[&'p str]) -> BTreeSet<&'p str> {
    let mut on = BTreeSet::new();
    let mut open = set.to_vec();
    while let Some(name) = open.pop() {
        if on.insert(name) {
            let turned_on = features.get(name).into_iter().flatten().map(String::as_str);
            open.extend(turned_on.filter(|name| features.contains_key(*name)));
        }
    }
    on.remove("default");
    on
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(features: &[(&str, &[&str])]) -> Package {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Package {
            name: "sample".to_owned(),
            features: features
                .iter()
                .map(|&(name, on)| (name.to_owned(), owned(on)))
                .collect(),
            publishable: true,
            targets: Vec::new(),
        }
    }

    #[test]
    fn a_package_without_features_is_built_one_way() {
        assert_eq!(matrix(&package(&[])), [Vec::<&str>::new()]);
    }

    #[test]
    fn each_feature_is_built_alone_and_all_together() {
        let package = package(&[("a", &["dep:a"]), ("b", &["other/b"]), ("c", &["dep:c"])]);
        assert_eq!(
            matrix(&package),
            [vec![], vec!["a"], vec!["b"], vec!["c"], vec!["a", "b", "c"]]
        );
    }

    #[test]
    fn sets_that_come_to_the_same_are_built_once() {
        // `default` is `axum`, and `full` is everything.
        let package = package(&[
            ("axum", &[]),
            ("default", &["axum"]),
            ("full", &["default", "reqwest"]),
            ("reqwest", &[]),
        ]);
        assert_eq!(
            matrix(&package),
            [vec![], vec!["axum"], vec!["reqwest"], vec!["full"]]
        );
    }

    #[test]
    fn features_that_turn_each_other_on_end() {
        let package = package(&[("a", &["b"]), ("b", &["a"])]);
        assert_eq!(matrix(&package), [vec![], vec!["a"]]);
    }
}
